import { utf8ToBytes } from '@noble/hashes/utils.js'
import { JsonNumber, parseJson } from '@custody/request-auth/web'
import { base64, base64urlnopad } from '@scure/base'
import { refuse } from './errors.ts'

/** What the token of a caller's request states. */
export interface TokenClaims {
  uri: string
  /** API key. */
  sub: string
  nonce: string
  bodyHash: string
  /** Unix seconds. */
  iat: number
  /** HTTP method, if the token covers it. */
  method?: string
}

const ALGORITHM = { name: 'RSASSA-PKCS1-v1_5', hash: 'SHA-256' }
const TOKEN_LENGTH_MAX = 16_384

const differs = (field: string): never =>
  refuse('REQUEST', `the signed request of the caller does not match: ${field} differs`)

function readObject(segment: string): Record<string, unknown> {
  try {
    const text = new TextDecoder('utf-8', { fatal: true }).decode(base64urlnopad.decode(segment))
    const value = parseJson(text)
    if (typeof value === 'object' && value !== null && !Array.isArray(value))
      return value as Record<string, unknown>
  } catch {
    // Every fault of a token has the same consequence.
  }
  return differs('the token')
}

/** Returns the three parts of a token. @throws ApprovalError `REQUEST` */
function partsOf(token: string): [string, string, string] {
  const parts = token.length > TOKEN_LENGTH_MAX ? [] : token.split('.')
  return parts.length === 3 ? (parts as [string, string, string]) : differs('the token')
}

/**
 * Reads the claims of a token. Its signature is not verified.
 * @throws ApprovalError `REQUEST`
 */
export function claimsOf(token: string): TokenClaims {
  const claims = readObject(partsOf(token)[1])
  const { uri, sub, nonce, iat, method } = claims
  const bodyHash = claims['bodyHash'] ?? claims['bodyhash']
  const seconds = iat instanceof JsonNumber ? Number(iat.text) : Number.NaN
  const name = nonce instanceof JsonNumber ? nonce.text : nonce
  if (
    typeof uri !== 'string' ||
    typeof sub !== 'string' ||
    typeof name !== 'string' ||
    typeof bodyHash !== 'string' ||
    (method !== undefined && typeof method !== 'string') ||
    !Number.isSafeInteger(seconds)
  )
    return differs('the token')
  return {
    uri,
    sub,
    nonce: name,
    bodyHash,
    iat: seconds,
    ...(method === undefined ? {} : { method }),
  }
}

/** Returns the DER of a public key in PEM. @throws ApprovalError `CALLER` */
function derOfPem(pem: string, apiKey: string): Uint8Array<ArrayBuffer> {
  const block = /-----BEGIN PUBLIC KEY-----([\sA-Za-z0-9+/=]+)-----END PUBLIC KEY-----/.exec(pem)
  try {
    if (block) return Uint8Array.from(base64.decode((block[1] as string).replaceAll(/\s/g, '')))
  } catch {
    // Text that is not base64 is the same as text without a key.
  }
  return refuse('CALLER', `callers: the value of ${apiKey} is not a public key in PEM`)
}

/**
 * Verifies the caller's signature of a request.
 * @param callers public keys in PEM, by API key
 * @throws ApprovalError `CALLER`
 */
export async function assertCaller(
  token: string,
  callers: Readonly<Record<string, string>>,
): Promise<void> {
  const [header, payload, signature] = partsOf(token)
  const { sub } = claimsOf(token)
  const pem = Object.hasOwn(callers, sub) ? callers[sub] : undefined
  if (pem === undefined)
    return refuse(
      'CALLER',
      `the request is of the API key ${sub.slice(0, 64)}, which is none of the callers that you passed`,
    )
  const { alg, crit } = readObject(header)
  if (alg !== 'RS256' || crit !== undefined)
    refuse('CALLER', 'the token of the request does not have the algorithm RS256')
  const subtle = (globalThis as { crypto?: typeof globalThis.crypto }).crypto?.subtle
  if (subtle === undefined)
    return refuse('CALLER', 'WebCrypto is not available here: a page requires https, or localhost')
  let isSigned = false
  try {
    const key = await subtle.importKey('spki', derOfPem(pem, sub), ALGORITHM, false, ['verify'])
    const bytes = Uint8Array.from(base64urlnopad.decode(signature))
    isSigned = await subtle.verify(
      ALGORITHM.name,
      key,
      bytes,
      Uint8Array.from(utf8ToBytes(`${header}.${payload}`)),
    )
  } catch (error) {
    if (error instanceof Error && error.name === 'ApprovalError') throw error
    // A key or signature that cannot be read verifies nothing.
  }
  if (!isSigned)
    refuse('CALLER', `the request is not signed by the key that you passed for the API key ${sub}`)
}
