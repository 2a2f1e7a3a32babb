// JSON without loss: amounts stay the digits that were sent, in both directions.
import { JsonNumber, parseJson, stringifyJson } from '@custody/request-auth/web'

const DECIMAL = /^(?:0|[1-9]\d*)(?:\.\d+)?$/

/** @param text a decimal as a person typed it @returns what stands in a body with exactly its digits; null where it is none */
export function exact(text: string): JsonNumber | null {
  const plain = text.trim().replaceAll(/[\s,_']/g, '').replace(/^\./, '0.').replace(/^0+(?=\d)/, '').replace(/\.$/, '')
  return DECIMAL.test(plain) ? new JsonNumber(plain) : null
}

/** JSON text of a body, as it is signed and sent. What is undefined is left out. */
export const encode = (value: unknown): string => stringifyJson(value)

/** The same for the eye. */
export function pretty(value: unknown, indent = ''): string {
  const deeper = `${indent}  `
  if (value instanceof JsonNumber || typeof value !== 'object' || value === null) return stringifyJson(value)
  if (Array.isArray(value)) return value.length === 0 ? '[]' : `[\n${value.map((inner) => deeper + pretty(inner, deeper)).join(',\n')}\n${indent}]`
  const entries = Object.entries(value).filter(([, inner]) => inner !== undefined)
  const lines = entries.map(([name, inner]) => `${deeper}${JSON.stringify(name)}: ${pretty(inner, deeper)}`)
  return lines.length === 0 ? '{}' : `{\n${lines.join(',\n')}\n${indent}}`
}

/** What counts things and is read as a number; every other number is an amount or a rate, and stays text. */
const COUNTS = new Set([
  'decimals', 'confirmations', 'page', 'limit', 'total', 'status', 'held', 'basis_points', 'path', 'node', 'nodes', 'epoch', 'height',
  'voided_at', 'unfinished', 'version', 'failures', 'tries', 'tries_left', 'duration_ms', 'required', 'expires_in', 'max_slippage_bps',
  'balances_age_ms', 'recovery_codes_left', 'passkeys', 'rate_limit', 'seq', 'tip_age_s', 'lag_blocks', 'due', 'waiting_jobs', 'oldest_s',
  'pending', 'attempts', 'now', 'needed', 'failed_24h', 'frozen', 'by_state', 'iat', 'exp', 'expires_in_s',
])
/** Keys of COUNTS that are amounts where they stand in one of these. */
const AMOUNTS_IN = new Set(['balances'])

function plain(value: unknown, key: string, within: string): unknown {
  if (value instanceof JsonNumber) {
    const isCount = (COUNTS.has(key) || COUNTS.has(within)) && !AMOUNTS_IN.has(within)
    return isCount ? Number(value.text) : value.text
  }
  if (Array.isArray(value)) return value.map((inner) => plain(inner, key, key))
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, plain(inner, name, key)]))
}

/** An answer's body: amounts are decimal strings, counts are numbers. @throws AuthError */
export const decode = (text: string): unknown => plain(parseJson(text), '', '')
