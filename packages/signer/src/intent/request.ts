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
  // No text has more characters than bytes.
  body: z.string().max(SIGNED_BODY_BYTES_MAX),
})

/** A caller's request, proven: who, when, and under which nonce. */
export interface Proven {
  request: SignedRequest
  enrolment: Enrolment
  nonce: string
  iat: number
  exp: number
  transaction_id: string
}

/** How far a caller's clock may run ahead of the node's. */
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
 * Requests that this process has verified: what they claim, by the hash of all that was verified
 * and of the key it was verified with.
 */
const VERIFIED_MAX = 4000
const verified = new Map<string, Claims>()

/**
 * Verifies all of a request but its age, once: a request comes back for its receipt, for fuel and
 * for each signature. A caller whose key is another one now is another line of this memory, and
 * whether he is enrolled is never asked of it.
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
  const known = verified.get(name)
  if (known) return known
  const claims = await verifyRequest({ request, apiKey, publicKey: keyOf(pem), now, age: 'none' })
  if (verified.size >= VERIFIED_MAX) verified.delete(verified.keys().next().value as string)
  verified.set(name, claims)
  return claims
}

/**
 * Rule 2: verifies the request as the API does, but for its age. The key comes from this node's
 * enrolments alone.
 * @param revokedToo a void may be proven by a revoked caller's request
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
