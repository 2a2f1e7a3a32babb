// Amounts as they are shown: with every digit, or marked as shortened.

/** Digits in groups of three, none lost. */
export function grouped(digits: string): string {
  const [whole = '', fraction] = digits.split('.')
  const sign = /^[-+]/.exec(whole)?.[0] ?? ''
  const text = whole.slice(sign.length).replaceAll(/\B(?=(?:\d{3})+$)/g, ',')
  return `${sign === '-' ? '−' : sign}${text}${fraction === undefined ? '' : `.${fraction}`}`
}

const withoutZeros = (value: string): string =>
  value.includes('.') ? value.replace(/\.?0+$/, '') : value

/**
 * An amount with all its digits in groups of three; zeros at its end, which say nothing, are left
 * out.
 */
export const amountText = (value: string): string => grouped(withoutZeros(value))

/** Dollars with all their digits, and at least the cents. */
export function usd(value: string | null | undefined): string {
  if (value === null || value === undefined) return '–'
  const [whole = '0', fraction = ''] = withoutZeros(String(value)).split('.')
  return `${whole.startsWith('-') ? '−' : ''}$${grouped(whole.replace('-', ''))}.${fraction.padEnd(2, '0')}`
}

/**
 * Dollars to the cent, digits beyond it cut off: `≈ $1.23`, and `< $0.01` for less than a cent.
 * @returns `exact`: all digits, where some are left out of `text`
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
