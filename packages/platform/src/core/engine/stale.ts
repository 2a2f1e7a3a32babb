import type { Database } from '../database/pool.ts'
import type { Networks } from './networks.ts'
import { advance } from './lease.ts'
import { nothingExcludes } from './outcomes/expiry.ts'
import type { TransactionRow } from './transaction.ts'

interface Services {
  database: Database
  networks: Networks
}

/**
 * SQL condition that means `state = 'BUILT'`, for a row of `chain_transactions` that is selected by
 * its id. Written so that PostgreSQL does not use the index of built rows, whose statistics suggest
 * very few rows while a table is new.
 */
export const STILL_BUILT = `coalesce(state, '') = 'BUILT'`

/**
 * Rebuilds an unsigned transaction with a new expiry if it has waited for the signer nodes too long
 * to be sent in time. Nodes that have started to sign the first transaction refuse the second, so
 * nothing is paid twice.
 * @returns whether the transaction was rebuilt
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
      `update chain_transactions set state = 'VOID' where workspace_id = $2 and id = $1
        and ${STILL_BUILT}`,
      [built.id, row.workspace_id],
    )
    // A transfer that has taken fuel from the tank keeps its plan; its fee is not planned a second
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
 * Returns to an earlier transaction of this transfer, regardless of its age: the nodes have started
 * to sign it, their response was lost, and they sign no other. Once its hash is known, it is
 * included or proven dead.
 * @returns false if there is no earlier transaction
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
       where workspace_id = $5 and transaction_id = $1 and state = 'VOID' and hash is null
         and id <> $2 and attempt > $3
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
