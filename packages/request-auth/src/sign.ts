import { createHash, randomUUID, sign, type KeyObject } from 'node:crypto'
import { promisify } from 'node:util'
import { parsePrivateKey } from './keys.ts'
import type { SignedRequest } from './types.ts'

const signAsync = promisify(sign) as (algorithm: string, data: Buffer, key: KeyObject) => Promise<Buffer>

/** Lifetime of a token in seconds; the rule is strictly less than 30. */
export const TOKEN_LIFETIME_S = 25

export interface SignOptions {
  apiKey: string
  /** PEM (PKCS#8 or PKCS#1) or a KeyObject. */
  privateKey: string | KeyObject
  method: string
  /** Path with its query when there is one. */
  uri: string
  body?: string
  /** Unix seconds; the clock's by default. */
  now?: number
  nonce?: string
  /** Replaces claims, for tests of refusals. */
  claims?: Record<string, unknown>
}

/** Lowercase hex SHA-256 of the body as UTF-8; of the empty string where there is none. */
export function bodyHash(body: string | Uint8Array): string {
  return createHash('sha256').update(body).digest('hex')
}

/** Makes the JWT (RS256) of one request. */
export async function signRequest(options: SignOptions): Promise<SignedRequest> {
  const iat = options.now ?? Math.floor(Date.now() / 1000)
  const body = options.body ?? ''
  const claims = {
    uri: options.uri,
    nonce: options.nonce ?? randomUUID(),
    iat,
    exp: iat + TOKEN_LIFETIME_S,
    sub: options.apiKey,
    bodyHash: bodyHash(body),
    ...options.claims,
  }
  const encode = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url')
  const input = `${encode({ alg: 'RS256', typ: 'JWT' })}.${encode(claims)}`
  const key = typeof options.privateKey === 'string' ? parsePrivateKey(options.privateKey) : options.privateKey
  const signature = await signAsync('RSA-SHA256', Buffer.from(input), key)
  return { token: `${input}.${signature.toString('base64url')}`, method: options.method.toUpperCase(), uri: options.uri, body }
}

/** The headers that carry a signed request. */
export function requestHeaders(request: SignedRequest, apiKey: string): Record<string, string> {
  return {
    authorization: `Bearer ${request.token}`,
    'x-api-key': apiKey,
    ...(request.body === '' ? {} : { 'content-type': 'application/json' }),
  }
}
