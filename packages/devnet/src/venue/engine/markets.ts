import { PRICE_DECIMALS } from '../../prices/quotes.ts'
import { REGISTRY } from '../../registry.ts'
import { ceilDivide, power } from './numbers.ts'

export interface Coin {
  ticker: string
  /** Decimals of its balances. */
  decimals: number
}

/** Amounts are integers with the coins' own decimals; a price has `priceDecimals`. */
export interface Market {
  id: string
  base: Coin
  quote: Coin
  priceDecimals: number
  lotDecimals: number
  /** Minimum volume in the base coin. */
  minVolume: bigint
  /** Minimum cost in the quote coin. */
  minCost: bigint
}

/** Rules of one venue's markets. Fees are in hundredths of a percent. */
export interface VenueRules {
  takerBps: bigint
  makerBps: bigint
  markets: readonly Market[]
  coins: ReadonlyMap<string, Coin>
}

/** Initial price of each coin in USD. */
const STARTING = new Map(
  REGISTRY.coins.map(({ ticker, local_price: price }) => [ticker, Number(price)]),
)
export const startingPrice = (ticker: string): number =>
  ticker === 'USD' ? 1 : (STARTING.get(ticker) ?? 0)

export const magnitude = (price: number): number => Math.floor(Math.log10(price) + 1e-9)

/** Returns the cost of a volume at a price in the quote coin, rounded down to its smallest unit. */
export function costOf(
  { base, quote, priceDecimals }: Market,
  price: bigint,
  volume: bigint,
): bigint {
  return (price * volume * power(quote.decimals)) / power(priceDecimals + base.decimals)
}

/** Like {@link costOf}, but rounded up. */
export function costAtMost(
  { base, quote, priceDecimals }: Market,
  price: bigint,
  volume: bigint,
): bigint {
  return ceilDivide(price * volume * power(quote.decimals), power(priceDecimals + base.decimals))
}

/** Returns the largest volume in whole lots that a cost pays for at a price. */
export function volumeFor(market: Market, price: bigint, cost: bigint): bigint {
  const { base, quote, priceDecimals } = market
  return wholeLots(
    market,
    (cost * power(priceDecimals + base.decimals)) / (price * power(quote.decimals)),
  )
}

export const lotOf = ({ base, lotDecimals }: Market): bigint =>
  power(Math.max(0, base.decimals - lotDecimals))

export const wholeLots = (market: Market, volume: bigint): bigint =>
  volume - (volume % lotOf(market))

/**
 * Converts the local prices to a market's price, rounded down or up to a tick.
 * @param priceOf price of a coin, in USD with PRICE_DECIMALS
 * @param partsPerMillion by which the price is moved before it is rounded
 * @returns null if one of the coins has no price, or the price is less than a tick
 */
export function quoted(
  { base, quote, priceDecimals }: Market,
  priceOf: (coin: string) => bigint | undefined,
  partsPerMillion: bigint,
  upwards: boolean,
): bigint | null {
  const usd = (coin: string) => (coin === 'USD' ? power(PRICE_DECIMALS) : priceOf(coin))
  const [one, other] = [usd(base.ticker), usd(quote.ticker)]
  if (one === undefined || other === undefined) return null
  const [above, below] = [
    one * (1_000_000n + partsPerMillion) * power(priceDecimals),
    other * 1_000_000n,
  ]
  const price = upwards ? ceilDivide(above, below) : above / below
  return price > 0n ? price : null
}
