import type { Services } from './services.ts'
import { advance } from './lease.ts'
import { nothingExcludes } from './expiry.ts'
import type { TransactionRow } from './transaction.ts'

/**
 * Of a row of `chain_transactions` that is looked up by its id, in SQL: as `state = 'BUILT'`, so
 * that PostgreSQL does not look for it among all that are built, of which an index knows few while
 * a table is young.
 */
export const STILL_BUILT = `coalesce(state, '') = 'BUILT'`

/**
 * Builds an unsigned transaction again, with a new end of its life, where it has waited for the
 * nodes too long to be sent in time. Answers true then. Nodes that have begun to sign the first
 * refuse the second: nothing is paid twice.
 */
export async function rebuildStale(
  services: Services,
  row: TransactionRow,
  built: {
    id: string
    valid_until: string | null
  },
): Promise<boolean> {
  const chain = services.networks.get(row.network)
  if (!nothingExcludes(chain) || built.valid_until === null || (row.plan.earlier ?? null) !== null)
    return false
  if (!(await chain.isStale?.(Number(built.valid_until)))) return false
  await services.database.transaction(async (tx) => {
    await tx.query(
      `update chain_transactions set state = 'VOID' where workspace_id = $2 and id = $1 and ${STILL_BUILT}`,
      [built.id, row.workspace_id],
    )
    // A transfer that has taken fuel from the tank keeps its plan: fees are not planned a second
    // time.
    const state = row.plan.fuel_id === undefined ? 'QUEUED' : 'FUELING'
    await advance(tx, row, {
      state,
      last_error: 'it became outdated before it was signed',
      run_in_ms: 0,
    })
  })
  return true
}

/**
 * Takes an earlier transaction of this transfer up again, whatever its age: the nodes have begun to
 * sign it, their answer was lost, and they sign no other. Once its hash is known, it is included or
 * proven dead. Answers false where there is no earlier one.
 */
export async function returnToEarlier(
  services: Services,
  row: TransactionRow,
  built: {
    id: string
    step: string | null
  },
): Promise<boolean> {
  if (!nothingExcludes(services.networks.get(row.network))) return false
  return services.database.transaction(async (tx) => {
    const earlier = await tx.one<{ id: string; attempt: number }>(
      `select id, attempt from chain_transactions
       where workspace_id = $5 and transaction_id = $1 and state = 'VOID' and hash is null and id <> $2 and attempt > $3
         and step is not distinct from $4
       order by attempt limit 1`,
      [row.id, built.id, Number(row.plan.earlier ?? '0'), built.step, row.workspace_id],
    )
    if (!earlier) return false
    const owner = row.workspace_id
    await tx.query(
      `update chain_transactions set state = 'VOID' where workspace_id = $2 and id = $1`,
      [built.id, owner],
    )
    await tx.query(
      `update chain_transactions set state = 'BUILT' where workspace_id = $2 and id = $1`,
      [earlier.id, owner],
    )
    const reason = 'the nodes have signed an earlier transaction of this transfer'
    await advance(tx, row, {
      state: 'SIGNING',
      plan: { earlier: String(earlier.attempt) },
      last_error: reason,
      run_in_ms: 0,
    })
    return true
  })
}
