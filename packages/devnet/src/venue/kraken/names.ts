import {
  magnitude,
  startingPrice,
  type Coin,
  type Market,
  type VenueRules,
} from '../engine/markets.ts'
import { power, readDecimal } from '../engine/numbers.ts'
import { digest, type VenueKind } from '../venue.ts'
import { randomBytes } from 'node:crypto'

/**
 * Kraken's own names of assets: coin, id, alternative name. Kraken does not list ONE, FTM and KLAY
 * against USD.
 */
const ASSETS: readonly (readonly [coin: string, id: string, alt: string])[] = [
  ['USD', 'ZUSD', 'USD'],
  ['BTC', 'XXBT', 'XBT'],
  ['ETH', 'XETH', 'ETH'],
  ['LTC', 'XLTC', 'LTC'],
  ['XRP', 'XXRP', 'XRP'],
  ['XLM', 'XXLM', 'XLM'],
  ['DOGE', 'XXDG', 'XDG'],
  ...['USDT', 'USDC', 'DASH', 'BCH', 'BNB', 'POL', 'AVAX', 'CRO', 'TRX', 'ADA', 'SOL'].map(
    (coin) => [coin, coin, coin] as const,
  ),
]
export interface Asset {
  coin: string
  id: string
  alt: string
  decimals: number
}

const decimalsOf = (coin: string): number => (coin === 'USD' ? 4 : coin.startsWith('USD') ? 8 : 10)

export const KRAKEN_ASSETS: readonly Asset[] = ASSETS.map(([coin, id, alt]) => ({
  coin,
  id,
  alt,
  decimals: decimalsOf(coin),
}))

/** Finds an asset by any of its names. */
export const assetNamed = (name: string): Asset | undefined =>
  KRAKEN_ASSETS.find(
    ({ coin, id, alt }) =>
      name === id || name === alt || (name === coin && coin !== 'BTC' && coin !== 'DOGE'),
  )
export const assetOf = (coin: string): Asset => KRAKEN_ASSETS.find((asset) => asset.coin === coin)!

/** Pairs with another quote coin than USD. */
const CROSSES: Record<string, readonly string[]> = {
  USDT: ['BTC', 'ETH', 'SOL', 'XRP', 'LTC', 'DOGE', 'ADA'],
  USDC: ['BTC', 'ETH', 'SOL', 'XRP', 'USDT'],
  BTC: ['ETH', 'LTC', 'XRP', 'SOL', 'ADA'],
}
const MIN_COST: Record<string, string> = { BTC: '0.00002' }
const LOT_DECIMALS = 8
/** Value in USD of the smallest order, before it is rounded down to a power of ten. */
const MIN_USD = 5

const COINS: ReadonlyMap<string, Coin> = new Map(
  KRAKEN_ASSETS.map(({ coin, decimals }) => [coin, { ticker: coin, decimals }]),
)

export interface Pair {
  market: Market
  alt: string
  ws: string
  base: Asset
  quote: Asset
}

function pair(base: Asset, quote: Asset): Pair {
  const alt = base.alt + quote.alt
  const isOld = (asset: Asset) => asset.id !== asset.alt
  // Two of Kraken's exceptions: tether pairs have the old name of the dollar, doge pairs do not.
  const isAllOld = isOld(base) && isOld(quote) && base.coin !== 'DOGE'
  const id =
    base.coin === 'USDT' && quote.coin === 'USD' ? 'USDTZUSD' : isAllOld ? base.id + quote.id : alt
  const price = startingPrice(base.coin) / startingPrice(quote.coin)
  return {
    alt,
    ws: `${base.alt}/${quote.alt}`,
    base,
    quote,
    market: {
      id,
      base: COINS.get(base.coin)!,
      quote: COINS.get(quote.coin)!,
      priceDecimals: Math.max(1, 5 - magnitude(price)),
      lotDecimals: LOT_DECIMALS,
      minVolume: power(base.decimals + magnitude(MIN_USD / startingPrice(base.coin))),
      minCost: readDecimal(MIN_COST[quote.coin] ?? '0.5', quote.decimals)!,
    },
  }
}

export const PAIRS: readonly Pair[] = [
  ...KRAKEN_ASSETS.filter(({ coin }) => coin !== 'USD').map((base) => pair(base, assetOf('USD'))),
  ...Object.entries(CROSSES).flatMap(([quote, bases]) =>
    bases.map((base) => pair(assetOf(base), assetOf(quote))),
  ),
]

/** Finds a pair by its id, its alternative name or its WebSocket name. */
export const pairNamed = (name: string): Pair | undefined =>
  PAIRS.find(({ market, alt, ws }) => name === market.id || name === alt || name === ws)
export const pairOf = (market: string): Pair => PAIRS.find((each) => each.market.id === market)!

const KRAKEN_RULES: VenueRules = {
  takerBps: 40n,
  makerBps: 25n,
  markets: PAIRS.map(({ market }) => market),
  coins: COINS,
}

const LETTERS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567'

/** Returns 16 letters that follow from words. */
const lettersOf = (...words: string[]): string =>
  Array.from(digest(...words).subarray(0, 16), (byte) => LETTERS[byte & 31]).join('')

/** Creates a public account ID (IIBAN) in Kraken's form, such as AA88 N84G WOAK NMOI. */
function ibanOf(number: number, seed: string): string {
  const letters = lettersOf('account', seed, String(number))
  return `AA${letters.slice(0, 2)} N84G ${letters.slice(2, 6)} ${letters.slice(6, 10)}`
}

/**
 * Creates an id in Kraken's form, such as OQCLML-BW3P3-BUCMWZ, from a secret of the venue and a
 * number.
 */
export function krakenId(first: string, ...words: string[]): string {
  const letters = lettersOf(first, ...words)
  return `${first}${letters.slice(0, 5)}-${letters.slice(5, 10)}-${letters.slice(10, 16)}`
}

export const KRAKEN: VenueKind = {
  exchange: 'KRAKEN',
  rules: KRAKEN_RULES,
  playMoney: { USD: '100000', USDT: '50000', USDC: '50000', BTC: '1', ETH: '10' },
  newKey: () => ({
    key: randomBytes(42).toString('base64'),
    secret: randomBytes(64).toString('base64'),
  }),
  nameOf: (kind, number, seed) => krakenId(kind === 'order' ? 'O' : 'T', seed, String(number)),
  accountIdOf: ibanOf,
}
