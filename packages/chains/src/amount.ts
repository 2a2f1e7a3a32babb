import { ChainError } from './types.ts'

const DECIMAL = /^(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d{1,3}))?$/

/**
 * Reads a decimal amount exactly into the smallest unit. Accepts the spellings JSON allows for a
 * non-negative number, exponents included (`1e-7` is what JavaScript prints for 0.0000001).
 *
 * @param text decimal text, e.g. `1.5`; at most 100 characters
 * @param decimals decimals of the asset
 * @throws ChainError `AMOUNT_FORMAT`, `AMOUNT_PRECISION` (more decimals than the asset has)
 */
export function parseAmount(text: string, decimals: number): bigint {
  const match = text.length <= 100 ? DECIMAL.exec(text) : null
  if (!match) throw new ChainError('AMOUNT_FORMAT', 'must be a non-negative decimal number')
  const whole = match[1] as string
  const fraction = match[2] ?? ''
  const exponent = Number(match[3] ?? 0)
  // The value is digits × 10^(exponent − fraction.length). Scaled by `decimals`, it must be an
  // integer.
  const digits = BigInt(whole + fraction)
  const scale = decimals + exponent - fraction.length
  if (digits === 0n) return 0n
  if (scale >= 0) {
    if (scale > 100) throw new ChainError('AMOUNT_FORMAT', 'is too large')
    return digits * 10n ** BigInt(scale)
  }
  const divisor = 10n ** BigInt(-scale)
  if (digits % divisor !== 0n)
    throw new ChainError('AMOUNT_PRECISION', `has more than ${decimals} decimals`)
  return digits / divisor
}

/**
 * Formats an amount in the smallest unit as its shortest exact decimal text. Negative values keep
 * their sign.
 */
export function formatAmount(amount: bigint, decimals: number): string {
  const negative = amount < 0n
  const digits = (negative ? -amount : amount).toString().padStart(decimals + 1, '0')
  const whole = digits.slice(0, digits.length - decimals)
  const fraction = decimals === 0 ? '' : digits.slice(-decimals).replace(/0+$/, '')
  return `${negative ? '-' : ''}${whole}${fraction === '' ? '' : `.${fraction}`}`
}
