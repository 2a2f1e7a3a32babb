// JSON without loss: amounts stay the digits that were sent, in both directions.

/** A number that stands in a body with exactly these digits. */
export class Exact {
  readonly digits: string
  constructor(digits: string) {
    this.digits = digits
  }
}

const DECIMAL = /^(?:0|[1-9]\d*)(?:\.\d+)?$/

/** @param text a decimal as a person typed it @returns null where it is none */
export function exact(text: string): Exact | null {
  const plain = text.trim().replaceAll(/[\s,_']/g, '').replace(/^\./, '0.').replace(/^0+(?=\d)/, '').replace(/\.$/, '')
  return DECIMAL.test(plain) ? new Exact(plain) : null
}

/** JSON text of a body; {@link Exact} values as numbers. What is undefined is left out. */
export function encode(value: unknown, space = ''): string {
  if (space === '') return compact(value)
  return pretty(value, '')
}

const entriesOf = (value: object) => Object.entries(value).filter(([, inner]) => inner !== undefined)

function compact(value: unknown): string {
  if (value instanceof Exact) return value.digits
  if (Array.isArray(value)) return `[${value.map(compact).join(',')}]`
  if (typeof value === 'object' && value !== null)
    return `{${entriesOf(value).map(([name, inner]) => `${JSON.stringify(name)}:${compact(inner)}`).join(',')}}`
  return JSON.stringify(value) ?? 'null'
}

function pretty(value: unknown, indent: string): string {
  const deeper = `${indent}  `
  if (Array.isArray(value) && value.length > 0) return `[\n${value.map((inner) => deeper + pretty(inner, deeper)).join(',\n')}\n${indent}]`
  if (typeof value === 'object' && value !== null && !(value instanceof Exact) && !Array.isArray(value)) {
    const lines = entriesOf(value).map(([name, inner]) => `${deeper}${JSON.stringify(name)}: ${pretty(inner, deeper)}`)
    return lines.length === 0 ? '{}' : `{\n${lines.join(',\n')}\n${indent}}`
  }
  return compact(value)
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
const MARK = '\u0001#'
const TOKENS = /"(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g

function plain(value: unknown, key: string, within: string): unknown {
  if (typeof value === 'string' && value.startsWith(MARK)) {
    const digits = value.slice(MARK.length)
    const isCount = (COUNTS.has(key) || COUNTS.has(within)) && !AMOUNTS_IN.has(within)
    return isCount ? Number(digits) : digits
  }
  if (Array.isArray(value)) return value.map((inner) => plain(inner, key, key))
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, plain(inner, name, key)]))
}

/** An answer's body: amounts are decimal strings, counts are numbers. @throws SyntaxError */
export function decode(text: string): unknown {
  const marked = text.replaceAll(TOKENS, (token) => (token.startsWith('"') ? token : `"\\u0001#${token}"`))
  return plain(JSON.parse(marked), '', '')
}
