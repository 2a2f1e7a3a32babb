import { z } from 'zod'
import { exact } from '../../core/decimals.ts'
import type { Venues } from './venues.ts'
import { ApiError } from '../../core/errors.ts'
import { text } from '../../core/http/schemas.ts'
import { venueProblem } from './account.ts'
import { assertExchange } from './create-account.ts'
import { showUnits } from './units.ts'
import type { Market } from './venue.ts'

interface Services {
  exchanges: Venues
}

export const marketQuery = {
  exchange: text(40).meta({ examples: ['kraken'] }),
  market: text(60).meta({
    description: 'Symbol of a market, for example BTC/USD',
    examples: ['BTC/USD'],
  }),
}

export const decimalOrNull = (units: bigint | null) =>
  units === null ? null : exact(showUnits(units))
export const units = z.number().meta({ description: 'Exact decimal' })
/** A price or a limit of a market, which is never negative. */
export const unsignedUnits = z.number().min(0).meta({ description: 'Exact decimal' })

/** Runs a query to an exchange and converts its errors into API errors. */
export async function callExchange<T>(
  services: Services,
  exchange: string,
  ask: (name: string) => Promise<T>,
): Promise<T> {
  const name = exchange.toLowerCase()
  assertExchange(services, name)
  try {
    return await ask(name)
  } catch (error) {
    throw venueProblem(error, 'exchange')
  }
}

/**
 * Returns a market by its name.
 * @throws ApiError `INVALID_REQUEST` that names the field, `EXCHANGE_UNAVAILABLE`
 */
export async function findMarket(
  services: Services,
  exchange: string,
  input: string,
): Promise<Market> {
  const markets = await callExchange(services, exchange, (name) => services.exchanges.markets(name))
  const market = markets.get(input.toUpperCase())
  if (market) return market
  const [base] = input.toUpperCase().split('/')
  const others = [...markets.values()]
    .filter((each) => each.base === base)
    .slice(0, 5)
    .map(({ symbol }) => symbol)
  const hint =
    others.length > 0 ? `of ${base} it has ${others.join(', ')}` : 'see GET /dac/v1/markets'
  throw new ApiError(
    'INVALID_REQUEST',
    `market: ${exchange} has no market ${input.slice(0, 60)}; ${hint}`,
    { field: 'market' },
  )
}
