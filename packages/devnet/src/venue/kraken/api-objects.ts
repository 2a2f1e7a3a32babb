import { power, padded, trimmed } from '../engine/numbers.ts'
import type { Order, Trade, OrderParams } from '../engine/types.ts'
import type { Venue } from '../venue.ts'
import { seconds } from './answer.ts'
import { assetOf, pairOf, type Pair } from './names.ts'

const VOLUME_DECIMALS = 8
const COST_DECIMALS = 5
const STATUS = { open: 'open', filled: 'closed', cancelled: 'canceled' }
const REASON = {
  user: 'User requested',
  unfilled: 'Insufficient liquidity',
  'own-order': 'Self trade prevention',
}

const volumeText = ({ market }: Pair, volume: bigint): string =>
  padded(volume / power(market.base.decimals - VOLUME_DECIMALS), VOLUME_DECIMALS)
/** Formats a quote amount with five decimals, or with those of the coin if it has more. */
function costText({ market: { quote } }: Pair, cost: bigint): string {
  return quote.decimals >= COST_DECIMALS
    ? padded(cost, quote.decimals)
    : `${padded(cost, quote.decimals)}0`
}

/** Formats an order, such as "buy 1.25000000 XBTUSD @ limit 37500.0". */
export function describe(pair: Pair, { side, price, volume, spend }: OrderParams): string {
  const amount = spend !== null ? costText(pair, spend) : volumeText(pair, volume!)
  return `${side} ${amount} ${pair.alt} @ ${price === null ? 'market' : `limit ${padded(price, pair.market.priceDecimals)}`}`
}

export function orderShape(
  venue: Venue,
  order: Order,
  withTrades: boolean,
): Record<string, unknown> {
  const pair = pairOf(order.market)
  const { price, side, filled, cost, fee } = order
  const { market } = pair
  const average =
    filled === 0n
      ? 0n
      : (cost * power(market.priceDecimals + market.base.decimals)) /
        (filled * power(market.quote.decimals))
  const priceText = (value: bigint) => padded(value, market.priceDecimals)
  const isBaseFee = order.feeIn === 'base' && side === 'buy'
  const trades =
    venue.faults.mode === 'duplicate-fill' ? order.trades.flatMap((id) => [id, id]) : order.trades
  return {
    refid: null,
    userref: order.userref,
    ...(order.clientId === null ? {} : { cl_ord_id: order.clientId }),
    status: STATUS[order.status],
    opentm: seconds(order.openedMs),
    starttm: 0,
    expiretm: 0,
    descr: {
      pair: pair.alt,
      type: side,
      ordertype: price === null ? 'market' : 'limit',
      price: price === null ? '0' : priceText(price),
      price2: '0',
      leverage: 'none',
      order: describe(pair, order),
      close: '',
    },
    vol: order.spend === null ? volumeText(pair, order.volume!) : costText(pair, order.spend),
    vol_exec: volumeText(pair, filled),
    cost: costText(pair, cost),
    fee: isBaseFee ? padded(fee, market.base.decimals) : costText(pair, fee),
    price: priceText(average),
    stopprice: '0.00000',
    limitprice: '0.00000',
    misc: '',
    oflags: flagsOf(order).join(','),
    ...(withTrades ? { trades } : {}),
    ...(order.closedMs === null
      ? {}
      : {
          reason: order.ending === null ? null : REASON[order.ending],
          closetm: seconds(order.closedMs),
        }),
  }
}

function flagsOf({ feeIn, postOnly, spend }: Order): string[] {
  return [
    feeIn === 'base' ? 'fcib' : 'fciq',
    ...(postOnly ? ['post'] : []),
    ...(spend === null ? [] : ['viqc']),
  ]
}

export function tradeShape(trade: Trade): Record<string, unknown> {
  const pair = pairOf(trade.market)
  return {
    ordertxid: trade.order,
    postxid: `TKH${trade.id.slice(3)}`,
    pair: pair.market.id,
    aclass: 'forex',
    time: seconds(trade.atMs),
    type: trade.side,
    ordertype: trade.isLimit ? 'limit' : 'market',
    price: padded(trade.price, pair.market.priceDecimals),
    cost: costText(pair, trade.cost),
    fee: padded(trade.fee, assetOf(trade.feeCoin).decimals),
    vol: volumeText(pair, trade.volume),
    margin: '0.00000',
    leverage: '0',
    misc: '',
    trade_id: trade.number,
    maker: trade.isMaker,
  }
}

/** Formats an amount with all decimals of its asset. */
export const amountText = (coin: string, value: bigint): string =>
  padded(value, assetOf(coin).decimals)
export const shortText = (coin: string, value: bigint): string =>
  trimmed(value, assetOf(coin).decimals)
