// Amounts are compared and added as integers of the smallest unit, never as doubles.

/**
 * Converts a decimal to the smallest unit.
 * @returns null if it is not a decimal, or has more decimals than the asset
 */
export function units(text: string, decimals: number): bigint | null {
  const [, whole, fraction = ''] = /^(\d+)(?:\.(\d+))?$/.exec(text) ?? []
  if (whole === undefined) return null
  const significant = fraction.replace(/0+$/, '')
  return significant.length > decimals ? null : BigInt(whole + significant.padEnd(decimals, '0'))
}

/** Converts an amount in the smallest unit to a decimal. */
export function decimal(amount: bigint, decimals: number): string {
  const digits = (amount < 0n ? -amount : amount).toString().padStart(decimals + 1, '0')
  const whole = digits.slice(0, digits.length - decimals)
  const fraction = digits.slice(digits.length - decimals).replace(/0+$/, '')
  return `${amount < 0n ? '-' : ''}${whole}${fraction === '' ? '' : `.${fraction}`}`
}

/** More places than any asset or price has; NEAR has 24. */
const RATE_DECIMALS = 36

/**
 * Returns the exact value of an amount, which may be negative, at a price; null if one of them is
 * not a decimal with at most 36 places.
 */
export function worth(amount: string, price: string): string | null {
  if (amount.startsWith('-')) {
    const value = worth(amount.slice(1), price)
    return value === null || value === '0' ? value : `-${value}`
  }
  const [a, b] = [units(amount, RATE_DECIMALS), units(price, RATE_DECIMALS)]
  return a === null || b === null ? null : decimal(a * b, 2 * RATE_DECIMALS)
}
