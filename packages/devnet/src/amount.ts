import { RequestError } from './errors.ts'

/**
 * Parses an amount: "1.5" with 8 decimals → 150000000n. Excess precision is rejected, never
 * rounded.
 */
export function parseAmount(text: unknown, decimals: number): bigint {
  if (typeof text !== 'string' || !/^\d{1,30}(\.\d{1,30})?$/.test(text)) {
    throw new RequestError(
      `amount ${JSON.stringify(text)} is not a decimal number in a string, such as "1.5"`,
    )
  }
  const [whole = '', fraction = ''] = text.split('.')
  if (fraction.length > decimals)
    throw new RequestError(`amount ${text} has more than ${decimals} decimals`)
  const value = BigInt(whole + fraction.padEnd(decimals, '0'))
  if (value === 0n) throw new RequestError('amount must be greater than zero')
  return value
}

export function formatAmount(value: bigint, decimals: number): string {
  const sign = value < 0n ? '-' : ''
  const digits = (value < 0n ? -value : value).toString().padStart(decimals + 1, '0')
  return `${sign}${digits.slice(0, -decimals)}.${digits.slice(-decimals)}`
}
