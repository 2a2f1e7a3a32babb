import type { IncomingMessage } from 'node:http'
import { AuthError, verifyHead, type BodyVerifier, type SignedRequest } from '@custody/request-auth'
import type { FastifyRequest } from 'fastify'
import { ApiError } from '../../errors.ts'
import type { Settings } from '../../settings/settings.ts'
import type { Environment } from '../../environment.ts'
import type { KnownCaller, Callers } from './callers.ts'
import { isAllowed } from './ip-allow-list.ts'
import type { RateState } from '../rate-limit.ts'

interface Services {
  settings: Pick<Settings, 'authLegacy' | 'rateLimit' | 'rateScope'>
  environment: Environment
  callers: Callers
}

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/
/**
 * Error message for a key in another spelling. Signer nodes compare the API key byte by byte with
 * the claim `sub`, and transfer IDs are derived from it, so only one spelling is accepted.
 */
const NO_KEY =
  'must be an API key as it was issued: a UUID in lower case, the same as the claim sub'

/**
 * Returns a header that appears once, or null. Throws if it appears twice, because Node would
 * silently keep only the first value.
 */
function onlyHeader(message: IncomingMessage, name: string): string | null {
  const values: string[] = []
  for (let at = 0; at < message.rawHeaders.length; at += 2) {
    if ((message.rawHeaders[at] as string).toLowerCase() === name)
      values.push(message.rawHeaders[at + 1] as string)
  }
  if (values.length > 1) throw new AuthError(name, 'appears more than once')
  return values[0] ?? null
}

export interface Authenticated {
  caller: KnownCaller
  signed: SignedRequest
  rate: RateState
}

/** A token and an API key in the right form. Neither has been verified. */
export interface Credentials {
  apiKey: string
  token: string
}

/** A request whose token was verified, except for the hash of its body. */
export interface Identified {
  caller: KnownCaller
  signed: Omit<SignedRequest, 'body'>
  verifyBody: BodyVerifier
}

/** Runs a step of the authentication, and converts its error to that of the API. */
async function named<T>(step: () => T | Promise<T>): Promise<T> {
  try {
    return await step()
  } catch (error) {
    if (error instanceof AuthError)
      throw new ApiError('UNAUTHORIZED', `${error.claim}: ${error.message}`, { field: error.claim })
    throw error
  }
}

/**
 * Reads the headers of a signed request.
 * @throws ApiError 401 that names the header
 */
export const readCredentials = ({ raw: message }: FastifyRequest): Promise<Credentials> =>
  named(() => {
    const authorization = onlyHeader(message, 'authorization')
    if (authorization === null)
      throw new AuthError('Authorization', 'header is missing: send "Bearer <JWT>"')
    const apiKey = onlyHeader(message, 'x-api-key')
    if (apiKey === null) throw new AuthError('x-api-key', 'header is missing')
    const match = /^(?:Bearer|Token) +([^\s]+)$/i.exec(authorization.trim())
    if (!match) throw new AuthError('Authorization', 'must be "Bearer <JWT>" or "Token <JWT>"')
    if (!UUID.test(apiKey)) throw new AuthError('x-api-key', NO_KEY)
    return { apiKey, token: match[1] as string }
  })

/**
 * Identifies the caller of a request by everything but its body, so that the body is received from
 * known callers only.
 * @throws ApiError 401 that names the claim, 403 if the key may not be used from this address
 */
export const identify = (
  services: Services,
  { raw: message, ip }: FastifyRequest,
  { apiKey, token }: Credentials,
): Promise<Identified> =>
  named(async () => {
    const caller = await services.callers.find(apiKey)
    if (!caller) throw new AuthError('x-api-key', 'is unknown or revoked')
    const signed = { token, method: message.method ?? 'GET', uri: message.url ?? '/' }
    const verifyBody = verifyHead({
      request: signed,
      apiKey,
      publicKey: caller.publicKey,
      now: Math.floor(services.environment.now() / 1000),
      age: 'live',
      legacy: services.settings.authLegacy,
    })
    // The list is checked after the signature, so that only the key's owner learns about it.
    if (!isAllowed(caller.ipAllowList, ip)) {
      throw new ApiError(
        'IP_NOT_ALLOWED',
        `this API key may not be used from ${ip}, which is not in its list of addresses`,
      )
    }
    return { caller, signed, verifyBody }
  })

/**
 * Completes the authentication of a request with its body, and counts it. The nonce is spent last,
 * so that a forged request cannot use one up.
 * @param path path of the endpoint
 * @param weight number of requests as which this one counts
 * @throws ApiError 401 that names the claim, 429 above the rate limit
 */
export const authenticate = (
  services: Services,
  { caller, signed, verifyBody }: Identified,
  body: string,
  { path, weight }: { path: string; weight: number },
): Promise<Authenticated> =>
  named(async () => {
    const { apiKey } = caller
    const { nonce } = verifyBody(body)
    const limit = caller.rateLimit ?? services.settings.rateLimit
    // A HEAD request has the same authorization as a GET request.
    const method = signed.method === 'HEAD' ? 'GET' : signed.method
    const subject =
      services.settings.rateScope === 'endpoint' ? `${apiKey} ${method} ${path}` : apiKey
    const { nonceOk, requests, window } = await services.callers.admit({
      apiKey,
      nonce,
      subject,
      limit,
    })
    const rate = { remaining: Math.max(0, limit - requests), reset: window.end }
    if (requests > limit) {
      throw new ApiError(
        'RATE_LIMITED',
        `more than ${limit} requests in this minute; wait until ${new Date(window.end).toISOString()}`,
        { details: { rate } },
      )
    }
    if (!nonceOk)
      throw new ApiError('UNAUTHORIZED', 'nonce: was used before', {
        field: 'nonce',
        details: { rate },
      })
    services.callers.used(apiKey)
    if (weight > 1) {
      await services.callers.charge(subject, weight - 1, window)
      rate.remaining = Math.max(0, rate.remaining - weight + 1)
    }
    return { caller, signed: { ...signed, body }, rate }
  })
