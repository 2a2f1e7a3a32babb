import type { Queryable } from '../database/pool.ts'
import { post, type Posting } from '../ledger/post.ts'
import type { TransactionRow } from './transaction.ts'

/**
 * Postings of a fee that another wallet of the sub-account pays: what it held for it less the fee
 * is free again. Empty where no other wallet pays.
 * @param fee what the chain took, smallest unit of the fee asset
 */
export function otherWalletPostings(row: TransactionRow, fee: bigint): Posting[] {
  if (row.plan.fee_wallet === undefined) return []
  const account = { workspace: row.workspace_id, wallet: row.plan.fee_wallet, asset: row.fee_asset }
  const held = BigInt(row.plan.fee_held ?? '0')
  return [
    { ...account, kind: 'reserved', amount: -held },
    { ...account, wallet: null, kind: 'chain', amount: fee },
    { ...account, kind: 'available', amount: held - fee },
  ]
}

/** Gives what another wallet held for the fee of a transaction that failed back to it. */
export async function releaseOtherWallet(tx: Queryable, row: TransactionRow): Promise<void> {
  if (row.plan.fee_wallet !== undefined)
    await post(tx, 'fee-release', row.id, otherWalletPostings(row, 0n))
}
