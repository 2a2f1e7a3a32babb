import { costOf, lotOf, type Market } from '../engine/markets.ts'
import { readDecimal } from '../engine/numbers.ts'
import {
  Refused,
  type Order,
  type Refusal,
  type Side,
  type TimeInForce,
  type OrderParams,
} from '../engine/types.ts'
import { invalid, isTrue, KrakenError, needed, seconds, type Arguments } from './answer.ts'
import type { Call } from './call.ts'
import { pairNamed, type Pair } from './names.ts'
import { describe, orderShape, tradeShape } from './api-objects.ts'

const PAGE = 50
const DEADLINE_MAX_MS = 60_000
const FLAGS = ['post', 'viqc', 'fciq', 'fcib']
const REFUSALS: Record<Refusal, string> = {
  funds: 'EOrder:Insufficient funds',
  'post-only': 'EOrder:Post only order',
  'client-id': 'EGeneral:Invalid arguments:cl_ord_id',
  'orders-limit': 'EOrder:Orders limit exceeded',
}

export function addOrder({ venue, key, args, pace }: Call): unknown {
  const pair = pairNamed(needed(args, 'pair'))
  if (!pair) throw new KrakenError('EQuery:Unknown asset pair')
  const params = wishOf(pair, args)
  beforeDeadline(args['deadline'], venue.now())
  const isTrial = isTrue(args['validate'])
  if (!isTrial) pace.order(key, pair.market.id)
  try {
    const order = venue.engine.place(
      venue.engine.accounts.get(key.account)!,
      pair.market,
      params,
      isTrial,
    )
    return { descr: { order: describe(pair, params) }, ...(isTrial ? {} : { txid: [order.id] }) }
  } catch (error) {
    if (error instanceof Refused) throw new KrakenError(REFUSALS[error.refusal])
    throw error
  }
}

function wishOf(pair: Pair, args: Arguments): OrderParams {
  const { market } = pair
  const [side, kind] = [needed(args, 'type'), needed(args, 'ordertype')]
  if (side !== 'buy' && side !== 'sell') throw invalid('type')
  if (kind !== 'market' && kind !== 'limit') throw invalid('ordertype')
  const isMarket = kind === 'market'
  const { isSpending, isPost, isFeeInBase } = flagsIn(args, side, isMarket)
  const timeInForce = args['timeinforce'] ?? 'GTC'
  if (!['GTC', 'IOC', 'FOK'].includes(timeInForce) || (isPost && timeInForce !== 'GTC'))
    throw invalid('timeinforce')
  const volume = readDecimal(
    needed(args, 'volume'),
    isSpending ? market.quote.decimals : market.base.decimals,
  )
  if (volume === null || volume === 0n || (!isSpending && volume % lotOf(market) !== 0n))
    throw invalid('volume')
  const price = isMarket ? null : priceOf(pair, needed(args, 'price'))
  assertMinimum(market, { volume, price, isSpending })
  return {
    side: side as Side,
    price,
    volume: isSpending ? null : volume,
    spend: isSpending ? volume : null,
    timeInForce: timeInForce as TimeInForce,
    postOnly: isPost,
    feeIn: isFeeInBase ? 'base' : 'quote',
    ...referencesOf(args),
  }
}

/**
 * Reads the flags of an order.
 * @throws KrakenError if one is unknown, or two contradict each other
 */
function flagsIn(args: Arguments, side: string, isMarket: boolean) {
  const flags = (args['oflags'] ?? '').split(',').filter((flag) => flag !== '')
  const isSpending = flags.includes('viqc')
  const isPost = flags.includes('post')
  if (!flags.every((flag) => FLAGS.includes(flag)) || (isPost && isMarket)) throw invalid('oflags')
  if (isSpending && (!isMarket || side === 'sell')) throw invalid('oflags')
  if (flags.includes('fcib') && (side === 'sell' || flags.includes('fciq'))) throw invalid('oflags')
  return { isSpending, isPost, isFeeInBase: flags.includes('fcib') }
}

/**
 * Checks the market's minimum volume and cost.
 * @throws KrakenError
 */
function assertMinimum(
  market: Market,
  {
    volume,
    price,
    isSpending,
  }: {
    volume: bigint
    price: bigint | null
    /** Whether `volume` is the amount to spend. */
    isSpending: boolean
  },
): void {
  if (!isSpending && volume < market.minVolume) throw invalid('volume minimum not met')
  if (
    isSpending
      ? volume < market.minCost
      : price !== null && costOf(market, price, volume) < market.minCost
  ) {
    throw new KrakenError('EOrder:Cost minimum not met')
  }
}

function priceOf({ market, ws }: Pair, text: string): bigint {
  const price = readDecimal(text, market.priceDecimals)
  if (price !== null && price > 0n) return price
  if (!/^\d+(\.\d*)?$/.test(text) || Number(text) === 0) throw invalid('price')
  throw new KrakenError(
    `EOrder:Invalid price:${ws} price can only be specified up to ${market.priceDecimals} decimals.`,
  )
}

/**
 * Reads the references of an order: a client id in one of its three forms, and a number that need
 * not be unique.
 */
function referencesOf(args: Arguments): Pick<OrderParams, 'clientId' | 'userref'> {
  const { cl_ord_id: clientId, userref } = args
  if (clientId !== undefined && (userref !== undefined || !isClientId(clientId)))
    throw invalid('cl_ord_id')
  if (
    userref !== undefined &&
    (!/^-?\d{1,10}$/.test(userref) || Math.abs(Number(userref)) >= 2 ** 31)
  )
    throw invalid('userref')
  return { clientId: clientId ?? null, userref: userref === undefined ? null : Number(userref) }
}

const isClientId = (text: string): boolean =>
  /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(text) ||
  /^[0-9a-f]{32}$/i.test(text) ||
  /^[\x21-\x7e]{1,18}$/.test(text)

function beforeDeadline(deadline: string | undefined, nowMs: number): void {
  if (deadline === undefined) return
  const at = Date.parse(deadline)
  if (Number.isNaN(at) || at > nowMs + DEADLINE_MAX_MS) throw invalid('deadline')
  if (at <= nowMs) throw new KrakenError('EService:Deadline elapsed')
}

/**
 * Cancels orders by the venue's id, the client's id, or a user's number, which several orders may
 * have.
 */
export function cancelOrder({ venue, key, args, pace }: Call): unknown {
  const { cl_ord_id: clientId } = args
  const name = clientId ?? needed(args, 'txid')
  const orders = venue.engine
    .openOrders(key.account)
    .filter(
      (order) =>
        venue.shows(order) &&
        (clientId !== undefined
          ? order.clientId === name
          : order.id === name || (order.userref !== null && String(order.userref) === name)),
    )
  if (orders.length === 0) throw new KrakenError('EOrder:Unknown order')
  for (const order of orders) {
    pace.cancel(key, order)
    venue.engine.cancel(order)
  }
  return { count: orders.length }
}

const mine = ({ venue, key }: Call): Order[] =>
  [...venue.engine.orders.values()].filter(
    (order) => order.account === key.account && venue.shows(order),
  )

/** Applies a caller's filters. */
function filtered(orders: Order[], { userref, cl_ord_id: clientId }: Arguments): Order[] {
  if (userref !== undefined && !/^-?\d{1,10}$/.test(userref)) throw invalid('userref')
  return orders.filter(
    (order) =>
      (userref === undefined || String(order.userref) === userref) &&
      (clientId === undefined || order.clientId === clientId),
  )
}

const listed = ({ venue, args }: Call, orders: Order[]): Record<string, unknown> =>
  Object.fromEntries(
    orders.map((order) => [order.id, orderShape(venue, order, isTrue(args['trades']))]),
  )

export function queryOrders(call: Call): unknown {
  const ids = needed(call.args, 'txid').split(',')
  if (ids.length > PAGE) throw invalid('txid')
  const orders = ids.map((id) => {
    const order = call.venue.engine.orders.get(id)
    if (!order || order.account !== call.key.account || !call.venue.shows(order))
      throw new KrakenError('EOrder:Unknown order')
    return order
  })
  return listed(call, filtered(orders, call.args))
}

export function openOrders(call: Call): unknown {
  const since = Number(call.args['start'] ?? 0)
  const open = filtered(
    mine(call).filter(({ status }) => status === 'open'),
    call.args,
  )
  return { open: listed(call, open.filter(({ openedMs }) => seconds(openedMs) >= since).reverse()) }
}

export function closedOrders(call: Call): unknown {
  const closed = filtered(
    mine(call).filter(({ status }) => status !== 'open'),
    call.args,
  ).reverse()
  const within = between(
    call.args,
    closed,
    ({ closedMs }) => closedMs!,
    (id) => call.venue.engine.orders.get(id)?.closedMs ?? null,
  )
  return { closed: listed(call, within.slice(...pageOf(call.args))), count: within.length }
}

export function tradesHistory(call: Call): unknown {
  const { venue, key, args } = call
  const all = [...venue.engine.trades.values()].filter(
    ({ account, order }) => account === key.account && venue.shows(venue.engine.orders.get(order)!),
  )
  const within = between(
    args,
    all.reverse(),
    ({ atMs }) => atMs,
    (id) => venue.engine.trades.get(id)?.atMs ?? null,
  )
  const [from, to] = pageOf(args)
  // One object cannot contain a trade twice, but two pages can.
  const start = venue.faults.mode === 'duplicate-fill' && from > 0 ? from - 1 : from
  return {
    trades: Object.fromEntries(
      within.slice(start, to).map((trade) => [trade.id, tradeShape(trade)]),
    ),
    count: within.length,
  }
}

export function queryTrades({ venue, key, args }: Call): unknown {
  const ids = needed(args, 'txid').split(',')
  if (ids.length > PAGE) throw invalid('txid')
  return Object.fromEntries(
    ids.map((id) => {
      const trade = venue.engine.trades.get(id)
      if (!trade || trade.account !== key.account) throw new KrakenError('EQuery:Unknown trade')
      return [id, tradeShape(trade)]
    }),
  )
}

function pageOf({ ofs = '0' }: Arguments): [from: number, to: number] {
  if (!/^\d{1,9}$/.test(ofs)) throw invalid('ofs')
  return [Number(ofs), Number(ofs) + PAGE]
}

/**
 * Selects entries after `start` (exclusive) up to `end` (inclusive); each is a time in seconds or
 * an id.
 */
function between<Each>(
  args: Arguments,
  all: Each[],
  atMs: (each: Each) => number,
  msOf: (id: string) => number | null,
): Each[] {
  const edge = (name: 'start' | 'end'): number | null => {
    const text = args[name]
    if (text === undefined || text === '') return null
    if (/^\d{1,11}(\.\d+)?$/.test(text)) return Number(text) * 1000
    const at = msOf(text)
    if (at === null) throw invalid(name)
    return at
  }
  const [start, end] = [edge('start'), edge('end')]
  return all.filter(
    (each) => (start === null || atMs(each) > start) && (end === null || atMs(each) <= end),
  )
}
