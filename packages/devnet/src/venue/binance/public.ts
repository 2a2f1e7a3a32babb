import type { Level } from '../engine/book.ts'
import { lotOf, quoted, type Market } from '../engine/markets.ts'
import { power } from '../engine/numbers.ts'
import { OPEN_ORDERS_MAX } from '../engine/engine.ts'
import type { Side } from '../engine/types.ts'
import type { Venue } from '../venue.ts'
import { amountText, BinanceError, limitOf, needed, type Arguments } from './answer.ts'
import { BINANCE_RULES, DECIMALS, marketNamed } from './names.ts'

/** Maximum factors by which a limit price may be above or below the current price. */
export const PERCENT_UP = 5n
export const PERCENT_DOWN = 5n
const QUANTITY_MAX = 9_000_000n
const DEPTH_MAX = 5000
const DAY_MS = 86_400_000

export const priceText = ({ priceDecimals }: Market, price: bigint): string =>
  amountText(price * power(DECIMALS - priceDecimals))

export const timeShape = (venue: Venue): unknown => ({ serverTime: venue.now() })

export function exchangeInfo(venue: Venue, args: Arguments): unknown {
  return {
    timezone: 'UTC',
    serverTime: venue.now(),
    exchangeFilters: [],
    rateLimits: [
      { rateLimitType: 'REQUEST_WEIGHT', interval: 'MINUTE', intervalNum: 1, limit: 6000 },
      { rateLimitType: 'ORDERS', interval: 'SECOND', intervalNum: 10, limit: 100 },
    ],
    symbols: marketsIn(args).map((market) => symbolShape(market)),
  }
}

/** Returns the markets that `symbol` or `symbols` names, or all. */
export function marketsIn({ symbol, symbols }: Arguments): readonly Market[] {
  if (symbol === undefined && symbols === undefined) return BINANCE_RULES.markets
  if (symbol !== undefined && symbols !== undefined)
    throw new BinanceError(-1128, 'Combination of optional parameters invalid.')
  let names: unknown = [symbol]
  try {
    if (symbols !== undefined) names = JSON.parse(symbols)
  } catch {
    names = null
  }
  if (!Array.isArray(names) || names.length === 0)
    throw new BinanceError(-1100, "Illegal characters found in parameter 'symbols'.")
  return names.map((name) => marketIn(String(name)))
}

/**
 * Returns a market.
 * @throws BinanceError if it does not exist
 */
export function marketIn(symbol: string): Market {
  const market = marketNamed(symbol)
  if (!market) throw new BinanceError(-1121, 'Invalid symbol.')
  return market
}

function symbolShape(market: Market): unknown {
  const { id, base, quote } = market
  const [tick, lot] = [priceText(market, 1n), amountText(lotOf(market))]
  return {
    symbol: id,
    status: 'TRADING',
    baseAsset: base.ticker,
    baseAssetPrecision: DECIMALS,
    quoteAsset: quote.ticker,
    quotePrecision: DECIMALS,
    quoteAssetPrecision: DECIMALS,
    baseCommissionPrecision: DECIMALS,
    quoteCommissionPrecision: DECIMALS,
    orderTypes: ['LIMIT', 'LIMIT_MAKER', 'MARKET'],
    icebergAllowed: false,
    ocoAllowed: false,
    otoAllowed: false,
    quoteOrderQtyMarketAllowed: true,
    allowTrailingStop: false,
    cancelReplaceAllowed: false,
    isSpotTradingAllowed: true,
    isMarginTradingAllowed: false,
    filters: [
      { filterType: 'PRICE_FILTER', minPrice: tick, maxPrice: '1000000.00000000', tickSize: tick },
      {
        filterType: 'LOT_SIZE',
        minQty: amountText(market.minVolume),
        maxQty: amountText(QUANTITY_MAX * power(DECIMALS)),
        stepSize: lot,
      },
      {
        filterType: 'MARKET_LOT_SIZE',
        minQty: amountText(0n),
        maxQty: amountText(QUANTITY_MAX * power(DECIMALS)),
        stepSize: amountText(0n),
      },
      {
        filterType: 'PERCENT_PRICE_BY_SIDE',
        bidMultiplierUp: String(PERCENT_UP),
        bidMultiplierDown: '0.2',
        askMultiplierUp: String(PERCENT_UP),
        askMultiplierDown: '0.2',
        avgPriceMins: 5,
      },
      {
        filterType: 'NOTIONAL',
        minNotional: amountText(market.minCost),
        applyMinToMarket: true,
        maxNotional: '9000000.00000000',
        applyMaxToMarket: false,
        avgPriceMins: 5,
      },
      { filterType: 'MAX_NUM_ORDERS', maxNumOrders: OPEN_ORDERS_MAX },
    ],
    permissions: [],
    permissionSets: [['SPOT']],
    defaultSelfTradePreventionMode: 'EXPIRE_TAKER',
    allowedSelfTradePreventionModes: ['EXPIRE_TAKER'],
  }
}

export function depthShape(venue: Venue, args: Arguments): unknown {
  const market = marketIn(needed(args, 'symbol'))
  const limit = limitOf(args, 100, DEPTH_MAX)
  const side = (which: Side) =>
    venue.engine
      .depth(market, which)
      .slice(0, limit)
      .map(({ price, volume }) => [priceText(market, price), amountText(volume)])
  return { lastUpdateId: venue.now(), bids: side('buy'), asks: side('sell') }
}

interface Top {
  market: Market
  bid: Level
  ask: Level
  last: bigint
}

/** Returns the best bids and asks. Markets without a price of the market maker are left out. */
function tops(venue: Venue, args: Arguments): Top[] {
  return marketsIn(args).flatMap((market) => {
    const [bid, ask] = [venue.engine.depth(market, 'buy')[0], venue.engine.depth(market, 'sell')[0]]
    const last = quoted(market, venue.priceOf, 0n, false)
    return bid && ask && last !== null ? [{ market, bid, ask, last }] : []
  })
}

function single<Each>(args: Arguments, all: Each[]): Each | Each[] {
  if (args['symbol'] === undefined) return all
  const [one] = all
  if (one === undefined) throw new BinanceError(-1112, 'No orders on book for symbol.')
  return one
}

export const bookTicker = (venue: Venue, args: Arguments): unknown =>
  single(
    args,
    tops(venue, args).map(({ market, bid, ask }) => ({
      symbol: market.id,
      bidPrice: priceText(market, bid.price),
      bidQty: amountText(bid.volume),
      askPrice: priceText(market, ask.price),
      askQty: amountText(ask.volume),
    })),
  )

/**
 * Returns the daily ticker. The last trade has the local price, as if it had just been traded
 * there.
 */
export function dayTicker(venue: Venue, args: Arguments): unknown {
  const now = venue.now()
  return single(
    args,
    tops(venue, args).map(({ market, bid, ask, last }) => {
      const [price, low, high] = [
        priceText(market, last),
        priceText(market, bid.price),
        priceText(market, ask.price),
      ]
      return {
        symbol: market.id,
        priceChange: amountText(0n),
        priceChangePercent: '0.000',
        weightedAvgPrice: price,
        prevClosePrice: price,
        lastPrice: price,
        lastQty: amountText(market.minVolume),
        bidPrice: low,
        bidQty: amountText(bid.volume),
        askPrice: high,
        askQty: amountText(ask.volume),
        openPrice: price,
        highPrice: high,
        lowPrice: low,
        volume: '980.25000000',
        quoteVolume: '980.25000000',
        openTime: now - DAY_MS,
        closeTime: now,
        firstId: 0,
        lastId: 2239,
        count: 2240,
      }
    }),
  )
}
