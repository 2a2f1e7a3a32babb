import { z } from 'zod'
import { LIST_MAX, WORD_MAX } from '../../core/bounds.ts'
import { endpoint } from '../../core/http/endpoint.ts'
import { text } from '../../core/http/schemas.ts'
import { callExchange, decimalOrNull, marketQuery, units, unsignedUnits } from './market-data.ts'
import type { Venues } from './venues.ts'

interface Services {
  exchanges: Venues
}

/** Lists the spot markets of an exchange, with the steps of their amounts and prices. */
export const listMarkets = endpoint({
  id: 'listMarkets',
  tag: 'Trading',
  description:
    'Returns the markets of an exchange with the step sizes of amount and price, and the minimum order.',
  errors: ['EXCHANGE_KEY_REFUSED', 'EXCHANGE_UNAVAILABLE', 'EXCHANGE_UNSUPPORTED'],
  method: 'GET',
  path: '/dac/v1/markets',
  summary: 'List the markets of an exchange',
  access: 'read',
  query: z.strictObject({
    exchange: marketQuery.exchange,
    base: text(40).optional(),
    quote: text(40).optional(),
  }),
  response: z.object({
    data: z
      .array(
        z.object({
          market: z.string().max(WORD_MAX),
          base: z.string().max(WORD_MAX),
          quote: z.string().max(WORD_MAX),
          active: z.boolean(),
          amount_step: unsignedUnits,
          price_step: unsignedUnits,
          min_amount: unsignedUnits.nullable(),
          max_amount: unsignedUnits.nullable(),
          min_cost: unsignedUnits.nullable(),
          maker_fee: units.nullable(),
          taker_fee: units
            .nullable()
            .meta({ description: 'Fraction of the cost before any discount, for example 0.0026' }),
        }),
      )
      .max(LIST_MAX)
      .meta({ description: `The first ${LIST_MAX} markets; filter with base and quote` }),
  }),
  async handler({ query: { exchange, base, quote } }, services: Services) {
    const markets = await callExchange(services, exchange, (name) =>
      services.exchanges.markets(name),
    )
    const matches = [...markets.values()].filter(
      (market) =>
        (base === undefined || market.base === base.toUpperCase()) &&
        (quote === undefined || market.quote === quote.toUpperCase()),
    )
    return {
      body: {
        data: matches.slice(0, LIST_MAX).map((market) => ({
          market: market.symbol,
          base: market.base,
          quote: market.quote,
          active: market.active,
          amount_step: decimalOrNull(market.amountStep),
          price_step: decimalOrNull(market.priceStep),
          min_amount: decimalOrNull(market.amountMin),
          max_amount: decimalOrNull(market.amountMax),
          min_cost: decimalOrNull(market.costMin),
          maker_fee: decimalOrNull(market.makerFee),
          taker_fee: decimalOrNull(market.takerFee),
        })),
      },
    }
  },
})
