import type { Queryable, Database } from '../../core/database/pool.ts'
import type { Environment } from '../../core/environment.ts'

interface Services {
  environment: Environment
  database: Database
}

/**
 * Duration of a lease in milliseconds, longer than any step can take: a request must be sent before
 * a deadline, and has a timeout.
 */
const LEASE_MS = 120_000

/**
 * Another worker has taken over the row, because this worker was too slow. This worker must not
 * write any more.
 */
export class LeaseLost extends Error {}

/** Columns of every row that workers lease. */
export interface Leased {
  id: string
  workspace_id: string
  account_id: string
  state: string
  lease_token: string | null
}

/** A table of leased rows. */
export interface LeasedTable<Row extends Leased> {
  readonly name: 'orders' | 'exchange_transfers'
  /** Columns that contain JSON. */
  readonly json: ReadonlySet<string>
  /** An event is emitted when one of these columns has changed. */
  readonly emittedFields: readonly (keyof Row & string)[]
  /**
   * Column that other code may write while the row is leased. If it has changed, the row becomes
   * due again immediately; null: no such column.
   */
  readonly interrupt: (keyof Row & string) | null
  emit(tx: Queryable, row: Row): Promise<void>
}

/** SQL condition on a row at the time $1: it is not leased, and it is due. */
const IS_DUE = '(next_run_at <= $1 and (lease_until is null or lease_until < $1))'

/** Returns an SQL expression for whether a table has such a row. */
export const hasDue = ({ name }: Pick<LeasedTable<Leased>, 'name'>): string =>
  `exists (select 1 from ${name} where ${IS_DUE})`

/** Leases the row that has been due the longest, except rows of the accounts in `busy`. */
export async function claim<Row extends Leased>(
  services: Services,
  { name }: LeasedTable<Row>,
  busy: readonly string[],
): Promise<Row | undefined> {
  const now = services.database.now()
  return services.database.one<Row>(
    `update ${name} set lease_until = $2, lease_token = $3, attempts = attempts + 1
       where (workspace_id, id) = (
       select workspace_id, id from ${name} where ${IS_DUE} and account_id <> all($4::uuid[])
       order by next_run_at limit 1 for update skip locked
     ) returning *`,
    [now, new Date(now.getTime() + LEASE_MS), services.environment.uuid(), busy],
  )
}

/**
 * Result of a step. `again`: time in milliseconds after which the row is due again; `hold`: the
 * worker keeps the lease; null: never.
 */
export type Change<Row> = Partial<Row> & { again: number | 'hold' | null }

/**
 * Stores the result of a step and releases the row, or keeps the lease. Emits an event if data that
 * callers can see has changed.
 * @throws LeaseLost
 */
export async function advance<Row extends Leased>(
  tx: Queryable,
  { name, json, emittedFields, interrupt, emit }: LeasedTable<Row>,
  row: Row,
  change: Change<Row>,
): Promise<Row> {
  const now = tx.now()
  const values: unknown[] = [row.id, row.lease_token, now, row.workspace_id]
  const sets: string[] = []
  const { again } = change
  for (const [column, value] of Object.entries(change)) {
    if (column === 'again') continue
    values.push(json.has(column) ? JSON.stringify(value) : value)
    sets.push(`${column} = $${values.length}`)
  }
  const isReported = emittedFields.some(
    (column) => change[column] !== undefined && String(change[column]) !== String(row[column]),
  )
  sets.push(`updated_at = case when ${isReported} then $3::timestamptz else updated_at end`)
  if (isReported) sets.push('version = version + 1')
  if (change.state !== undefined && change.state !== row.state) sets.push('attempts = 0')
  if (again !== 'hold') {
    sets.push('lease_until = null', 'lease_token = null')
    if (again === null) sets.push('next_run_at = null')
    else {
      values.push(new Date(now.getTime() + again))
      const due = `$${values.length}`
      if (interrupt === null) sets.push(`next_run_at = ${due}::timestamptz`)
      else {
        values.push(row[interrupt])
        sets.push(
          `next_run_at = case when ${interrupt} is distinct from $${values.length}::timestamptz then $3 else ${due}::timestamptz end`,
        )
      }
    }
  }
  const after = await tx.one<Row>(
    `update ${name} set ${sets.join(', ')} where workspace_id = $4 and id = $1 and lease_token = $2
      returning *`,
    values,
  )
  if (!after) throw new LeaseLost(row.id)
  if (isReported) await emit(tx, after)
  return after
}
