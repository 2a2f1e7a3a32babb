import { formatAmount } from '@custody/chains'

/**
 * Everything at a venue (amounts, prices, fees, of whatever coin) is kept as an integer of this
 * many decimals.
 */
export const VENUE_DECIMALS = 18
const ONE = 10n ** BigInt(VENUE_DECIMALS)

/**
 * A venue's decimal as an integer, exponents and a sign included; what lies beyond 18 decimals is
 * cut off.
 * @returns null where it is none
 */
export function readUnits(given: unknown): bigint | null {
  const match = /^([+-]?)(\d{1,40})(?:\.(\d{0,60}))?(?:[eE]([+-]?\d{1,2}))?$/.exec(
    String(given ?? ''),
  )
  if (!match) return null
  const [, sign, whole = '0', fraction = '', exponent = '0'] = match
  const scale = VENUE_DECIMALS + Number(exponent) - fraction.length
  const digits = BigInt(whole + fraction)
  const value = scale >= 0 ? digits * 10n ** BigInt(scale) : digits / 10n ** BigInt(-scale)
  return sign === '-' ? -value : value
}

/** The shortest exact decimal. */
export const showUnits = (units: bigint): string => formatAmount(units, VENUE_DECIMALS)

/** Amount × price, in the quote coin; what is less than the smallest unit is cut off. */
export const times = (amount: bigint, price: bigint): bigint => (amount * price) / ONE
/** Quote ÷ price, in the base coin; cut off likewise. */
export const over = (quote: bigint, price: bigint): bigint => (quote * ONE) / price

/** Down to a multiple of a step. */
export const floorTo = (units: bigint, step: bigint): bigint =>
  step <= 1n ? units : units - (units % step)
/** Up to a multiple of a step. */
export const ceilTo = (units: bigint, step: bigint): bigint => -floorTo(-units - step + 1n, step)
