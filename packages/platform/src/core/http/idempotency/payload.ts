import { hashPayload } from '../../engine/payload.ts'

/**
 * Names of the decimal fields of all requests with a `sequence_id` or a quote. A test compares them
 * with the schemas of these requests.
 */
export const DECIMAL_FIELDS: ReadonlySet<string> = new Set([
  'amount',
  'fee_rate',
  'fiat_amount',
  'max_fee_rate',
  'min_value',
  'price',
  'quote_amount',
  'tolerance',
])

/**
 * Returns a decimal without exponent, and without zeros that do not change its value. Other texts
 * are returned as they are.
 */
export function plainDecimal(text: string): string {
  const match = /^(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d{1,3}))?$/.exec(text)
  if (match === null) return text
  const [, whole = '', fraction = '', exponent = '0'] = match
  const shift = Number(exponent)
  const digits = `${'0'.repeat(Math.max(0, -shift))}${whole}${fraction}${'0'.repeat(Math.max(0, shift))}`
  // The point moves right by `shift`; zeros were added where it would leave the digits.
  const at = whole.length + shift + Math.max(0, -shift)
  const left = digits.slice(0, at).replace(/^0+(?=\d)/, '')
  const right = digits.slice(at).replace(/0+$/, '')
  return right === '' ? left : `${left}.${right}`
}

/**
 * Returns a flat request body with each decimal in one spelling, so that requests with equal values
 * have equal payloads: `0.0010`, `1e-3` and `"0.001"` are one amount.
 */
export const withPlainDecimals = (body: object): Record<string, unknown> =>
  Object.fromEntries(
    Object.entries(body).map(([name, value]) => [
      name,
      DECIMAL_FIELDS.has(name) && typeof value === 'string' ? plainDecimal(value) : value,
    ]),
  )

/**
 * Returns the hash by which a repeated `sequence_id` is compared with its first request. It depends
 * on the values of the fields, not on their order or on the spelling of numbers.
 */
export const hashRequest = (body: object): string => hashPayload(withPlainDecimals(body))
