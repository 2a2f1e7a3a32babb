import { z } from 'zod'
import { TIME_MAX, WORD_MAX } from '../../core/bounds.ts'
import { endpoint } from '../../core/http/endpoint.ts'
import {
  callExchange,
  decimalOrNull,
  findMarket,
  marketQuery,
  unsignedUnits,
} from './market-data.ts'
import type { Venues } from './venues.ts'

interface Services {
  exchanges: Venues
}

/** Returns the exchange's current best bid and ask, and the last price. */
export const readTicker = endpoint({
  id: 'readTicker',
  tag: 'Trading',
  description: 'Returns the best bid and ask, and the last price, of a market.',
  errors: ['EXCHANGE_KEY_REFUSED', 'EXCHANGE_UNAVAILABLE', 'EXCHANGE_UNSUPPORTED'],
  method: 'GET',
  path: '/dac/v1/ticker',
  summary: 'Read a ticker',
  access: 'read',
  query: z.strictObject(marketQuery),
  response: z.object({
    market: z.string().max(WORD_MAX),
    bid: unsignedUnits.nullable(),
    ask: unsignedUnits.nullable(),
    last: unsignedUnits.nullable(),
    at: z.string().max(TIME_MAX),
  }),
  async handler({ query: { exchange, market } }, services: Services) {
    const { symbol } = await findMarket(services, exchange, market)
    const { bid, ask, last, at } = await callExchange(services, exchange, (name) =>
      services.exchanges.ticker(name, symbol),
    )
    return {
      body: {
        market: symbol,
        bid: decimalOrNull(bid),
        ask: decimalOrNull(ask),
        last: decimalOrNull(last),
        at: new Date(at).toISOString(),
      },
    }
  },
})
