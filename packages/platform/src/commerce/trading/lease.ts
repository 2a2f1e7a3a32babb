import type { Queryable, Database } from '../../core/database/pool.ts'
import type { Environment } from '../../core/environment.ts'
import { advance, claim, type LeasedTable } from '../exchanges/lease.ts'
import { tellOrder, type OrderRow } from './order.ts'

interface Services {
  environment: Environment
  database: Database
}

/** Orders as leased rows. */
export const ORDERS: LeasedTable<OrderRow> = {
  name: 'orders',
  json: new Set(['fees']),
  emittedFields: ['state', 'status', 'reason', 'venue_id', 'filled', 'alerted_at'],
  // A cancellation that was requested during a step makes the order due immediately.
  interrupt: 'cancel_requested_at',
  emit: (tx, row) => tellOrder(tx, row, 'order.updated'),
}

/** Leases the order that has been due the longest, except orders of the accounts in `busy`. */
export const claimOrder = (
  services: Services,
  busy: readonly string[],
): Promise<OrderRow | undefined> => claim(services, ORDERS, busy)

/** Changes of an order by a step. */
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
  /**
   * Time in milliseconds after which it is due again; `hold`: the worker keeps the lease; null:
   * never.
   */
  again: number | 'hold' | null
}

/**
 * Stores the result of a step.
 * @throws LeaseLost
 */
export const advanceOrder = (
  tx: Queryable,
  row: OrderRow,
  change: OrderChange,
): Promise<OrderRow> => advance(tx, ORDERS, row, change)
