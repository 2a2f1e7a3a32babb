import { hmac } from '@noble/hashes/hmac.js'
import { sha256 } from '@noble/hashes/sha2.js'
import { concatBytes, utf8ToBytes } from '@noble/hashes/utils.js'
import { base64 } from '@scure/base'
import { plainJson } from './wire.ts'

const PREFIX = 'whsec_'
const TOLERANCE_S = 300
const SECRET_BYTES_MIN = 24
const SECRET_BYTES_MAX = 64

/**
 * An event in the form in which it is sent. Amounts are decimal strings, as everywhere in this
 * client.
 */
export interface WebhookEvent<Data = Record<string, unknown>> {
  /** Type of the event, such as `transaction.confirmed`. */
  type: string
  /** Time of the event, ISO 8601. */
  timestamp: string
  data: Data
  /**
   * Id of the event, equal on every delivery attempt. Ignore an event whose id you have already
   * processed.
   */
  id: string
  /** Kind of the object that the event concerns. */
  object: string
  /**
   * Version of the object: 1, 2, 3 … Ignore an event with a lower version than one that you have
   * processed.
   */
  version: number
  /**
   * Present if the event did not happen but was sent by `npx custody trigger`, which works on the
   * local network only.
   */
  test?: true
}

/** A delivery that must not be trusted. `code` gives the reason. */
export class WebhookError extends Error {
  readonly code: 'HEADER' | 'TIMESTAMP' | 'SIGNATURE' | 'BODY'
  constructor(code: WebhookError['code'], message: string) {
    super(message)
    this.name = 'WebhookError'
    this.code = code
  }
}

type HeadersLike =
  | { get(name: string): string | null }
  | Readonly<Record<string, string | readonly string[] | undefined>>

/**
 * Verifies that a delivery comes from the custody service and is recent (Standard Webhooks 1.0,
 * scheme `v1`).
 * @param headers of the request: Node's, or those of a `Request`
 * @param rawBody the exact bytes that were received, or their text; JSON that was parsed and
 *   serialized again has another signature
 * @param secret `whsec_…`, as returned when the webhook was created or its secret rotated
 * @param options `toleranceS`: maximum deviation of the timestamp in seconds, 300 by default;
 *   `now`: Unix seconds, by default from the system clock
 * @returns the event
 * @throws WebhookError if it must not be trusted; respond with 400 then, and do nothing else
 * @throws TypeError if the secret is malformed
 */
export function verifyWebhook<Data = Record<string, unknown>>(
  headers: HeadersLike,
  rawBody: string | Uint8Array,
  secret: string,
  options: { toleranceS?: number; now?: number } = {},
): WebhookEvent<Data> {
  const key = keyOf(secret)
  const [id, timestamp, signatures] = ['webhook-id', 'webhook-timestamp', 'webhook-signature'].map(
    (name) => headerOf(headers, name),
  ) as [string, string, string]
  if (!/^\d{1,12}$/.test(timestamp))
    throw new WebhookError('TIMESTAMP', 'webhook-timestamp is not a time in Unix seconds')
  const { toleranceS = TOLERANCE_S, now = Math.floor(Date.now() / 1000) } = options
  const ageS = now - Number(timestamp)
  if (Math.abs(ageS) > toleranceS)
    throw new WebhookError(
      'TIMESTAMP',
      `webhook-timestamp is ${Math.abs(ageS)} s ${ageS > 0 ? 'old' : 'ahead'}; the maximum is ${toleranceS} s`,
    )
  const body = typeof rawBody === 'string' ? utf8ToBytes(rawBody) : Uint8Array.from(rawBody)
  const expected = hmac(sha256, key, concatBytes(utf8ToBytes(`${id}.${timestamp}.`), body))
  // During a rotation there is one signature per secret. Unknown schemes are skipped.
  const isSigned = signatures.split(' ').some((each) => {
    if (!each.startsWith('v1,')) return false
    const candidate = decode(each.slice('v1,'.length))
    return candidate !== null && equal(candidate, expected)
  })
  if (!isSigned)
    throw new WebhookError(
      'SIGNATURE',
      'webhook-signature does not match this secret and these bytes',
    )
  try {
    return plainJson(new TextDecoder().decode(body)) as WebhookEvent<Data>
  } catch {
    throw new WebhookError('BODY', 'the body is signed, but it is not JSON')
  }
}

/** Decodes base64, with or without padding; null for every other text. */
function decode(text: string): Uint8Array | null {
  const bare = text.replace(/=+$/, '')
  try {
    return base64.decode(bare.padEnd(Math.ceil(bare.length / 4) * 4, '='))
  } catch {
    return null
  }
}

/** Compares two texts of equal length in constant time. */
function equal(a: Uint8Array, b: Uint8Array): boolean {
  let difference = a.length ^ b.length
  for (let i = 0; i < b.length; i++) difference |= (a[i] ?? 0) ^ (b[i] as number)
  return difference === 0
}

function keyOf(secret: string): Uint8Array {
  const key = decode(secret.startsWith(PREFIX) ? secret.slice(PREFIX.length) : secret)
  if (key === null || key.length < SECRET_BYTES_MIN || key.length > SECRET_BYTES_MAX)
    throw new TypeError(
      'secret must be whsec_ and base64, as it was returned when the webhook was created',
    )
  return key
}

function headerOf(headers: HeadersLike, name: string): string {
  const value =
    typeof (headers as { get?: unknown }).get === 'function'
      ? (headers as { get(name: string): string | null }).get(name)
      : (headers as Record<string, string | readonly string[] | undefined>)[name]
  if (typeof value !== 'string' || value === '')
    throw new WebhookError('HEADER', `${name} is missing`)
  return value
}
