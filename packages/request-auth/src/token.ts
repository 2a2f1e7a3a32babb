import { utf8ToBytes } from '@noble/hashes/utils.js'
import { base64urlnopad } from '@scure/base'
import type { SignedRequest } from './types.ts'

/** Lifetime of a token in seconds; it must be strictly less than 30. */
export const TOKEN_LIFETIME_S = 25

export interface TokenOptions {
  apiKey: string
  method: string
  /** Path, with its query if there is one. */
  uri: string
  body?: string
  /** Unix seconds; by default the current time. */
  now?: number
  nonce?: string
  /** Replaces claims, for tests of rejections. */
  claims?: Record<string, unknown>
}

/**
 * Returns the signed data of a request: the JWT's header and claims, base64url.
 * @param bodyHash lower-case hex SHA-256 of the body, of the empty string if there is no body
 */
export function tokenInput(options: TokenOptions, bodyHash: string): string {
  const iat = options.now ?? Math.floor(Date.now() / 1000)
  const claims = {
    uri: options.uri,
    method: options.method.toUpperCase(),
    nonce: options.nonce ?? globalThis.crypto.randomUUID(),
    iat,
    exp: iat + TOKEN_LIFETIME_S,
    sub: options.apiKey,
    bodyHash,
    ...options.claims,
  }
  const encode = (value: unknown) => base64urlnopad.encode(utf8ToBytes(JSON.stringify(value)))
  return `${encode({ alg: 'RS256', typ: 'JWT' })}.${encode(claims)}`
}

/** Returns the request with its token, which consists of the signed data and the signature. */
export function signedRequest(
  options: TokenOptions,
  input: string,
  signature: Uint8Array,
): SignedRequest {
  const token = `${input}.${base64urlnopad.encode(signature)}`
  return { token, method: options.method.toUpperCase(), uri: options.uri, body: options.body ?? '' }
}

/** Returns the headers of a signed request. */
export function requestHeaders(request: SignedRequest, apiKey: string): Record<string, string> {
  return {
    authorization: `Bearer ${request.token}`,
    'x-api-key': apiKey,
    ...(request.body === '' ? {} : { 'content-type': 'application/json' }),
  }
}
