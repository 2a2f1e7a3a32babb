import { randomBytes } from 'node:crypto'
import { REGISTRY } from '../../registry.ts'
import {
  magnitude,
  startingPrice,
  type Coin,
  type Market,
  type VenueRules,
} from '../engine/markets.ts'
import { power } from '../engine/numbers.ts'
import { digest, type VenueKind } from '../venue.ts'

export const DECIMALS = 8
/** Minimum value of an order in USD. */
const MIN_USD = 5
/** First id of an order, far from 1. */
const FIRST_ID = 1_000_000
/** User IDs of accounts have nine digits. */
const FIRST_UID = 100_000_000
const UIDS = 800_000_000

const TICKERS = REGISTRY.coins.map(({ ticker }) => ticker)
const COINS: ReadonlyMap<string, Coin> = new Map(
  TICKERS.map((ticker) => [ticker, { ticker, decimals: DECIMALS }]),
)

/** Coins that are traded against each quote coin. */
const QUOTES: Record<string, readonly string[]> = {
  USDT: TICKERS.filter((ticker) => ticker !== 'USDT'),
  USDC: ['BTC', 'ETH', 'SOL', 'XRP', 'BNB', 'LTC', 'DOGE', 'ADA', 'TRX'],
  BTC: ['ETH', 'LTC', 'XRP', 'BNB', 'SOL', 'ADA'],
}

function market(base: string, quote: string): Market {
  const price = startingPrice(base) / startingPrice(quote)
  const lotDecimals = Math.min(DECIMALS, Math.max(0, magnitude(startingPrice(base)) + 1))
  return {
    id: base + quote,
    base: COINS.get(base)!,
    quote: COINS.get(quote)!,
    priceDecimals: Math.min(DECIMALS, Math.max(2, 4 - magnitude(price))),
    lotDecimals,
    minVolume: power(DECIMALS - lotDecimals),
    minCost: quote === 'BTC' ? power(DECIMALS - 4) : BigInt(MIN_USD) * power(DECIMALS),
  }
}

export const BINANCE_RULES: VenueRules = {
  takerBps: 10n,
  makerBps: 10n,
  coins: COINS,
  markets: Object.entries(QUOTES).flatMap(([quote, bases]) =>
    bases.map((base) => market(base, quote)),
  ),
}

export const marketNamed = (symbol: string | undefined): Market | undefined =>
  BINANCE_RULES.markets.find(({ id }) => id === symbol)

/** Binance's names of networks that differ from those of the asset registry. */
const NETWORKS: Record<string, string> = {
  POL: 'MATIC',
  ARB: 'ARBITRUM',
  AVAX: 'AVAXC',
  OP_ETH: 'OPTIMISM',
  CRO: 'CRONOS',
}
export const networkId = (network: string): string => NETWORKS[network] ?? network

export const BINANCE: VenueKind = {
  exchange: 'BINANCE',
  rules: BINANCE_RULES,
  playMoney: { USDT: '100000', USDC: '50000', BTC: '1', ETH: '10', BNB: '10' },
  newKey: () => ({ key: randomBytes(32).toString('hex'), secret: randomBytes(32).toString('hex') }),
  nameOf: (_, number) => String(FIRST_ID + number),
  accountIdOf: (number, seed) =>
    String(FIRST_UID + (digest('account', seed).readUInt32BE() % UIDS) + number),
}
