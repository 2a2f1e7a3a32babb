import { floorTo, divide, times } from '../exchanges/units.ts'
import type { Level, Market, OrderBook, Side } from '../exchanges/venue.ts'

const ONE = 10n ** 18n

/**
 * One order for a conversion: an amount of the base coin with a limit price. `receive`: amount of
 * the wanted coin, less the taker fee.
 */
export interface Conversion {
  side: Side
  amount: bigint
  price: bigint
  receive: bigint
}

/** Returns the amount that is taken of a level, and the amount that is left to take. */
function walk(
  levels: readonly Level[],
  wanted: (level: Level) => bigint,
  take: (amount: bigint, price: bigint) => void,
): void {
  for (const level of levels) {
    const amount = wanted(level)
    if (amount <= 0n) return
    take(amount, level.price)
  }
}

/**
 * Computes the conversion of an amount at a market, level by level of its order book. The limit is
 * the price of the last level that is needed. All amounts in units of 18 decimals.
 * @param input amount of the base coin if it is sold, otherwise of the quote coin including the fee
 * @returns the conversion, or why it is not possible
 */
export function convert(
  market: Market,
  book: OrderBook,
  side: Side,
  input: bigint,
): Conversion | string {
  const fee = market.takerFee ?? 0n
  const afterFee = (units: bigint) => (units * (ONE - fee)) / ONE
  let [amount, cost, last] = [0n, 0n, 0n]
  const take = (of: bigint, price: bigint) => {
    amount += of
    cost += times(of, price)
    last = price
  }
  // A purchase must be paid with its fee, and may not cost more than the given amount.
  const budget = side === 'sell' ? floorTo(input, market.amountStep) : (input * ONE) / (ONE + fee)
  const least = (one: bigint, other: bigint) => (one < other ? one : other)
  if (side === 'sell') walk(book.bids, (level) => least(level.amount, budget - amount), take)
  else
    walk(
      book.asks,
      (level) =>
        least(level.amount, floorTo(divide(budget - cost, level.price), market.amountStep)),
      take,
    )
  amount = floorTo(amount, market.amountStep)
  if (last === 0n)
    return `there are no ${side === 'sell' ? 'bids' : 'asks'} on ${market.symbol} now, or the amount is too small`
  const left = side === 'sell' ? budget - amount : budget - cost
  // A remainder of less than one amount step is not a lack of liquidity.
  if (left > (side === 'sell' ? market.amountStep : times(market.amountStep, last)) + 1n)
    return `the order book of ${market.symbol} is too shallow`
  if (market.amountMin !== null && amount < market.amountMin)
    return `the amount is too small for ${market.symbol}`
  if (market.costMin !== null && times(amount, last) < market.costMin)
    return `the amount is too small for ${market.symbol}`
  if (market.amountMax !== null && market.amountMax > 0n && amount > market.amountMax)
    return `the amount is too large for ${market.symbol}`
  return { side, amount, price: last, receive: afterFee(side === 'sell' ? cost : amount) }
}
