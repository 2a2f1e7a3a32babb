import type { UnsignedTransaction } from '@custody/chains'
import type { Queryable, Database } from '../database/pool.ts'
import { advance, LeaseLost } from './lease.ts'
import type { Kinds } from './interfaces/kind.ts'
import type { TransactionRow } from './transaction.ts'

interface Services {
  database: Database
  kinds: Kinds
}

/**
 * Whether a transaction may be submitted to the signer nodes. Must be called before every other
 * lock of the commit that marks it as submitted.
 */
export async function maySubmit(
  services: Pick<Services, 'kinds'>,
  tx: Queryable,
  row: TransactionRow,
): Promise<boolean> {
  return (await services.kinds[row.kind].maySubmit?.(tx, row)) ?? true
}

/**
 * Makes a transaction that may not be submitted due immediately, so that its kind decides what
 * happens next.
 */
export async function requeue(tx: Queryable, row: TransactionRow): Promise<null> {
  await advance(tx, row, { run_in_ms: 0 })
  return null
}

/**
 * Marks a transaction without a nonce as submitted to the signer nodes; returns null if it may not
 * be submitted.
 */
export async function submitWithoutNonce(
  services: Services,
  row: TransactionRow,
  built: { id: string; unsigned: UnsignedTransaction },
): Promise<UnsignedTransaction | null> {
  return services.database.transaction(async (tx) => {
    const isAllowed = await maySubmit(services, tx, row)
    const chain = await tx.one<{ shown_at: Date | null }>(
      `select c.shown_at from chain_transactions c
        join transactions t on t.workspace_id = c.workspace_id and t.id = c.transaction_id
       where c.workspace_id = $3 and c.id = $1 and c.state = 'BUILT' and t.lease_token = $2
         for update of c`,
      [built.id, row.lease_token, row.workspace_id],
    )
    if (!chain) throw new LeaseLost(row.id)
    if (chain.shown_at !== null) return built.unsigned
    if (!isAllowed) return requeue(tx, row)
    await markSubmitted(tx, row, built.id)
    return built.unsigned
  })
}

/**
 * Marks a chain transaction as submitted. From this commit on a signer node may have signed it,
 * even if this process stops.
 */
export async function markSubmitted(
  tx: Queryable,
  { workspace_id: workspaceId }: TransactionRow,
  id: string,
): Promise<void> {
  await tx.query(
    `update chain_transactions set shown_at = $2 where workspace_id = $3 and id = $1
      and shown_at is null`,
    [id, tx.now(), workspaceId],
  )
}

/**
 * Marks a chain transaction as not submitted again, because no node has started to sign it. It can
 * then still give its nonce or coins back. Must be called before the commit that releases the lease.
 */
export async function markNotSubmitted(
  tx: Queryable,
  { workspace_id: workspaceId, lease_token: lease }: TransactionRow,
  id: string,
): Promise<void> {
  await tx.query(
    `update chain_transactions c set shown_at = null from transactions t
     where c.workspace_id = $1 and c.id = $2 and c.state = 'BUILT'
       and t.workspace_id = $1 and t.id = c.transaction_id and t.lease_token = $3`,
    [workspaceId, id, lease],
  )
}
