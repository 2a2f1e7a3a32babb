import { PRICE_DECIMALS } from '../../prices/quotes.ts'
import { REGISTRY } from '../../registry.ts'
import { ceilDivide, power } from './numbers.ts'

export interface Coin {
  ticker: string
  /** Of its balances. */ decimals: number
}

/** Amounts are integers of the coins' own decimals; a price is one of `priceDecimals`. */
export interface Market {
  id: string
  base: Coin
  quote: Coin
  priceDecimals: number
  lotDecimals: number
  /** Of the base coin. */
  minVolume: bigint
  /** Of the quote coin. */
  minCost: bigint
}

/** What one venue's markets are like. Fees are in hundredths of a per cent. */
export interface VenueRules {
  takerBps: bigint
  makerBps: bigint
  markets: readonly Market[]
  coins: ReadonlyMap<string, Coin>
}

/** What one coin costs at first, in USD. */
const STARTING = new Map(
  REGISTRY.coins.map(({ ticker, local_price: price }) => [ticker, Number(price)]),
)
export const startingPrice = (ticker: string): number =>
  ticker === 'USD' ? 1 : (STARTING.get(ticker) ?? 0)

export const magnitude = (price: number): number => Math.floor(Math.log10(price) + 1e-9)

/** What a volume costs at a price, in the quote coin: a broken smallest unit is cut off. */
export function costOf(
  { base, quote, priceDecimals }: Market,
  price: bigint,
  volume: bigint,
): bigint {
  return (price * volume * power(quote.decimals)) / power(priceDecimals + base.decimals)
}

/** As {@link costOf}, a broken smallest unit counted whole. */
export function costAtMost(
  { base, quote, priceDecimals }: Market,
  price: bigint,
  volume: bigint,
): bigint {
  return ceilDivide(price * volume * power(quote.decimals), power(priceDecimals + base.decimals))
}

/** The largest volume in whole lots that a cost pays for at a price. */
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
 * What the local prices say of a market, in the market's own price: rounded to a tick downwards or
 * upwards.
 * @param priceOf of a coin, in USD of PRICE_DECIMALS
 * @param partsPerMillion by which the price is moved before it is rounded
 * @returns null where one of the coins has no price, or no tick is as small as it
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
