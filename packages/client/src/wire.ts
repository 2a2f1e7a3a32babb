import { JsonNumber, parseJson } from '@custody/request-auth/web'
import { API_COUNTS } from './counts.ts'
import { CustodyError } from './errors.ts'
import type { Decimal } from './types.ts'

const DECIMAL = /^(?:0|[1-9]\d*)(?:\.\d+)?$/
/** Counts in policy documents and decisions, which the OpenAPI document does not describe. */
const POLICY_COUNTS = ['v', 'delay_s', 'approval_s', 'count']
/**
 * Fields whose numbers are counts. All other numbers are amounts and rates, which are returned as
 * decimal strings.
 */
export const COUNTS: ReadonlySet<string> = new Set([...API_COUNTS, ...POLICY_COUNTS])

/**
 * Returns path and query exactly as fetch will send them, so that the signature covers that
 * spelling.
 */
export function target(path: string): string {
  const url = path.startsWith('/') && !path.startsWith('//') ? new URL(path, 'http://base') : null
  if (!url || url.host !== 'base') throw new TypeError('path must begin with one slash')
  return `${url.pathname}${url.search}`
}

/** Returns `?a=1&b=2` of the defined values, or an empty text. */
export function query(values: object): string {
  const parameters = new URLSearchParams()
  for (const [name, value] of Object.entries(values))
    if (value !== undefined) parameters.set(name, String(value))
  const text = parameters.toString()
  return text === '' ? '' : `?${text}`
}

/**
 * Returns a decimal that is serialized with exactly its digits.
 * @throws TypeError
 */
function number(field: string, text: Decimal): JsonNumber {
  if (typeof text !== 'string' || !DECIMAL.test(text)) {
    throw new TypeError(
      `${field} must be a decimal string like "0.5": a double cannot hold 18 decimals`,
    )
  }
  return new JsonNumber(text)
}

/** Returns whether a field is set; `null` means that it is not, as in the API. */
export const isGiven = (value: unknown): boolean => value !== undefined && value !== null

/**
 * Returns a body whose decimals, if set, are serialized with exactly their digits, after the other
 * fields.
 * @throws TypeError
 */
export function decimals<T extends object, Name extends keyof T & string>(
  body: T,
  ...names: Name[]
): Record<string, unknown> {
  const rest = Object.entries(body).filter(([name]) => !names.includes(name as Name))
  const exact = names
    .filter((name) => isGiven(body[name]))
    .map((name) => [name, number(name, body[name] as Decimal)])
  return Object.fromEntries([...rest, ...exact])
}

function plain(value: unknown, key: string, within: string, counts: ReadonlySet<string>): unknown {
  if (value instanceof JsonNumber)
    return counts.has(key) || counts.has(`${within}.*`) ? Number(value.text) : value.text
  if (Array.isArray(value)) return value.map((inner) => plain(inner, key, key, counts))
  if (typeof value !== 'object' || value === null) return value
  // `total` is a count in a page, and an amount in a balance.
  const nameOf = (name: string) =>
    name === 'total' && 'page' in value && 'limit' in value ? 'page' : name
  return Object.fromEntries(
    Object.entries(value).map(([name, inner]) => [name, plain(inner, nameOf(name), key, counts)]),
  )
}

/**
 * Parses JSON. Amounts become decimal strings and counts become numbers.
 * @param counts names of the counts; `NAME.*`: all values in NAME
 * @throws SyntaxError if the text is not JSON
 */
export const plainJson = (text: string, counts = COUNTS): unknown =>
  plain(parseJson(text), '', '', counts)

/**
 * Reads the body of a response.
 * @throws CustodyError `PROTOCOL`
 */
export async function read<T>(response: Response): Promise<T> {
  try {
    return plainJson(await response.text()) as T
  } catch (error) {
    // The request is not repeated, because the service has processed it.
    throw new CustodyError('the response is not JSON: check that baseUrl is the custody service', {
      status: response.status,
      code: 'PROTOCOL',
      cause: error,
    })
  }
}

/** Returns the error that a response reports. */
export async function refusal(response: Response): Promise<CustodyError> {
  let problem: Record<string, unknown> = {}
  try {
    const value: unknown = plainJson(await response.text())
    if (typeof value === 'object' && value !== null && !Array.isArray(value))
      problem = value as Record<string, unknown>
  } catch {
    // The body is a proxy's page, and the status is sufficient.
  }
  const word = (name: string) => (typeof problem[name] === 'string' ? problem[name] : undefined)
  return new CustodyError(word('message') ?? `the service returned ${response.status}`, {
    status: response.status,
    code: word('code') ?? 'HTTP',
    field: word('field'),
    type: word('type'),
    problem,
    requestId: word('request_id') ?? response.headers.get('x-request-id') ?? undefined,
  })
}
