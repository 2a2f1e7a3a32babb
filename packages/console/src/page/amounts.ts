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

/** Longest amount that a phone displays with all digits, in characters. */
const SHORT_MAX = 12
const SHORT_DIGITS = 9
const SHORT_DECIMALS_MAX = 6

/**
 * Shortens a long amount for a narrow screen. Digits are omitted at the end, never rounded up:
 * `≈ 9.999906`, and `< 0.000001` for less than that.
 * @returns null if the amount is short enough to be displayed with all digits
 */
export function amountShort(value: string): string | null {
  const exact = withoutZeros(value)
  if (amountText(exact).length <= SHORT_MAX) return null
  const [whole = '', fraction = ''] = exact.split('.')
  const digits = whole.replace(/^[-+]/, '').length
  const places = Math.max(0, Math.min(SHORT_DECIMALS_MAX, SHORT_DIGITS - digits))
  if (fraction.length <= places) return null
  const rest = fraction.slice(0, places)
  if (/^[-+]?0*$/.test(whole) && /^0*$/.test(rest)) {
    const least = `0.${'1'.padStart(places, '0')}`
    return whole.startsWith('-') ? `> −${least}` : `< ${least}`
  }
  return `≈ ${amountText(rest === '' ? whole : `${whole}.${rest}`)}`
}

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
