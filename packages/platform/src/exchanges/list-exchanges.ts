import { readFileSync } from 'node:fs'
import { z } from 'zod'
import { EXCHANGES_MAX } from '../bounds.ts'
import { endpoint } from '../http/endpoint.ts'
import { MANNERS } from './venues.ts'

/** Made by scripts/exchange-features.mjs: loading every exchange to ask it would take 100 MB. */
const FILE = new URL('../../data/exchanges.json', import.meta.url)
type Features = Record<string, boolean>
let known: { exchange: string; name: string; features: Features }[] | undefined

/** Every exchange that may be linked here, and what it supports. */
export const listExchanges = endpoint({
  id: 'listExchanges',
  tag: 'Exchange accounts',
  description:
    'Returns the exchanges that can be linked, and which features of each are supported.',
  method: 'GET',
  path: '/dac/v1/exchanges',
  summary: 'List the exchanges',
  access: 'read',
  query: z.strictObject({}),
  response: z.object({
    data: z
      .array(
        z.object({
          exchange: z.string(),
          name: z.string(),
          support: z.enum(['tested', 'generic', 'read-only']).meta({
            description:
              'tested: order handling is verified against the exchange’s own error codes; generic: order handling relies on ccxt; read-only: no orders, because the outcome of an order could not be queried',
          }),
          passphrase: z.boolean().meta({ description: 'Whether a key requires a passphrase' }),
          features: z
            .record(z.string(), z.boolean())
            .meta({ maxProperties: EXCHANGES_MAX, description: 'Features according to ccxt' }),
        }),
      )
      .max(EXCHANGES_MAX),
  }),
  async handler({ services }) {
    known ??= JSON.parse(readFileSync(FILE, 'utf8')) as NonNullable<typeof known>
    return {
      body: {
        data: known
          .filter(({ exchange }) => services.exchanges.has(exchange))
          .map(({ exchange, name, features }) => {
            const traits = MANNERS[exchange]?.traits
            return {
              exchange,
              name,
              support: traits ? 'tested' : isAskable(features) ? 'generic' : 'read-only',
              passphrase: features['passphrase'] === true,
              features,
            }
          }),
      },
    }
  },
})

/** The same as {@link ./generic.ts} asks of a client. */
const isAskable = (has: Features): boolean =>
  ['createOrder', 'cancelOrder', 'fetchOrder', 'fetchOpenOrders'].every((name) => has[name]) &&
  (has['fetchClosedOrders'] === true || has['fetchOrders'] === true) &&
  (has['fetchOrderTrades'] === true || has['fetchMyTrades'] === true)
