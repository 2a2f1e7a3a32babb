import type { Database } from '../../core/database/pool.ts'
import { formatAmount, type Registry } from '@custody/chains'
import { argument, type Command } from './command.ts'

interface Services {
  database: Database
  registry: Registry
}

const ROWS_MAX = 1000

interface Row {
  id: string
  parent_id: string | null
  workspace: string
  kind: string
  state: string
  network: string
  asset: string
  amount: string
  hash: string | null
  last_error: string | null
  attempts: number
  created_at: Date
  updated_at: Date
  next_run_at: Date | null
}

/**
 * Lists unfinished operations, oldest first, with the reason why the last attempt made no progress.
 * Changes nothing.
 */
export const listWaiting: Command<Services> = async ({ database, registry }, input) => {
  const rows = await database.query<Row>(
    `select t.id, t.parent_id, w.name workspace, t.kind, t.state, t.network, t.asset,
       t.amount::text, t.hash, t.last_error, t.attempts,
       t.created_at, t.updated_at, t.next_run_at
     from transactions t join workspaces w on w.id = t.workspace_id
     where t.status = 'pending' and ($1::text is null or t.state = $1)
       and ($2::text is null or t.network = $2)
       and ($3::text is null or w.name = $3)
     order by t.created_at, t.id limit ${ROWS_MAX + 1}`,
    [argument(input, 'state'), argument(input, 'network'), argument(input, 'workspace')],
  )
  return {
    waiting: rows
      .slice(0, ROWS_MAX)
      .map(({ amount, created_at, updated_at, next_run_at, ...row }) => ({
        ...row,
        amount: formatAmount(BigInt(amount), registry.asset(row.asset)?.decimals ?? 0),
        created_at: created_at.toISOString(),
        updated_at: updated_at.toISOString(),
        next_run_at: next_run_at?.toISOString() ?? null,
      })),
    more: rows.length > ROWS_MAX,
  }
}
