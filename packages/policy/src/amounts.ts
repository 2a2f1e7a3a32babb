import { PolicyError } from './error.ts'

/** Spelling of an amount in a document: digits with an optional fraction; no sign, no exponent. */
export const AMOUNT = /^(?:0|[1-9]\d{0,39})(?:\.\d{1,30})?$/

/**
 * Reads a decimal amount exactly into the asset's smallest unit.
 * @param text in the spelling of {@link AMOUNT}
 * @param decimals decimals of the asset
 * @param path of the field, for the error
 * @throws PolicyError `AMOUNT`
 */
export function parseUnits(text: string, decimals: number, path: string): bigint {
  if (!AMOUNT.test(text))
    throw new PolicyError('AMOUNT', path, 'must be a decimal number such as "0.5"')
  const [whole, fraction = ''] = text.split('.') as [string, string?]
  const digits = fraction.replace(/0+$/, '')
  if (digits.length > decimals)
    throw new PolicyError('AMOUNT', path, `has more than ${decimals} decimals`)
  return BigInt(whole + digits.padEnd(decimals, '0'))
}

/** Formats an amount in the smallest unit as its shortest exact decimal text. */
export function formatUnits(amount: bigint, decimals: number): string {
  const digits = amount.toString().padStart(decimals + 1, '0')
  const whole = digits.slice(0, digits.length - decimals)
  const fraction = decimals === 0 ? '' : digits.slice(-decimals).replace(/0+$/, '')
  return fraction === '' ? whole : `${whole}.${fraction}`
}

/** Returns the larger of two amounts. */
export const larger = (a: bigint, b: bigint): bigint => (a > b ? a : b)
