import type { Queryable } from '../database/pool.ts'
import { post, type Posting } from '../ledger/post.ts'
import type { TransactionRow } from './transaction.ts'

/**
 * What a block settles of a transaction, and how it is taken back with the block. Each settlement has
 * its own ledger entries: their references contain the transaction's generation.
 */
type Settled = Pick<TransactionRow, 'id' | 'plan' | 'workspace_id'>

/** Public state of a pending outgoing transaction of which a reorganisation removed a settled block. */
export const REORGANISED = 'REORGANISED'

/** Returns how often reorganisations have taken back what a block settled of a transaction. */
export const generationOf = ({ plan }: Pick<TransactionRow, 'plan'>): number =>
  Number(plan.generation ?? '0')

/** Returns a reference for the entries of a transaction's current generation. */
export function settlementReference(
  row: Pick<TransactionRow, 'id' | 'plan'>,
  base: string = row.id,
): string {
  const generation = generationOf(row)
  return generation === 0 ? base : `${base}:g${generation}`
}

/**
 * Posts an entry of a settlement.
 * @throws Error if the entry was posted before in this generation; its amounts would be lost
 */
export async function postSettled(
  tx: Queryable,
  row: Settled,
  kind: string,
  postings: readonly Posting[],
  options: { overdraw?: boolean } = {},
): Promise<void> {
  const reference = settlementReference(row)
  if (!(await post(tx, kind, reference, postings, options)))
    throw new Error(`the entry ${kind} ${reference} of a settlement was posted before`)
}

/**
 * Posts the opposite of a transaction's entries of these kinds, of any generation, that were not
 * reversed yet.
 * @param bases beginnings of references, beside the transaction's id
 * @returns the number of entries that were reversed
 */
export async function reverseSettled(
  tx: Queryable,
  row: Settled,
  kinds: readonly string[],
  bases: readonly string[] = [],
): Promise<number> {
  const references = [...new Set([row.id, ...bases])].flatMap((base) =>
    Array.from({ length: generationOf(row) + 1 }, (_, generation) =>
      settlementReference({ id: base, plan: { generation: String(generation) } }),
    ),
  )
  const answer = await tx.one<{ count: number }>('select ledger_reverse($1, $2, $3) count', [
    row.workspace_id,
    kinds,
    references,
  ])
  return answer?.count ?? 0
}
