import { z } from 'zod'
import { dateOf, input, readList } from '../../core/database/counted.ts'
import { endpoint } from '../../core/http/endpoint.ts'
import { integer, oneOf, pageOf, pageQuery, text } from '../../core/http/schemas.ts'
import { ORDER_STATUSES, orderShape, presentOrder, type OrderRow } from './order.ts'
import type { Database } from '../../core/database/pool.ts'

interface Services {
  database: Database
}

const INT32_MAX = 2_147_483_647
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i

/** Lists the orders of the sub-account, newest first. */
export const listOrders = endpoint({
  id: 'listOrders',
  tag: 'Trading',
  description: 'Returns orders, newest first, in pages.',
  errors: ['NOT_FOUND', 'EXCHANGE_UNSUPPORTED'],
  method: 'GET',
  path: '/dac/v1/orders',
  summary: 'List orders',
  access: 'read',
  query: z.strictObject({
    exchange_account: text(100).optional(),
    exchange: text(40).optional(),
    market: text(60).optional(),
    side: oneOf(['buy', 'sell']).optional(),
    type: oneOf(['market', 'limit']).optional(),
    status: oneOf(ORDER_STATUSES).optional(),
    id: text(100)
      .optional()
      .meta({ description: 'Platform id, client order id, or the exchange’s id' }),
    sequence_id: text(200).optional(),
    before: integer(
      0,
      INT32_MAX,
      'Only records created before this Unix time in seconds',
    ).optional(),
    after: integer(0, INT32_MAX, 'Only records created after this Unix time in seconds').optional(),
    ...pageQuery,
  }),
  response: pageOf(orderShape),
  async handler({ caller, query }, services: Services) {
    const { page, limit } = query
    const values: unknown[] = [caller.subAccountId, caller.workspaceId]
    const conditions = ['workspace_id = $2 and sub_account_id = $1']
    const where = (value: unknown, condition: (at: string) => string): void => {
      if (value === undefined) return
      values.push(value)
      conditions.push(condition(`$${values.length}`))
    }
    where(query.exchange_account?.toLowerCase(), (at) => `account_id::text = ${at}`)
    where(query.exchange?.toLowerCase(), (at) => `exchange = ${at}`)
    where(query.market?.toUpperCase(), (at) => `market = ${at}`)
    where(query.side, (at) => `side = ${at}`)
    where(query.type, (at) => `type = ${at}`)
    where(query.status, (at) => `status = ${at}`)
    if (query.id !== undefined && UUID.test(query.id))
      where(query.id, (at) => `(id = ${at}::uuid or venue_id = ${at}::text)`)
    else where(query.id, (at) => `(client_id = ${at} or venue_id = ${at})`)
    where(query.sequence_id, (at) => `sequence_id = ${at}`)
    where(query.before, (at) => `created_at < to_timestamp(${at}::bigint)`)
    where(query.after, (at) => `created_at > to_timestamp(${at}::bigint)`)
    const { rows, total } = await readList<OrderRow>(
      services.database,
      {
        list: 'orders',
        columns: '*',
        where: conditions.join(' and '),
        values,
        filters:
          query.id !== undefined || query.sequence_id !== undefined
            ? null
            : input({
                account_id: query.exchange_account?.toLowerCase(),
                exchange: query.exchange?.toLowerCase(),
                market: query.market?.toUpperCase(),
                side: query.side,
                type: query.type,
                status: query.status,
              }),
        from: dateOf(query.after),
        before: dateOf(query.before),
      },
      page,
      limit,
    )
    return { body: { data: rows.map(presentOrder), page, limit, total } }
  },
})
