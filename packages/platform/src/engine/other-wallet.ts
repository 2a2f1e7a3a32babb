import type { Queryable } from '../database/pool.ts'
import { post } from '../ledger/post.ts'
import type { TransactionRow } from './transaction.ts'

/** A token's fee that another wallet of the sub-account holds is back there. */
export async function releaseOtherWallet(tx: Queryable, row: TransactionRow): Promise<void> {
  if (row.plan.fee_wallet === undefined) return
  const account = { workspace: row.workspace_id, wallet: row.plan.fee_wallet, asset: row.fee_asset }
  const held = BigInt(row.plan.fee_held ?? '0')
  await post(tx, 'fee-release', row.id, [{ ...account, kind: 'reserved', amount: -held }, { ...account, kind: 'available', amount: held }])
}
