// JSON without loss: amounts stay the digits that were sent, in both directions.
import { JsonNumber, parseJson, stringifyJson } from '@custody/request-auth/web'

const DECIMAL = /^(?:0|[1-9]\d*)(?:\.\d+)?$/

/** @param text a decimal as a person typed it @returns what stands in a body with exactly its digits; null where it is none */
export function exact(text: string): JsonNumber | null {
  const plain = text
    .trim()
    .replaceAll(/[\s,_']/g, '')
    .replace(/^\./, '0.')
    .replace(/^0+(?=\d)/, '')
    .replace(/\.$/, '')
  return DECIMAL.test(plain) ? new JsonNumber(plain) : null
}

/** JSON text of a body, as it is signed and sent. What is undefined is left out. */
export const encode = (value: unknown): string => stringifyJson(value)

/** The same for the eye. */
export function pretty(value: unknown, indent = ''): string {
  const deeper = `${indent}  `
  if (value instanceof JsonNumber || typeof value !== 'object' || value === null) return stringifyJson(value)
  if (Array.isArray(value))
    return value.length === 0 ? '[]' : `[\n${value.map((inner) => deeper + pretty(inner, deeper)).join(',\n')}\n${indent}]`
  const entries = Object.entries(value).filter(([, inner]) => inner !== undefined)
  const lines = entries.map(([name, inner]) => `${deeper}${JSON.stringify(name)}: ${pretty(inner, deeper)}`)
  return lines.length === 0 ? '{}' : `{\n${lines.join(',\n')}\n${indent}}`
}

/** What counts things and is read as a number; every other number is an amount or a rate, and stays text. */
const COUNTS = new Set([
  'decimals',
  'confirmations',
  'page',
  'limit',
  'status',
  'held',
  'basis_points',
  'path',
  'node',
  'nodes',
  'epoch',
  'height',
  'voided_at',
  'unfinished',
  'version',
  'failures',
  'tries',
  'tries_left',
  'duration_ms',
  'required',
  'expires_in',
  'max_slippage_bps',
  'balances_age_ms',
  'recovery_codes_left',
  'passkeys',
  'rate_limit',
  'seq',
  'tip',
  'tip_age_s',
  'lag_blocks',
  'due',
  'oldest_s',
  'now',
  'needed',
  'failed_24h',
  'frozen',
  'iat',
  'exp',
  'attempt',
  'attempts',
  'receipts',
  'keys',
  'disabled',
  'percent',
])
/** In these `pending` and `waiting` count things; elsewhere they are amounts. */
const COUNTED_IN = new Set(['counts', 'queue', 'webhooks'])

function plain(value: unknown, key: string, within: string, isOfPage: boolean): unknown {
  if (value instanceof JsonNumber) {
    // An account's `total` is an amount; a page's counts what there is.
    const isCount = key === 'total' ? isOfPage : COUNTS.has(key) || within === 'by_state' || COUNTED_IN.has(within)
    return isCount ? Number(value.text) : value.text
  }
  if (Array.isArray(value)) return value.map((inner) => plain(inner, key, key, false))
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, plain(inner, name, key, 'page' in value)]))
}

/** An answer's body: amounts are decimal strings, counts are numbers. @throws AuthError */
export const decode = (text: string): unknown => plain(parseJson(text), '', '', false)
