import type { Level } from './book.ts'
import { power } from './numbers.ts'
import { quoted, startingPrice, wholeLots, type Market } from './markets.ts'
import type { Side } from './types.ts'

/** From the price, in millionths: the first level of each side stands one ten-thousandth away. */
const FIRST = 100n
const STEP = 200n
const LEVELS = 10
/** What the first level is worth in USD; each further one is worth as much more. */
const LEVEL_USD = 20_000

/**
 * What the house buys and sells in a market: levels around the local price. Of usual size an order
 * is filled at the first; a large one walks.
 */
export function marketMakerLevels(
  market: Market,
  priceOf: (coin: string) => bigint | undefined,
): Record<Side, Level[]> {
  const first = firstVolume(market)
  const levels = (upwards: boolean): Level[] =>
    Array.from({ length: LEVELS }, (_, at) => {
      const distance = FIRST + STEP * BigInt(at)
      const price = quoted(market, priceOf, upwards ? distance : -distance, upwards)
      return price === null ? [] : [{ price, volume: first * BigInt(at + 1) }]
    }).flat()
  return { buy: levels(false), sell: levels(true) }
}

/** The same at all prices of the day: it follows from the coin's first price. */
function firstVolume(market: Market): bigint {
  const coins = LEVEL_USD / startingPrice(market.base.ticker)
  return wholeLots(
    market,
    (BigInt(Math.ceil(coins * 1e6)) * power(market.base.decimals)) / 1_000_000n,
  )
}
