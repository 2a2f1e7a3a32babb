import { formatAmount } from '@custody/chains'

/**
 * Number of decimals of the integers in which everything at an exchange (amounts, prices and fees
 * of every coin) is stored.
 */
export const VENUE_DECIMALS = 18
const ONE = 10n ** BigInt(VENUE_DECIMALS)

/**
 * Converts an exchange's decimal, which may have an exponent and a sign, to an integer. Digits
 * after 18 decimals are cut off.
 * @returns null if the value is not a decimal
 */
export function readUnits(input: unknown): bigint | null {
  const match = /^([+-]?)(\d{1,40})(?:\.(\d{0,60}))?(?:[eE]([+-]?\d{1,2}))?$/.exec(
    String(input ?? ''),
  )
  if (!match) return null
  const [, sign, whole = '0', fraction = '', exponent = '0'] = match
  const scale = VENUE_DECIMALS + Number(exponent) - fraction.length
  const digits = BigInt(whole + fraction)
  const value = scale >= 0 ? digits * 10n ** BigInt(scale) : digits / 10n ** BigInt(-scale)
  return sign === '-' ? -value : value
}

/** Returns the shortest exact decimal. */
export const showUnits = (units: bigint): string => formatAmount(units, VENUE_DECIMALS)

/** Returns amount × price in the quote coin, rounded down to the smallest unit. */
export const times = (amount: bigint, price: bigint): bigint => (amount * price) / ONE
/** Returns quote ÷ price in the base coin, rounded down to the smallest unit. */
export const divide = (quote: bigint, price: bigint): bigint => (quote * ONE) / price

/** Rounds down to a multiple of a step. */
export const floorTo = (units: bigint, step: bigint): bigint =>
  step <= 1n ? units : units - (units % step)
/** Rounds up to a multiple of a step. */
export const ceilTo = (units: bigint, step: bigint): bigint => -floorTo(-units - step + 1n, step)
