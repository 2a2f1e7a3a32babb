import type { Level } from './book.ts'
import { power } from './numbers.ts'
import { quoted, startingPrice, wholeLots, type Market } from './markets.ts'
import type { Side } from './types.ts'

/**
 * Distance from the price in millionths: the first level of each side is one ten-thousandth away.
 */
const FIRST = 100n
const STEP = 200n
const LEVELS = 10
/** Value of the first level in USD; each further level adds the same value. */
const LEVEL_USD = 20_000

/**
 * Returns the market maker's offers in a market: levels around the local price. An order of usual
 * size is filled at the first level; a large one needs several.
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

/**
 * Returns the volume of the first level. It follows from the coin's initial price, so it does not
 * change with the price.
 */
function firstVolume(market: Market): bigint {
  const coins = LEVEL_USD / startingPrice(market.base.ticker)
  return wholeLots(
    market,
    (BigInt(Math.ceil(coins * 1e6)) * power(market.base.decimals)) / 1_000_000n,
  )
}
