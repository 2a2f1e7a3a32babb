import { timingSafeEqual, verify, type KeyObject } from 'node:crypto'
import { JsonNumber, parseJson } from './json.ts'
import { bodyHash } from './sign.ts'
import {
  AuthError,
  CLOCK_SKEW_S,
  NONCE_LENGTH_MAX,
  TOKEN_BYTES_MAX,
  WINDOW_S,
  type Claims,
  type SignedRequest,
} from './types.ts'

const HASH_OF_NOTHING = bodyHash('')

export interface VerifyOptions {
  request: SignedRequest
  /** Value of the `x-api-key` header. */
  apiKey: string
  publicKey: KeyObject
  /** Unix seconds. */
  now: number
  /** `live`: the token must be valid now. `none`: everything except its age is checked. */
  age: 'live' | 'none'
  /** Accept a missing body hash if there is no body (old clients). */
  legacy?: boolean
}

/**
 * Verifies a signed request in a fixed order: algorithm, signature, claims, window, clock, subject,
 * path, body. The calling code must spend the nonce after this returns.
 *
 * @throws AuthError whose `claim` names the part that failed
 */
export async function verifyRequest(options: VerifyOptions): Promise<Claims> {
  return verifyHead(options)(options.request.body)
}

/** Verifies the body of a request, and returns the claims. @throws AuthError */
export type BodyVerifier = (body: string) => Claims

/**
 * Verifies everything of a signed request but its body, in the order of {@link verifyRequest}. The
 * body can then be received from an authenticated caller only.
 *
 * @throws AuthError whose `claim` names the part that failed
 */
export function verifyHead({
  request,
  apiKey,
  publicKey,
  now,
  age,
  legacy = false,
}: Omit<VerifyOptions, 'request'> & { request: Omit<SignedRequest, 'body'> }): BodyVerifier {
  const claims = readObject(authenticPayload(request.token, publicKey), 'payload')
  const validity = validityOf(claims)
  if (age === 'live') assertLive(validity, now)
  const sub = claims['sub']
  if (typeof sub !== 'string' || !equal(sub, apiKey))
    throw new AuthError('sub', 'must equal the x-api-key header')
  const method = checkedMethod(claims['method'], request.method)
  const uri = checkedUri(claims['uri'], request.uri, method !== undefined)
  const { iat, exp, nbf } = validity
  return (body) => ({
    uri,
    bodyHash: checkedBodyHash(claims, body, legacy),
    nonce: nonceOf(claims['nonce']),
    iat,
    exp,
    sub,
    ...(nbf === undefined ? {} : { nbf }),
    ...(method === undefined ? {} : { method }),
  })
}

/**
 * Returns the optional claim `method` after comparing it with the request.
 * @returns undefined if the token does not have the claim
 * @throws AuthError
 */
function checkedMethod(claim: unknown, method: string): string | undefined {
  if (claim === undefined) return undefined
  // HEAD has the meaning and the authorization of GET, and clients of HTTP may send it instead.
  if (typeof claim === 'string' && (claim === method || (claim === 'GET' && method === 'HEAD')))
    return claim
  throw new AuthError(
    'method',
    `must be ${method}, the method of the request, in upper case; omit the claim if the method is not signed`,
  )
}

/**
 * Returns the claim `uri` after comparing it with the target of the request.
 * @param isWhole whether the claim must include the query
 * @throws AuthError
 */
function checkedUri(uri: unknown, target: string, isWhole: boolean): string {
  const isPath = uri === target.split('?', 1)[0]
  if (typeof uri !== 'string' || (uri !== target && !isPath))
    throw new AuthError('uri', 'must be the path of the request, with or without its query')
  if (isWhole && uri !== target)
    throw new AuthError(
      'uri',
      'must contain the query exactly as sent, because the token has the claim method',
    )
  return uri
}

/**
 * Verifies a token's format, algorithm and signature, and returns its payload in base64url.
 * @throws AuthError
 */
function authenticPayload(token: string, publicKey: KeyObject): string {
  if (token.length > TOKEN_BYTES_MAX)
    throw new AuthError('token', `is longer than ${TOKEN_BYTES_MAX} characters`)
  const segments = token.split('.')
  const [header, payload, signature] = segments as [string, string, string]
  // A second encoding of the same token must be rejected, so the base64url text is compared with
  // its own re-encoding.
  if (
    segments.length !== 3 ||
    !segments.every(
      (segment) =>
        segment !== '' && Buffer.from(segment, 'base64url').toString('base64url') === segment,
    )
  ) {
    throw new AuthError('token', 'is not a JWT of three base64url segments')
  }
  const head = readObject(header, 'header')
  if (head['alg'] !== 'RS256') throw new AuthError('alg', 'must be RS256')
  if (head['crit'] !== undefined)
    throw new AuthError('crit', 'critical header extensions are not supported')
  // Synchronous, because the verification takes a tenth of a millisecond, and passing it to another
  // thread would take as long again.
  const authentic = verify(
    'RSA-SHA256',
    Buffer.from(`${header}.${payload}`),
    publicKey,
    Buffer.from(signature, 'base64url'),
  )
  if (!authentic)
    throw new AuthError('signature', 'does not match the public key registered for this API key')
  return payload
}

/** Validity period of a token, in Unix seconds. */
interface Validity {
  iat: number
  exp: number
  nbf: number | undefined
}

/**
 * Reads a token's validity period, whose length is limited.
 * @throws AuthError
 */
function validityOf(claims: Record<string, unknown>): Validity {
  const iat = integer(claims, 'iat')
  const exp = integer(claims, 'exp')
  if (exp <= iat) throw new AuthError('exp', 'must be later than iat')
  if (exp - iat >= WINDOW_S)
    throw new AuthError('exp', `must be strictly less than iat + ${WINDOW_S}`)
  const nbf = claims['nbf'] === undefined ? undefined : integer(claims, 'nbf')
  return { iat, exp, nbf }
}

/**
 * Checks that a token is valid now, within the allowed clock skew.
 * @throws AuthError
 */
function assertLive({ iat, exp, nbf }: Validity, now: number): void {
  if (iat > now + CLOCK_SKEW_S)
    throw new AuthError('iat', `is in the future: check the clock (server time ${now})`)
  if (nbf !== undefined && nbf > now + CLOCK_SKEW_S) {
    throw new AuthError('nbf', `is in the future: the token is not valid yet (server time ${now})`)
  }
  if (exp <= now - CLOCK_SKEW_S) throw new AuthError('exp', `has passed (server time ${now})`)
}

/**
 * Returns the hash of a request's body, after comparing it with the claim.
 * @param legacy whether the claim may be missing if there is no body
 * @throws AuthError
 */
function checkedBodyHash(claims: Record<string, unknown>, body: string, legacy: boolean): string {
  const hash = claims['bodyHash'] ?? claims['bodyhash']
  const isEmpty = body === ''
  const expected = isEmpty ? HASH_OF_NOTHING : bodyHash(body)
  if (hash === undefined && isEmpty && legacy) return expected
  if (typeof hash !== 'string') {
    throw new AuthError(
      'bodyHash',
      'is missing: lowercase hex SHA-256 of the raw body, or of the empty string if there is no body',
    )
  }
  if (!equal(hash, expected))
    throw new AuthError('bodyHash', 'is not the lowercase hex SHA-256 of the body received')
  return expected
}

/** Returns the unverified API key and nonce of a token, to look up the key for the verification. */
export function claimedNonceAndSubject(token: string): { sub: string; nonce: string } {
  const claims = readObject(token.split('.')[1] ?? '', 'payload')
  const sub = claims['sub']
  if (typeof sub !== 'string') throw new AuthError('sub', 'is missing')
  return { sub, nonce: nonceOf(claims['nonce']) }
}

function readObject(segment: string, what: string): Record<string, unknown> {
  let value: unknown
  try {
    value = parseJson(Buffer.from(segment, 'base64url').toString('utf8'))
  } catch {
    throw new AuthError('token', `has a ${what} that is not strict JSON`)
  }
  if (
    typeof value !== 'object' ||
    value === null ||
    Array.isArray(value) ||
    value instanceof JsonNumber
  ) {
    throw new AuthError('token', `has a ${what} that is not an object`)
  }
  return value as Record<string, unknown>
}

function integer(claims: Record<string, unknown>, name: 'iat' | 'exp' | 'nbf'): number {
  const value = claims[name]
  if (!(value instanceof JsonNumber) || !/^\d{1,12}$/.test(value.text)) {
    throw new AuthError(name, 'must be an integer: seconds since the Unix Epoch')
  }
  return Number(value.text)
}

function nonceOf(value: unknown): string {
  if (
    typeof value === 'string' &&
    value.length > 0 &&
    value.length <= NONCE_LENGTH_MAX &&
    !value.includes('\0')
  )
    return value
  if (
    value instanceof JsonNumber &&
    /^-?\d+$/.test(value.text) &&
    value.text.length <= NONCE_LENGTH_MAX
  )
    return value.text
  throw new AuthError(
    'nonce',
    `must be a non-empty string of at most ${NONCE_LENGTH_MAX} characters, or an integer`,
  )
}

/** Compares two texts in constant time; their lengths are not secret. */
function equal(a: string, b: string): boolean {
  const [one, other] = [Buffer.from(a), Buffer.from(b)]
  return one.length === other.length && timingSafeEqual(one, other)
}
