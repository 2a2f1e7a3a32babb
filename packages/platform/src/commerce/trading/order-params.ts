import { ApiError } from '../../core/errors.ts'
import { ceilTo, floorTo, divide, readUnits, showUnits, times } from '../exchanges/units.ts'
import type { Market, OrderBook, Side, TimeInForce, VenueTraits } from '../exchanges/venue.ts'
import { SLIPPAGE_BPS, type OrderBody } from './order-body.ts'

const BASIS_POINTS = 10_000n
/** Upper bound of amounts and prices, above every market's own bounds. */
const UNITS_MAX = 10n ** 36n

export interface OrderParams {
  amount: bigint
  quoteAmount: bigint | null
  price: bigint
  timeInForce: TimeInForce
  postOnly: boolean
  slippageBps: number | null
}

const wrong = (
  field: string,
  why: string,
  code: 'INVALID_REQUEST' | 'INVALID_AMOUNT' = 'INVALID_REQUEST',
) => new ApiError(code, `${field}: ${why}`, { field })

/**
 * Checks combinations of fields, before the exchange is queried.
 * @throws ApiError that names the field
 */
export function checkBody(body: OrderBody): void {
  if (body.amount === undefined && body.quote_amount === undefined)
    throw wrong('amount', 'is required, unless quote_amount is sent')
  if (body.amount !== undefined && body.quote_amount !== undefined) {
    throw wrong('quote_amount', 'send either amount or quote_amount, not both')
  }
  const isMarket = body.type === 'market'
  if (isMarket && body.price !== undefined)
    throw wrong('price', 'is allowed only for a limit order; a market order has max_slippage_bps')
  if (!isMarket && body.price === undefined) throw wrong('price', 'is required for a limit order')
  if (!isMarket && body.max_slippage_bps !== undefined)
    throw wrong(
      'max_slippage_bps',
      'is allowed only for a market order; a limit order has its price',
    )
  if (isMarket && body.post_only === true)
    throw wrong('post_only', 'is allowed only for a limit order')
  if (isMarket && body.time_in_force === 'GTC')
    throw wrong('time_in_force', 'must be IOC or FOK for a market order')
  if (body.post_only === true && body.time_in_force !== undefined && body.time_in_force !== 'GTC') {
    throw wrong('time_in_force', 'must be GTC if post_only is true')
  }
}

/**
 * Checks that the exchange supports the features that the order requires.
 * @throws ApiError that names the field
 */
export function checkTraits(body: OrderBody, exchange: string, traits: VenueTraits): void {
  const refused = (field: string, why: string) =>
    new ApiError('EXCHANGE_UNSUPPORTED', `${field}: ${why}`, { field })
  if (traits.orders === 'none') {
    throw refused(
      'exchange_account',
      `orders at ${exchange} are not supported: the outcome of an order could not be queried`,
    )
  }
  const timeInForce = body.time_in_force ?? (body.type === 'market' ? 'IOC' : 'GTC')
  if (!traits.timesInForce.includes(timeInForce)) {
    throw refused(
      body.type === 'market' ? 'type' : 'time_in_force',
      `${exchange} supports only ${traits.timesInForce.join(', ')}${body.type === 'market' ? ', and a market order requires IOC' : ''}`,
    )
  }
  if (body.post_only === true && !traits.postOnly)
    throw refused('post_only', `${exchange} does not support it`)
}

/**
 * Parses a positive exact decimal.
 * @throws ApiError `INVALID_AMOUNT` that names the field
 */
export function readPositive(text: string, field: string): bigint {
  const most = () => wrong(field, `must be at most ${showUnits(UNITS_MAX)}`, 'INVALID_AMOUNT')
  const units = readUnits(text)
  // The text is too long to be parsed exactly; only its size matters, for which a double is
  // sufficient.
  if (units === null && Number(text) > Number(showUnits(UNITS_MAX))) throw most()
  if (units === null || showUnits(units) !== canonical(text))
    throw wrong(field, 'has more than 18 decimals', 'INVALID_AMOUNT')
  if (units <= 0n) throw wrong(field, 'must be greater than zero', 'INVALID_AMOUNT')
  if (units > UNITS_MAX) throw most()
  return units
}

/**
 * Returns a decimal in normalized form. A comparison of two such texts shows whether digits were cut
 * off.
 */
function canonical(text: string): string {
  const [digits = '', exponent = '0'] = text.toLowerCase().split('e')
  const [whole = '', fraction = ''] = digits.split('.')
  const at = whole.length + Number(exponent)
  const all = `${whole}${fraction}`
  const left = (at > 0 ? all.slice(0, at).padEnd(at, '0') : '').replace(/^0+(?=\d)/, '') || '0'
  const right = (at > 0 ? all.slice(at) : '0'.repeat(-at) + all).replace(/0+$/, '')
  return right === '' ? left : `${left}.${right}`
}

/**
 * Returns the parameters with which an order is sent, on the market's steps and within its bounds.
 * @param book for market orders only: their limit is derived from its best price
 * @throws ApiError that names the field and the bound
 */
export function orderParamsOf(
  body: OrderBody,
  market: Market,
  book: OrderBook | null,
): OrderParams {
  const slippageBps = body.type === 'market' ? (body.max_slippage_bps ?? SLIPPAGE_BPS) : null
  const { price, reference } = book
    ? protection(body.side, market, book, slippageBps ?? SLIPPAGE_BPS)
    : limit(body, market)
  const quoteAmount =
    body.quote_amount === undefined ? null : readPositive(body.quote_amount, 'quote_amount')
  const amount =
    quoteAmount === null
      ? onGrid(
          readPositive(body.amount as string, 'amount'),
          market.amountStep,
          'amount',
          market.base,
        )
      : floorTo(divide(quoteAmount, reference), market.amountStep)
  checkBounds(market, amount, price, quoteAmount === null ? 'amount' : 'quote_amount')
  return {
    amount,
    quoteAmount,
    price,
    timeInForce: body.time_in_force ?? (book ? 'IOC' : 'GTC'),
    postOnly: body.post_only ?? false,
    slippageBps,
  }
}

/**
 * Checks an amount and its cost against the bounds of the market.
 * @param field field of the request from which the amount results
 * @throws ApiError `INVALID_AMOUNT`
 */
function checkBounds(
  market: Market,
  amount: bigint,
  price: bigint,
  field: 'amount' | 'quote_amount',
): void {
  const show = (units: bigint, coin: string) => `${showUnits(units)} ${coin}`
  const result = field === 'amount' ? '' : `; it results in ${show(amount, market.base)}`
  const { amountMin, amountMax, costMin } = market
  if (amount === 0n || (amountMin !== null && amount < amountMin)) {
    throw wrong(
      field,
      `must be at least ${show(amountMin ?? market.amountStep, market.base)} on ${market.symbol}${result}`,
      'INVALID_AMOUNT',
    )
  }
  if (amountMax !== null && amountMax > 0n && amount > amountMax) {
    throw wrong(
      field,
      `must be at most ${show(amountMax, market.base)} on ${market.symbol}${result}`,
      'INVALID_AMOUNT',
    )
  }
  const cost = times(amount, price)
  if (costMin !== null && cost < costMin) {
    const least = `must be worth at least ${show(costMin, market.quote)} on ${market.symbol}`
    throw wrong(field, `${least}; it is ${show(cost, market.quote)}`, 'INVALID_AMOUNT')
  }
}

function onGrid(units: bigint, step: bigint, field: string, coin: string): bigint {
  if (units % step === 0n) return units
  throw wrong(
    field,
    `must be a multiple of ${showUnits(step)} ${coin}`,
    field === 'amount' ? 'INVALID_AMOUNT' : 'INVALID_REQUEST',
  )
}

function limit(body: OrderBody, market: Market): { price: bigint; reference: bigint } {
  const price = onGrid(
    readPositive(body.price as string, 'price'),
    market.priceStep,
    'price',
    market.quote,
  )
  return { price, reference: price }
}

/**
 * Returns the worst price at which a market order may be executed. An amount in the quote coin is
 * converted at this price for purchases, so that no more is spent, and at the best price for sales.
 */
function protection(
  side: Side,
  market: Market,
  book: OrderBook,
  slippageBps: number,
): { price: bigint; reference: bigint } {
  const best = (side === 'buy' ? book.asks : book.bids)[0]?.price
  if (best === undefined || best <= 0n) {
    throw new ApiError(
      'EXCHANGE_UNAVAILABLE',
      `market: there are no ${side === 'buy' ? 'asks' : 'bids'} on ${market.symbol} now, so it has no price`,
      { field: 'market' },
    )
  }
  const away = (best * BigInt(slippageBps)) / BASIS_POINTS
  // The price is rounded to the price step in the protective direction.
  const price =
    side === 'buy' ? floorTo(best + away, market.priceStep) : ceilTo(best - away, market.priceStep)
  if (price <= 0n)
    throw wrong('max_slippage_bps', 'is too large: the resulting price would not be above zero')
  return { price, reference: side === 'buy' ? price : best }
}
