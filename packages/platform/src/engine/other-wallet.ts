import type { Queryable } from '../database/pool.ts'
import { post } from '../ledger/post.ts'
import type { TransactionRow } from './transaction.ts'

/** Gives a token transfer's reserved fee back to the wallet of the native coin that holds it. */
export async function releaseOtherWallet(tx: Queryable, row: TransactionRow): Promise<void> {
  if (row.plan.fee_wallet === undefined) return
  const account = { workspace: row.workspace_id, wallet: row.plan.fee_wallet, asset: row.fee_asset }
  const held = BigInt(row.plan.fee_held ?? '0')
  await post(tx, 'fee-release', row.id, [{ ...account, kind: 'reserved', amount: -held }, { ...account, kind: 'available', amount: held }])
}
