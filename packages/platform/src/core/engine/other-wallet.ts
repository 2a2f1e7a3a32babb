import type { Queryable } from '../database/pool.ts'
import { post, type Posting } from '../ledger/post.ts'
import type { TransactionRow } from './transaction.ts'

/**
 * Returns the postings of a fee that another wallet of the sub-account pays; the reserved amount
 * minus the fee becomes available again. Empty if no other wallet pays.
 * @param fee fee charged by the chain, in the smallest unit of the fee asset
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

/** Releases another wallet's reservation for the fee of a failed transaction. */
export async function releaseOtherWallet(tx: Queryable, row: TransactionRow): Promise<void> {
  if (row.plan.fee_wallet !== undefined)
    await post(tx, 'fee-release', row.id, otherWalletPostings(row, 0n))
}
