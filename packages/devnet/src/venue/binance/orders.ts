import { randomBytes } from 'node:crypto'
import { costOf, lotOf, quoted, type Market } from '../engine/markets.ts'
import { readDecimal } from '../engine/numbers.ts'
import { Refused, type Order, type Refusal, type Trade, type OrderParams } from '../engine/types.ts'
import type { Venue } from '../venue.ts'
import {
  amountText,
  BinanceError,
  filter,
  illegal,
  limitOf,
  missing,
  needed,
  whole,
  type Arguments,
} from './answer.ts'
import type { Call } from './call.ts'
import { DECIMALS, marketNamed } from './names.ts'
import { marketIn, PERCENT_DOWN, PERCENT_UP, priceText } from './public.ts'

const DAY_MS = 86_400_000
const LIST_MAX = 1000
const LIST_USUAL = 500
const CLIENT_ID = /^[a-zA-Z0-9-_.:/]{1,36}$/

const refusalOf = (refusal: Refusal): BinanceError => {
  if (refusal === 'orders-limit') return filter('MAX_NUM_ORDERS')
  return new BinanceError(
    -2010,
    {
      funds: 'Account has insufficient balance for requested action.',
      'post-only': 'Order would immediately match and take.',
      'client-id': 'Duplicate order sent.',
    }[refusal],
  )
}

/**
 * Places an order.
 * @param isTrial `order/test`: the order is checked and not placed
 */
export function newOrder({ venue, key, args, guard }: Call, isTrial = false): unknown {
  const market = marketIn(needed(args, 'symbol'))
  const params = wishOf(venue, market, args)
  if (!isTrial) guard.countOrder(key)
  try {
    const order = venue.engine.place(
      venue.engine.accounts.get(key.account)!,
      market,
      params,
      isTrial,
    )
    return isTrial
      ? {}
      : responseShape(
          venue,
          market,
          order,
          args['newOrderRespType'] ?? (params.postOnly ? 'ACK' : 'FULL'),
        )
  } catch (error) {
    if (error instanceof Refused) throw refusalOf(error.refusal)
    throw error
  }
}

function wishOf(venue: Venue, market: Market, args: Arguments): OrderParams {
  const [side, type] = [needed(args, 'side').toLowerCase(), needed(args, 'type')]
  if (side !== 'buy' && side !== 'sell') throw new BinanceError(-1117, 'Invalid side.')
  if (type !== 'LIMIT' && type !== 'LIMIT_MAKER' && type !== 'MARKET')
    throw new BinanceError(-1116, 'Invalid orderType.')
  const timeInForce = timeInForceIn(args, type)
  const { newClientOrderId: clientId } = args
  if (clientId !== undefined && !CLIENT_ID.test(clientId))
    throw illegal('newClientOrderId', '^[a-zA-Z0-9-_.:/]{1,36}$')
  const { quoteOrderQty } = args
  const spend = type === 'MARKET' && quoteOrderQty ? decimalIn(args, 'quoteOrderQty') : null
  if (spend !== null && args['quantity'])
    throw new BinanceError(-1106, "Parameter 'quantity' sent when not required.")
  const volume = spend === null ? decimalIn(args, 'quantity') : null
  const price = type === 'MARKET' ? null : priceIn(market, args)
  filters(venue, market, { side, price, volume, spend })
  return {
    side,
    price,
    volume,
    spend,
    timeInForce,
    postOnly: type === 'LIMIT_MAKER',
    feeIn: 'base',
    userref: null,
    clientId: clientId ?? randomBytes(11).toString('hex'),
  }
}

/**
 * Reads how long an order lasts.
 * @throws BinanceError
 */
function timeInForceIn(args: Arguments, type: string): OrderParams['timeInForce'] {
  const { timeInForce } = args
  if (type === 'LIMIT' && !timeInForce) throw missing('timeInForce')
  if (type !== 'LIMIT' && timeInForce)
    throw new BinanceError(-1106, "Parameter 'timeInForce' sent when not required.")
  const lasting = timeInForce || 'GTC'
  if (lasting !== 'GTC' && lasting !== 'IOC' && lasting !== 'FOK')
    throw new BinanceError(-1115, 'Invalid timeInForce.')
  return lasting
}

function decimalIn(args: Arguments, name: string): bigint {
  const text = needed(args, name)
  const value = readDecimal(text, DECIMALS)
  if (value !== null && value > 0n) return value
  if (/^\d+\.\d+$/.test(text) && Number(text) > 0)
    throw new BinanceError(-1111, `Parameter '${name}' has too much precision.`)
  throw illegal(name, '^([0-9]{1,20})(\\.[0-9]{1,20})?$')
}

/** Reads a price with the market's own decimals. */
function priceIn(market: Market, args: Arguments): bigint {
  decimalIn(args, 'price')
  const price = readDecimal(needed(args, 'price'), market.priceDecimals)
  if (price === null) throw filter('PRICE_FILTER')
  return price
}

function filters(
  venue: Venue,
  market: Market,
  { side, price, volume, spend }: Pick<OrderParams, 'side' | 'price' | 'volume' | 'spend'>,
): void {
  if (volume !== null && (volume < market.minVolume || volume % lotOf(market) !== 0n))
    throw filter('LOT_SIZE')
  const reference = quoted(market, venue.priceOf, 0n, false)
  if (
    reference !== null &&
    price !== null &&
    (price > reference * PERCENT_UP || price * PERCENT_DOWN < reference)
  ) {
    throw filter('PERCENT_PRICE_BY_SIDE')
  }
  const at = price ?? reference
  const cost = spend ?? (at === null ? null : costOf(market, at, volume!))
  if (cost !== null && cost < market.minCost) throw filter('NOTIONAL')
  if (volume === null && side === 'sell' && reference === null) throw filter('NOTIONAL')
}

function statusOf({ status, ending, filled }: Order): string {
  if (status === 'open') return filled > 0n ? 'PARTIALLY_FILLED' : 'NEW'
  if (status === 'filled') return 'FILLED'
  return ending === 'user' ? 'CANCELED' : ending === 'own-order' ? 'EXPIRED_IN_MATCH' : 'EXPIRED'
}

const typeOf = ({ price, postOnly }: Order): string =>
  price === null ? 'MARKET' : postOnly ? 'LIMIT_MAKER' : 'LIMIT'

/** Returns the fields that all responses about an order have. */
function common(market: Market, order: Order): Record<string, unknown> {
  return {
    symbol: market.id,
    orderId: Number(order.id),
    orderListId: -1,
    clientOrderId: order.clientId,
    price: order.price === null ? amountText(0n) : priceText(market, order.price),
    origQty: amountText(order.volume!),
    executedQty: amountText(order.filled),
    origQuoteOrderQty: amountText(order.spend ?? 0n),
    cummulativeQuoteQty: amountText(order.cost),
    status: statusOf(order),
    timeInForce: order.timeInForce,
    type: typeOf(order),
    side: order.side.toUpperCase(),
    selfTradePreventionMode: 'EXPIRE_TAKER',
  }
}

function orderShape(market: Market, order: Order): Record<string, unknown> {
  return {
    ...common(market, order),
    stopPrice: amountText(0n),
    icebergQty: amountText(0n),
    time: order.openedMs,
    updateTime: order.closedMs ?? order.openedMs,
    isWorking: true,
    workingTime: order.openedMs,
  }
}

function responseShape(venue: Venue, market: Market, order: Order, type: string): unknown {
  const { symbol, orderId, orderListId, clientOrderId, ...more } = common(market, order)
  const taken = { symbol, orderId, orderListId, clientOrderId, transactTime: order.openedMs }
  if (type === 'ACK') return taken
  const result = { ...taken, ...more, workingTime: order.openedMs }
  if (type === 'RESULT') return result
  return {
    ...result,
    fills: order.trades
      .map((id) => venue.engine.trades.get(id)!)
      .map((trade) => ({
        price: priceText(market, trade.price),
        qty: amountText(trade.volume),
        commission: amountText(trade.fee),
        commissionAsset: trade.feeCoin,
        tradeId: trade.number,
      })),
  }
}

/**
 * Finds an order. If two have the same client id, of which at most one is open, returns the newest.
 */
function findOrder(
  { venue, key, args }: Call,
  market: Market,
  isOpenOnly: boolean,
): Order | undefined {
  const [id, clientId] = [whole(args, 'orderId'), args['origClientOrderId']]
  if (id === null && !clientId) {
    throw new BinanceError(
      -1102,
      "Param 'origClientOrderId' or 'orderId' must be sent, but both were empty/null!",
    )
  }
  return [...venue.engine.orders.values()].findLast(
    (order) =>
      order.account === key.account &&
      order.market === market.id &&
      (!isOpenOnly || order.status === 'open') &&
      venue.shows(order) &&
      (id === null || order.id === String(id)) &&
      (!clientId || order.clientId === clientId),
  )
}

export function queryOrder(call: Call): unknown {
  const market = marketIn(needed(call.args, 'symbol'))
  const order = findOrder(call, market, false)
  if (!order) throw new BinanceError(-2013, 'Order does not exist.')
  return orderShape(market, order)
}

/** Cancels an order. The cancellation has its own client id. */
export function cancelOrder(call: Call): unknown {
  const market = marketIn(needed(call.args, 'symbol'))
  const order = findOrder(call, market, true)
  if (order) call.venue.engine.cancel(order)
  if (order?.status !== 'cancelled') throw new BinanceError(-2011, 'Unknown order sent.')
  return {
    ...common(market, order),
    origClientOrderId: order.clientId,
    clientOrderId: call.args['newClientOrderId'] ?? randomBytes(11).toString('hex'),
    transactTime: order.closedMs,
  }
}

export function openOrders({ venue, key, args }: Call): unknown {
  const market = args['symbol'] ? marketIn(args['symbol']) : null
  return venue.engine
    .openOrders(key.account)
    .filter((order) => (market === null || order.market === market.id) && venue.shows(order))
    .map((order) => orderShape(marketNamed(order.market)!, order))
}

/** Returns orders: without a start the newest; with one the first from there. */
export function allOrders({ venue, key, args }: Call): unknown {
  const market = marketIn(needed(args, 'symbol'))
  const from = whole(args, 'orderId')
  const all = [...venue.engine.orders.values()].filter(
    (order) =>
      order.account === key.account &&
      order.market === market.id &&
      venue.shows(order) &&
      (from === null || Number(order.id) >= from),
  )
  return paged(args, all, ({ openedMs }) => openedMs, from !== null).map((order) =>
    orderShape(market, order),
  )
}

export function myTrades({ venue, key, args }: Call): unknown {
  const market = marketIn(needed(args, 'symbol'))
  const [order, from] = [whole(args, 'orderId'), whole(args, 'fromId')]
  const all = [...venue.engine.trades.values()].filter(
    (trade) =>
      trade.account === key.account &&
      trade.market === market.id &&
      (order === null || trade.order === String(order)) &&
      (from === null || trade.number >= from) &&
      venue.shows(venue.engine.orders.get(trade.order)!),
  )
  const page = paged(args, all, ({ atMs }) => atMs, from !== null)
  return (
    venue.faults.mode === 'duplicate-fill' ? page.flatMap((trade) => [trade, trade]) : page
  ).map((trade) => tradeShape(market, trade))
}

function paged<Each>(
  args: Arguments,
  all: Each[],
  atMs: (each: Each) => number,
  isFrom: boolean,
): Each[] {
  const [start, end, limit] = [
    whole(args, 'startTime'),
    whole(args, 'endTime'),
    limitOf(args, LIST_USUAL, LIST_MAX),
  ]
  if (start !== null && end !== null && end - start > DAY_MS) {
    throw new BinanceError(-1127, 'More than 24 hours between startTime and endTime.')
  }
  const within = all.filter(
    (each) => (start === null || atMs(each) >= start) && (end === null || atMs(each) <= end),
  )
  return isFrom || start !== null ? within.slice(0, limit) : within.slice(-limit)
}

function tradeShape(market: Market, trade: Trade): unknown {
  return {
    symbol: market.id,
    id: trade.number,
    orderId: Number(trade.order),
    orderListId: -1,
    price: priceText(market, trade.price),
    qty: amountText(trade.volume),
    quoteQty: amountText(trade.cost),
    commission: amountText(trade.fee),
    commissionAsset: trade.feeCoin,
    time: trade.atMs,
    isBuyer: trade.side === 'buy',
    isMaker: trade.isMaker,
    isBestMatch: true,
  }
}
