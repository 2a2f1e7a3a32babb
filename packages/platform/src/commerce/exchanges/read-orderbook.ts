import { z } from 'zod'
import { TIME_MAX, WORD_MAX } from '../../core/bounds.ts'
import { endpoint } from '../../core/http/endpoint.ts'
import { integer } from '../../core/http/schemas.ts'
import {
  callExchange,
  decimalOrNull,
  findMarket,
  marketQuery,
  units,
  unsignedUnits,
} from './market-data.ts'
import type { Level } from './venue.ts'
import type { Venues } from './venues.ts'

interface Services {
  exchanges: Venues
}

const DEPTH_MAX = 500

const levels = z.array(z.object({ price: unsignedUnits, amount: units })).max(DEPTH_MAX)

/** Returns the open orders of a market, best price first. */
export const readOrderBook = endpoint({
  id: 'readOrderBook',
  tag: 'Trading',
  description: 'Returns the bids and asks of a market, best first.',
  errors: ['EXCHANGE_KEY_REFUSED', 'EXCHANGE_UNAVAILABLE', 'EXCHANGE_UNSUPPORTED'],
  method: 'GET',
  path: '/dac/v1/orderbook',
  summary: 'Read an order book',
  access: 'read',
  query: z.strictObject({
    ...marketQuery,
    depth: integer(
      1,
      DEPTH_MAX,
      'Levels on each side, as far as the exchange returns them; by default 20',
    ).default(20),
  }),
  response: z.object({
    market: z.string().max(WORD_MAX),
    bids: levels,
    asks: levels,
    at: z.string().max(TIME_MAX),
  }),
  async handler({ query: { exchange, market, depth } }, services: Services) {
    const { symbol } = await findMarket(services, exchange, market)
    const { bids, asks, at } = await callExchange(services, exchange, (name) =>
      services.exchanges.orderBook(name, symbol, depth),
    )
    const shown = (side: Level[]) =>
      side.slice(0, depth).map(({ price, amount }) => ({
        price: decimalOrNull(price),
        amount: decimalOrNull(amount),
      }))
    return {
      body: {
        market: symbol,
        bids: shown(bids),
        asks: shown(asks),
        at: new Date(at).toISOString(),
      },
    }
  },
})
