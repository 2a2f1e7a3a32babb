/** Number of decimals of prices, which are stored as integers. */
export const PRICE_DECIMALS = 12
const USD_DECIMALS = 6

/**
 * Parses a source's decimal number, including exponents and more digits than are stored; returns
 * null if it is not a number above zero.
 */
export function parsePrice(text: string): bigint | null {
  const match = /^(\d{1,30})(?:\.(\d{1,60}))?(?:[eE]([+-]?\d{1,2}))?$/.exec(text)
  if (!match) return null
  const [, whole = '0', fraction = '', exponent = '0'] = match
  const scale = PRICE_DECIMALS + Number(exponent) - fraction.length
  const digits = BigInt(whole + fraction)
  const value = scale >= 0 ? digits * 10n ** BigInt(scale) : digits / 10n ** BigInt(-scale)
  return value > 0n ? value : null
}

/** Returns the value of an amount (smallest unit) in millionths of a US dollar, rounded half up. */
export function usdValue(amount: bigint, decimals: number, price: bigint): bigint {
  const divisor = 10n ** BigInt(decimals + PRICE_DECIMALS - USD_DECIMALS)
  return (amount * price * 2n + divisor) / (2n * divisor)
}
