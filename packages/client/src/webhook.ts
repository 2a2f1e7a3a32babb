import { hmac } from '@noble/hashes/hmac.js'
import { sha256 } from '@noble/hashes/sha2.js'
import { concatBytes, utf8ToBytes } from '@noble/hashes/utils.js'
import { base64 } from '@scure/base'
import { plainJson } from './wire.ts'

const PREFIX = 'whsec_'
const TOLERANCE_S = 300
const SECRET_BYTES_MIN = 24
const SECRET_BYTES_MAX = 64

/** An event as it is sent. Amounts are decimal strings, as everywhere in this client. */
export interface WebhookEvent<Data = Record<string, unknown>> {
  /** Its name, such as `transaction.confirmed`. */
  type: string
  /** When it happened, ISO 8601. */
  timestamp: string
  data: Data
  /** The same on every try: whoever has seen it has nothing to do. */
  id: string
  /** What it is about. */
  object: string
  /** Of the object: 1, 2, 3 … A lower one than was seen already is older news. */
  version: number
  /** The event did not happen: `npx custody trigger` sent it, on the local network alone. */
  test?: true
}

/** A delivery that is not to be believed. `code` says why. */
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
 * Checks that a delivery comes from the custody service and is fresh (Standard Webhooks 1.0, scheme
 * `v1`).
 * @param headers of the request: Node's, or those of a `Request`
 * @param rawBody the very bytes that came, or their text: JSON that was parsed and written again
 *   has another signature
 * @param secret `whsec_…`, as it was shown when the webhook was created or rotated
 * @param options `toleranceS`: how old or early it may be, 300 s where it is absent; `now`: Unix
 *   seconds, the clock's by default
 * @throws WebhookError where it is not to be believed; answer 400 then, and do nothing
 * @throws TypeError where the secret is none
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
  // During a rotation there is one for each secret; schemes that are not known are passed over.
  const isSigned = signatures.split(' ').some((each) => {
    if (!each.startsWith('v1,')) return false
    const given = decode(each.slice('v1,'.length))
    return given !== null && equal(given, expected)
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

/** Base64, with its padding or without; null for every other text. */
function decode(text: string): Uint8Array | null {
  const bare = text.replace(/=+$/, '')
  try {
    return base64.decode(bare.padEnd(Math.ceil(bare.length / 4) * 4, '='))
  } catch {
    return null
  }
}

/** Takes as long wherever two texts of one length differ. */
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
