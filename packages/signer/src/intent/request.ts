import {
  AuthError,
  claimedNonceAndSubject,
  parsePublicKey,
  SIGNED_BODY_BYTES_MAX,
  transactionId,
  verifyRequest,
  type Claims,
  type SignedRequest,
} from '@custody/request-auth'
import { createHash, type KeyObject } from 'node:crypto'
import { z } from 'zod'
import { Refusal } from '../errors.ts'
import type { Enrolment, State } from '../store/state.ts'

export const signedRequestSchema = z.strictObject({
  token: z.string().min(1).max(8192),
  method: z.string().max(16),
  uri: z.string().max(2048),
  // The limit is in bytes, and no text has more characters than bytes.
  body: z.string().max(SIGNED_BODY_BYTES_MAX),
})

/** A verified request: its caller, its times and its nonce. */
export interface Proven {
  request: SignedRequest
  enrolment: Enrolment
  nonce: string
  iat: number
  exp: number
  transaction_id: string
}

/** Maximum number of seconds by which a caller's clock may be ahead of the node's clock. */
const FUTURE_S_MAX = 60

const parsedKeys = new Map<string, KeyObject>()
function keyOf(pem: string): KeyObject {
  let key = parsedKeys.get(pem)
  if (!key) {
    key = parsePublicKey(pem)
    parsedKeys.set(pem, key)
  }
  return key
}

/**
 * Maximum size of the cache of verified requests. It contains their claims, by the hash of all
 * verified data and of the key.
 */
const VERIFIED_MAX = 4000
const verified = new Map<string, Claims>()

/**
 * Verifies everything of a request except its age, once, because a request is sent again for its
 * receipt, for fuel and for each signature. A replaced key results in another cache entry, and the
 * enrolment is never read from the cache.
 */
async function claimsOf(
  request: SignedRequest,
  pem: string,
  apiKey: string,
  now: number,
): Promise<Claims> {
  const { token, method, uri, body } = request
  const name = createHash('sha256')
    .update(JSON.stringify([pem, apiKey, token, method, uri, body]))
    .digest('base64')
  const existing = verified.get(name)
  if (existing) return existing
  const claims = await verifyRequest({ request, apiKey, publicKey: keyOf(pem), now, age: 'none' })
  if (verified.size >= VERIFIED_MAX) verified.delete(verified.keys().next().value as string)
  verified.set(name, claims)
  return claims
}

/**
 * Rule 2: verifies the request as the API does, except its age. The key comes only from this node's
 * enrolments.
 * @param revokedToo whether a request of a revoked caller is accepted, as for a void
 */
export async function prove(
  state: State,
  request: SignedRequest,
  now: number,
  revokedToo = false,
): Promise<Proven> {
  try {
    const { sub } = claimedNonceAndSubject(request.token)
    const enrolment = state.enrolments.get(sub)
    if (!enrolment) throw new Refusal('NOT_ENROLLED', 'The API key is not enrolled at this node')
    if (enrolment.revoked && !revokedToo)
      throw new Refusal('NOT_ENROLLED', 'The API key is revoked at this node')
    const claims = await claimsOf(request, enrolment.public_key_pem, sub, now)
    for (const claim of ['iat', 'nbf'] as const) {
      if ((claims[claim] ?? 0) > now + FUTURE_S_MAX)
        throw new Refusal('NOT_AUTHENTIC', `${claim} is in the future`)
    }
    return {
      request,
      enrolment,
      nonce: claims.nonce,
      iat: claims.iat,
      exp: claims.exp,
      transaction_id: transactionId(sub, claims.nonce),
    }
  } catch (error) {
    if (error instanceof AuthError)
      throw new Refusal('NOT_AUTHENTIC', `${error.claim} ${error.message}`, { claim: error.claim })
    throw error
  }
}
