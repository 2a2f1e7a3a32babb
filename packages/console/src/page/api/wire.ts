// Lossless JSON: amounts keep their digits in both directions.
import { COUNTS, plainJson } from '@custody/client/wire'
import { JsonNumber, stringifyJson } from '@custody/request-auth/web'

const DECIMAL = /^(?:0|[1-9]\d*)(?:\.\d+)?$/

/**
 * Returns a typed decimal for a request body, with exactly its digits; null if it is invalid. A
 * comma is invalid, because “1,5” is one and a half for some people and fifteen for others.
 */
export function exact(text: string): JsonNumber | null {
  const plain = text
    .trim()
    .replaceAll(/[\s_']/g, '')
    .replace(/^\./, '0.')
    .replace(/^0+(?=\d)/, '')
    .replace(/\.$/, '')
  return DECIMAL.test(plain) ? new JsonNumber(plain) : null
}

/** Serializes a body as it is signed and sent. Undefined values are omitted. */
export const encode = (value: unknown): string => stringifyJson(value)

/** Serializes a body with indentation for display. */
export function pretty(value: unknown, indent = ''): string {
  const deeper = `${indent}  `
  if (value instanceof JsonNumber || typeof value !== 'object' || value === null)
    return stringifyJson(value)
  if (Array.isArray(value))
    return value.length === 0
      ? '[]'
      : `[\n${value.map((inner) => deeper + pretty(inner, deeper)).join(',\n')}\n${indent}]`
  const entries = Object.entries(value).filter(([, inner]) => inner !== undefined)
  const lines = entries.map(
    ([name, inner]) => `${deeper}${JSON.stringify(name)}: ${pretty(inner, deeper)}`,
  )
  return lines.length === 0 ? '{}' : `{\n${lines.join(',\n')}\n${indent}}`
}

/** Names of counts in the panel's own responses, in addition to those of the API. */
const PANEL_COUNTS: ReadonlySet<string> = new Set([
  ...COUNTS,
  'nodes',
  'recovery_codes_left',
  'transfers',
  'rules',
  'changes',
  'count',
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
  'by_state.*',
  // Elsewhere `pending` and `waiting` are amounts.
  'counts.*',
  'queue.*',
  'webhooks.*',
])

/**
 * Parses a response's body: amounts become decimal strings, counts numbers.
 * @throws AuthError
 */
export const decode = (text: string): unknown => plainJson(text, PANEL_COUNTS)
