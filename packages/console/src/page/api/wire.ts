// JSON without loss: amounts stay the digits that were sent, in both directions.
import { COUNTS, plainJson } from '@custody/client/wire'
import { JsonNumber, stringifyJson } from '@custody/request-auth/web'

const DECIMAL = /^(?:0|[1-9]\d*)(?:\.\d+)?$/

/**
 * What stands in a body, with exactly the digits of a decimal as a person typed it; null where it
 * is none. A comma makes it none: what is one and a half for some is fifteen for others.
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

/** JSON text of a body, as it is signed and sent. What is undefined is left out. */
export const encode = (value: unknown): string => stringifyJson(value)

/** The same for the eye. */
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

/** What counts things in the panel's own answers, beside what does in the API's. */
const PANEL_COUNTS: ReadonlySet<string> = new Set([
  ...COUNTS,
  'nodes',
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
  'by_state.*',
  // Elsewhere `pending` and `waiting` are amounts.
  'counts.*',
  'queue.*',
  'webhooks.*',
])

/** An answer's body: amounts are decimal strings, counts are numbers. @throws AuthError */
export const decode = (text: string): unknown => plainJson(text, PANEL_COUNTS)
