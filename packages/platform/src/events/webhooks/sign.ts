import { createHmac, sign as signWith, type KeyObject } from 'node:crypto'
import { promisify } from 'node:util'

const SECRET_PREFIX = 'whsec_'
export const SECRET_BYTES = 32

export const newSecret = (bytes: Uint8Array): string =>
  SECRET_PREFIX + Buffer.from(bytes).toString('base64')

const inBackground = promisify(signWith) as (
  algorithm: string,
  data: Buffer,
  key: KeyObject,
) => Promise<Buffer>

/**
 * Returns the `webhook-signature` of Standard Webhooks 1.0: HMAC-SHA256 over `id.timestamp.body`.
 * @param secret `whsec_…`
 */
function signatureOf(secret: string, id: string, timestamp: string, body: string): string {
  const key = Buffer.from(secret.slice(SECRET_PREFIX.length), 'base64')
  return `v1,${createHmac('sha256', key).update(`${id}.${timestamp}.${body}`).digest('base64')}`
}

/** Returns the `x-signature`: RSA-SHA512 (PKCS #1 v1.5) over a body, in base64. */
export const bodySignature = async (body: string, key: KeyObject): Promise<string> =>
  (await inBackground('RSA-SHA512', Buffer.from(body), key)).toString('base64')

/**
 * Returns the headers of one attempt.
 * @param o `secrets`: each signs; during a rotation there are two. `now`: milliseconds since the
 *   Unix Epoch. `key`: the platform's key for `x-signature`; null: without it. `test`: marks a test
 *   event that did not happen.
 */
export async function headersFor(o: {
  id: string
  body: string
  secrets: readonly string[]
  now: number
  key: KeyObject | null
  test?: boolean
}): Promise<Record<string, string>> {
  const timestamp = String(Math.floor(o.now / 1000))
  return {
    'content-type': 'application/json; charset=utf-8',
    'content-length': String(Buffer.byteLength(o.body)),
    'user-agent': 'custody-webhooks/1',
    'webhook-id': o.id,
    'webhook-timestamp': timestamp,
    'webhook-signature': o.secrets
      .map((secret) => signatureOf(secret, o.id, timestamp, o.body))
      .join(' '),
    ...(o.test === true ? { 'custody-test': 'true' } : {}),
    ...(o.key ? { 'x-signature': await bodySignature(o.body, o.key) } : {}),
  }
}
