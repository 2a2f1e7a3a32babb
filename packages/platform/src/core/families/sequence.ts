import type { Queryable } from '../database/pool.ts'
import { fail, wait, type Fail, type Wait } from '../engine/chain.ts'
import { isGapClosing, lowestFree } from '../engine/nonce-order.ts'
import type { TransactionRow } from '../engine/transaction.ts'

const RETRY_MS = 1000

/**
 * Returns the lowest free sequence. A transfer that was signed and expired keeps its sequence, so
 * that its earlier transactions stay excluded.
 * @param next the sequence that the chain accepts next for the account
 */
export async function sequenceOf(
  tx: Queryable,
  row: TransactionRow,
  account: string,
  next: bigint,
): Promise<bigint | Wait | Fail> {
  const earlier = await tx.one<{ nonce: string; hash: string | null }>(
    `select nonce::text, hash from chain_transactions where workspace_id = $2
      and transaction_id = $1 order by attempt desc limit 1`,
    [row.id, row.workspace_id],
  )
  const free = await lowestFree(tx, row, account, next)
  if (!earlier?.hash) return free
  const own = BigInt(earlier.nonce)
  // With another sequence, the new transaction would not exclude the one that was signed and
  // expired.
  if (own < next) return fail('it expired, and another transaction used its sequence number')
  if (free >= own) return own
  if (!(await isGapClosing(tx, row, account)))
    return fail('it expired after a transfer that was abandoned')
  return wait(
    'EARLIER_TRANSFER',
    'it waits until a later transfer replaces one that was abandoned',
    RETRY_MS,
  )
}
