import { z } from 'zod'
import { ApiError } from '../../core/errors.ts'
import { endpoint } from '../../core/http/endpoint.ts'
import { pathId } from '../../core/http/schemas.ts'
import { findOrder, orderShape, presentOrder, tellOrder, type OrderRow } from './order.ts'
import type { Environment } from '../../core/environment.ts'
import type { Database } from '../../core/database/pool.ts'
import type { Trading } from './loop.ts'

interface Services {
  environment: Environment
  database: Database
  trading: Trading
}

/**
 * Requests the cancellation of an order. Fills up to the cancellation remain. A repeated request
 * has no effect. The request is rejected if the order has ended, because then nothing could be
 * cancelled.
 */
export const cancelOrder = endpoint({
  id: 'cancelOrder',
  tag: 'Trading',
  description:
    'Requests that the exchange cancel the unfilled part of the order. Repeating the request has no further effect.',
  errors: [
    'NOT_FOUND',
    'ORDER_FINAL',
    'EXCHANGE_KEY_REFUSED',
    'EXCHANGE_UNAVAILABLE',
    'EXCHANGE_UNSUPPORTED',
  ],
  method: 'POST',
  path: '/dac/v1/orders/{id}/cancel',
  summary: 'Cancel an order',
  access: 'write',
  audit: { not: 'the order stores its cancellation' },
  params: z.strictObject({ id: pathId }),
  body: z.strictObject({}),
  response: orderShape,
  async handler({ caller, params }, services: Services) {
    const row = await services.database.transaction(async (tx) => {
      const before = await findOrder(tx, caller, params.id, true)
      if (before.state === 'ENDED')
        throw new ApiError('ORDER_FINAL', `id: the order is already ${before.status}`, {
          field: 'id',
        })
      if (before.cancel_requested_at !== null) return before
      const after = (await tx.one<OrderRow>(
        `update orders set cancel_requested_at = $2, next_run_at = $2, version = version + 1,
          updated_at = $2
         where workspace_id = $3 and id = $1 returning *`,
        [before.id, tx.now(), caller.workspaceId],
      )) as OrderRow
      await tellOrder(tx, after, 'order.updated')
      return after
    })
    services.environment.checkpoint('order.cancel-requested')
    services.trading.due.ring()
    return { body: presentOrder(row) }
  },
})
