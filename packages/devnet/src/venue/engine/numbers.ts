/** Returns ten to a power. */
export const power = (decimals: number): bigint => 10n ** BigInt(decimals)

export const ceilDivide = (value: bigint, by: bigint): bigint => (value + by - 1n) / by

/**
 * Parses a decimal: "1.5" with 8 decimals → 150000000n, zero included; null if it is not a decimal
 * number, or has too many decimals.
 */
export function readDecimal(text: string, decimals: number): bigint | null {
  const [, whole = '', fraction = ''] = /^(\d{1,30})(?:\.(\d{0,30}))?$/.exec(text) ?? []
  if (whole === '') return null
  const digits = fraction.replace(/0+$/, '')
  return digits.length > decimals ? null : BigInt(whole + digits.padEnd(decimals, '0'))
}

/** Formats with all decimals: 150000000n with 8 → "1.50000000". */
export function padded(value: bigint, decimals: number): string {
  const sign = value < 0n ? '-' : ''
  const digits = (value < 0n ? -value : value).toString().padStart(decimals + 1, '0')
  return decimals === 0
    ? sign + digits
    : `${sign}${digits.slice(0, -decimals)}.${digits.slice(-decimals)}`
}

/** Formats without trailing zeros: 150000000n with 8 → "1.5". */
export function trimmed(value: bigint, decimals: number): string {
  const text = padded(value, decimals)
  return text.includes('.') ? text.replace(/\.?0+$/, '') : text
}

/** Converts a value to another number of decimals; surplus digits are truncated. */
export const rescale = (value: bigint, from: number, to: number): bigint =>
  to >= from ? value * power(to - from) : value / power(from - to)
