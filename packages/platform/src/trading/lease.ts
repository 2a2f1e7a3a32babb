import type { Queryable } from '../database/pool.ts'
import type { Services } from '../engine/services.ts'
import { advance, claim, type LeasedTable } from '../exchanges/lease.ts'
import { tellOrder, type OrderRow } from './order.ts'

/** Orders as workers take turns at them. */
export const ORDERS: LeasedTable<OrderRow> = {
  name: 'orders',
  json: new Set(['fees']),
  told: ['state', 'status', 'reason', 'venue_id', 'filled', 'alerted_at'],
  // A cancellation that came while the worker was busy is not left lying.
  interrupt: 'cancel_requested_at',
  tell: (tx, row) => tellOrder(tx, row, 'order.updated'),
}

/** Takes the order that has been due the longest, of none of these accounts. */
export const claimOrder = (
  services: Services,
  busy: readonly string[],
): Promise<OrderRow | undefined> => claim(services, ORDERS, busy)

/** What a step changes of an order. */
export type OrderChange = Partial<
  Pick<
    OrderRow,
    | 'state'
    | 'status'
    | 'reason'
    | 'last_error'
    | 'venue_id'
    | 'filled'
    | 'cost'
    | 'fees'
    | 'fee_charged'
    | 'sent_at'
    | 'final_seen'
    | 'alerted_at'
  >
> & {
  /** When it is due again; `hold`: the worker keeps it; null: never. */
  again: number | 'hold' | null
}

/** Writes a step's outcome. @throws LeaseLost */
export const advanceOrder = (
  tx: Queryable,
  row: OrderRow,
  change: OrderChange,
): Promise<OrderRow> => advance(tx, ORDERS, row, change)
