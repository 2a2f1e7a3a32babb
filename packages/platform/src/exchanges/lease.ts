import type { Queryable } from '../database/pool.ts'
import type { Services } from '../engine/services.ts'

/** Longer than any step can take: a request leaves at most so late, and ends in time. */
const LEASE_MS = 120_000

/** Another worker took the row, because this one was too slow: nothing may be written any more. */
export class LeaseLost extends Error {}

/** What every row has that workers take turns at. */
export interface Leased {
  id: string
  workspace_id: string
  account_id: string
  state: string
  lease_token: string | null
}

/** A table of such rows. */
export interface LeasedTable<Row extends Leased> {
  readonly name: 'orders' | 'exchange_transfers'
  /** Columns that hold JSON. */
  readonly json: ReadonlySet<string>
  /** Where one of these has changed, callers are told. */
  readonly told: readonly (keyof Row & string)[]
  /**
   * What somebody else writes while the row is held, and which is not to be left lying; null:
   * nothing.
   */
  readonly interrupt: (keyof Row & string) | null
  tell(tx: Queryable, row: Row): Promise<void>
}

/** Of a row, in SQL, at the time $1: nobody holds it, and it is to be worked on. */
const IS_DUE = '(next_run_at <= $1 and (lease_until is null or lease_until < $1))'

/** Whether a table has such a row, in SQL. */
export const hasDue = ({ name }: Pick<LeasedTable<Leased>, 'name'>): string =>
  `exists (select 1 from ${name} where ${IS_DUE})`

/** Takes the row that has been due the longest, of none of these accounts. */
export async function claim<Row extends Leased>(
  services: Services,
  { name }: LeasedTable<Row>,
  busy: readonly string[],
): Promise<Row | undefined> {
  const now = services.database.now()
  return services.database.one<Row>(
    `update ${name} set lease_until = $2, lease_token = $3, attempts = attempts + 1 where (workspace_id, id) = (
       select workspace_id, id from ${name} where ${IS_DUE} and account_id <> all($4::uuid[])
       order by next_run_at limit 1 for update skip locked
     ) returning *`,
    [now, new Date(now.getTime() + LEASE_MS), services.environment.uuid(), busy],
  )
}

/**
 * What a step writes. `again`: in how many milliseconds it is due again; `hold`: the worker keeps
 * it; null: never.
 */
export type Change<Row> = Partial<Row> & { again: number | 'hold' | null }

/**
 * Writes a step's outcome and gives the row back, or keeps it. Where callers see something else
 * than before, they are told.
 * @throws LeaseLost
 */
export async function advance<Row extends Leased>(
  tx: Queryable,
  { name, json, told, interrupt, tell }: LeasedTable<Row>,
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
  const isTold = told.some(
    (column) => change[column] !== undefined && String(change[column]) !== String(row[column]),
  )
  sets.push(`updated_at = case when ${isTold} then $3::timestamptz else updated_at end`)
  if (isTold) sets.push('version = version + 1')
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
    `update ${name} set ${sets.join(', ')} where workspace_id = $4 and id = $1 and lease_token = $2 returning *`,
    values,
  )
  if (!after) throw new LeaseLost(row.id)
  if (isTold) await tell(tx, after)
  return after
}
