import type { Queryable } from '../database/pool.ts'
import type { Services } from '../engine/services.ts'
import { tellOrder, type OrderRow } from './order.ts'

/** Longer than any step can take: a request leaves at most so late, and ends in time. */
const LEASE_MS = 120_000

/** Another worker took the order, because this one was too slow: nothing may be written any more. */
export class OrderLeaseLost extends Error {}

/** Takes the order that has been due the longest, of none of these accounts. */
export async function claimOrder(services: Services, busy: readonly string[]): Promise<OrderRow | undefined> {
  const now = services.database.now()
  return services.database.one<OrderRow>(
    `update orders set lease_until = $2, lease_token = $3, attempts = attempts + 1 where id = (
       select id from orders where next_run_at <= $1 and (lease_until is null or lease_until < $1) and account_id <> all($4::uuid[])
       order by next_run_at limit 1 for update skip locked
     ) returning *`,
    [now, new Date(now.getTime() + LEASE_MS), services.environment.uuid(), busy])
}

/** What a step changes; `told`: the change is one that callers are told of. */
export type OrderChange = Partial<Pick<OrderRow,
  | 'state' | 'status' | 'reason' | 'last_error' | 'venue_id' | 'filled' | 'cost' | 'fees' | 'fee_charged' | 'sent_at' | 'final_seen'
  | 'alerted_at'
>> & {
  /** When it is due again; `hold`: the worker keeps it; null: never. */
  again: number | 'hold' | null
}

/**
 * Writes a step's outcome and gives the order back, or keeps it. Where callers see something else than before, they are told.
 * @throws OrderLeaseLost
 */
export async function advanceOrder(tx: Queryable, row: OrderRow, { again, ...change }: OrderChange): Promise<OrderRow> {
  const now = tx.now()
  const values: unknown[] = [row.id, row.lease_token, now]
  const sets: string[] = []
  for (const [column, value] of Object.entries(change)) {
    values.push(column === 'fees' ? JSON.stringify(value) : value)
    sets.push(`${column} = $${values.length}`)
  }
  const isTold = (['state', 'status', 'reason', 'venue_id', 'filled', 'alerted_at'] as const).some(
    (name) => change[name] !== undefined && String(change[name]) !== String(row[name]))
  sets.push(`updated_at = case when ${isTold} then $3::timestamptz else updated_at end`)
  if (isTold) sets.push('version = version + 1')
  if (change.state !== undefined && change.state !== row.state) sets.push('attempts = 0')
  if (again !== 'hold') {
    sets.push('lease_until = null', 'lease_token = null')
    if (again === null) sets.push('next_run_at = null')
    else {
      values.push(new Date(now.getTime() + again), row.cancel_requested_at)
      // A cancellation that came while the worker was busy is not left lying.
      sets.push(
        `next_run_at = case when cancel_requested_at is distinct from $${values.length}::timestamptz then $3
           else $${values.length - 1}::timestamptz end`)
    }
  }
  const after = await tx.one<OrderRow>(`update orders set ${sets.join(', ')} where id = $1 and lease_token = $2 returning *`, values)
  if (!after) throw new OrderLeaseLost(row.id)
  if (isTold) await tellOrder(tx, after, 'order.updated')
  return after
}
