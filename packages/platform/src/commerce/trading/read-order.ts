import { z } from 'zod'
import { ADDRESS_MAX, LIST_MAX, TIME_MAX, WORD_MAX } from '../../core/bounds.ts'
import { exact } from '../../core/decimals.ts'
import { units, unsignedUnits } from '../exchanges/market-data.ts'
import { showUnits } from '../exchanges/units.ts'
import { endpoint } from '../../core/http/endpoint.ts'
import { pathId } from '../../core/http/schemas.ts'
import { findOrder, orderShape, presentOrder } from './order.ts'
import type { Database } from '../../core/database/pool.ts'

interface Services {
  database: Database
}

interface FillRow {
  trade_id: string
  price: string
  amount: string
  cost: string
  fee: string
  fee_coin: string
  maker: boolean | null
  at: Date
}

/** Returns one order with its fills, each once, however often the exchange reported it. */
export const readOrder = endpoint({
  id: 'readOrder',
  tag: 'Trading',
  description: 'Returns one order with its fills.',
  errors: ['NOT_FOUND'],
  method: 'GET',
  path: '/dac/v1/orders/{id}',
  summary: 'Read an order',
  access: 'read',
  params: z.strictObject({ id: pathId }),
  response: orderShape
    .extend({
      fills: z
        .array(
          z.object({
            id: z.string().max(ADDRESS_MAX),
            price: unsignedUnits,
            amount: units,
            cost: units,
            fee: units,
            fee_asset: z.string().max(WORD_MAX),
            maker: z.boolean().nullable(),
            at: z.string().max(TIME_MAX),
          }),
        )
        .max(LIST_MAX)
        .meta({ description: `The first ${LIST_MAX}, oldest first` }),
    })
    .meta({ id: 'OrderWithFills' }),
  async handler({ caller, params }, services: Services) {
    const row = await findOrder(services.database, caller, params.id)
    const fills = await services.database.query<FillRow>(
      `select trade_id, price::text, amount::text, cost::text, fee::text, fee_coin, maker, at
        from order_fills
       where workspace_id = $2 and order_id = $1 order by at, trade_id limit ${LIST_MAX}`,
      [row.id, caller.workspaceId],
    )
    const show = (text: string) => exact(showUnits(BigInt(text)))
    return {
      body: {
        ...presentOrder(row),
        fills: fills.map((fill) => ({
          id: fill.trade_id,
          price: show(fill.price),
          amount: show(fill.amount),
          cost: show(fill.cost),
          fee: show(fill.fee),
          fee_asset: fill.fee_coin,
          maker: fill.maker,
          at: fill.at.toISOString(),
        })),
      },
    }
  },
})
