// Formats amounts for display, with every digit or marked as shortened.

/** Groups digits by three without dropping any. */
export function grouped(digits: string): string {
  const [whole = '', fraction] = digits.split('.')
  const sign = /^[-+]/.exec(whole)?.[0] ?? ''
  const text = whole.slice(sign.length).replaceAll(/\B(?=(?:\d{3})+$)/g, ',')
  return `${sign === '-' ? '−' : sign}${text}${fraction === undefined ? '' : `.${fraction}`}`
}

const withoutZeros = (value: string): string =>
  value.includes('.') ? value.replace(/\.?0+$/, '') : value

/**
 * Formats an amount with all its digits in groups of three. Trailing zeros after the decimal point
 * are removed.
 */
export const amountText = (value: string): string => grouped(withoutZeros(value))

/** Formats dollars with all their digits, and at least the cents. */
export function usd(value: string | null | undefined): string {
  if (value === null || value === undefined) return '–'
  const [whole = '0', fraction = ''] = withoutZeros(String(value)).split('.')
  return `${whole.startsWith('-') ? '−' : ''}$${grouped(whole.replace('-', ''))}.${fraction.padEnd(2, '0')}`
}

/**
 * Formats dollars to the cent, with further digits truncated: `≈ $1.23`, and `< $0.01` for less
 * than a cent.
 * @returns `exact`: all digits, if `text` omits some
 */
export function usdShort(value: string | null | undefined): { text: string; exact: string | null } {
  const exact = usd(value)
  const [, cents, rest = ''] = /^(.*\.\d\d)(\d*)$/.exec(exact) ?? []
  if (cents === undefined || rest === '') return { text: exact, exact: null }
  if (cents === '$0.00') return { text: '< $0.01', exact }
  return {
    text: cents === '−$0.00' ? exact : `≈ ${cents}`,
    exact: cents === '−$0.00' ? null : exact,
  }
}

/**
 * Converts an amount in the smallest unit to a decimal.
 * @param digits whole number of the smallest unit
 */
export function unitsText(digits: string, decimals: number): string {
  const padded = digits.padStart(decimals + 1, '0')
  const at = padded.length - decimals
  return decimals === 0 ? padded : `${padded.slice(0, at)}.${padded.slice(at)}`
}
