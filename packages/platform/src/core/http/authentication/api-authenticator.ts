import { SIGNED_BODY_BYTES_MAX, type SignedRequest } from '@custody/request-auth'
import type { FastifyRequest } from 'fastify'
import { ApiError } from '../../errors.ts'
import type { Settings } from '../../settings/settings.ts'
import type { Environment } from '../../environment.ts'
import type { DatabaseHold } from '../../engine/database-hold.ts'
import { authenticate, identify, readCredentials, type Identified } from './authenticate.ts'
import type { KnownCaller, Callers } from './callers.ts'
import {
  assertNotExhausted,
  countAddress,
  type Authenticator,
  type Principal,
} from './authenticator.ts'
import { DOCUMENT_BYTES_MAX, PUBLIC_BODY_BYTES_MAX } from '../bodies.ts'
import { rolesOf, type Endpoint } from '../endpoint.ts'
import { assertExactTarget } from '../exact-target.ts'
import type { AddressLimits, RateState } from '../rate-limit.ts'

interface Services {
  settings: Pick<Settings, 'authLegacy' | 'rateLimit' | 'rateScope'>
  environment: Environment
  hold: DatabaseHold
  callers: Callers
}

/**
 * Writes a requested change to the audit log before it is made: requests of API keys that belong to
 * a person, and changes of settings by any key.
 */
export type AuditWrite = (caller: KnownCaller, signed: SignedRequest, ip: string) => Promise<void>

/** Authenticator of the API: callers sign each request. */
export function apiAuthenticator(
  services: Services,
  limits: AddressLimits,
  auditWrite: AuditWrite | null,
): Authenticator<Endpoint> {
  return {
    bodyBytesMax: ({ access, hasDocument }) =>
      access === 'public'
        ? PUBLIC_BODY_BYTES_MAX
        : hasDocument
          ? DOCUMENT_BYTES_MAX
          : SIGNED_BODY_BYTES_MAX,
    async identify(request, definition) {
      if (definition.access === 'public') {
        countAddress(limits.open, services, request)
        return {
          owner: { ip: request.ip },
          admit: async () => ({ admission: {}, holder: null, workspaceId: null }),
        }
      }
      const identified = await counted(services, limits, request, () =>
        identifyCaller(services, limits, request),
      )
      const share = `workspace ${identified.caller.workspaceId}`
      return {
        owner: { share },
        async admit(rawBody) {
          const { caller, signed } = await counted(services, limits, request, () =>
            admitCaller(services, request, { identified, rawBody, definition }),
          )
          const isAudited =
            definition.access === 'write' &&
            (caller.personId !== null || definition.audit === 'entry')
          if (isAudited) await auditWrite?.(caller, signed, request.ip)
          const holder: Principal = {
            name: `key ${caller.apiKey}`,
            share,
            stays: async () => (await services.callers.find(caller.apiKey)) !== null,
          }
          return { admission: { caller, signed }, holder, workspaceId: caller.workspaceId }
        },
      }
    },
  }
}

/**
 * Runs a step of the authentication. Only a failed authentication counts against the rate limit of
 * the client's address.
 */
async function counted<T>(
  services: Services,
  limits: AddressLimits,
  request: FastifyRequest,
  step: () => Promise<T>,
): Promise<T> {
  try {
    return await step()
  } catch (error) {
    const rate =
      error instanceof ApiError ? (error.details?.['rate'] as RateState | undefined) : undefined
    if (rate) request.rate = rate
    else if (error instanceof ApiError && error.status === 401)
      countAddress(limits.strangers, services, request)
    throw error
  }
}

/**
 * Identifies the caller by the headers. If the client's address has used up its limit, only keys that
 * were recently used from there are looked up.
 */
async function identifyCaller(
  services: Services,
  limits: AddressLimits,
  request: FastifyRequest,
): Promise<Identified> {
  const credentials = await readCredentials(request)
  assertNotExhausted(limits, services, request, credentials.apiKey)
  const identified = await identify(services, request, credentials)
  limits.recent.note(request.ip, credentials.apiKey)
  return identified
}

/** Authenticates and authorizes an identified caller with the body. */
async function admitCaller(
  services: Services,
  request: FastifyRequest,
  {
    identified,
    rawBody,
    definition,
  }: { identified: Identified; rawBody: string; definition: Endpoint },
): Promise<{ caller: KnownCaller; signed: SignedRequest }> {
  const { access, path, heavy } = definition
  const { caller, signed, rate } = await authenticate(services, identified, rawBody, {
    path,
    weight: heavy?.weight ?? 1,
  })
  request.rate = rate
  const roles = rolesOf(definition)
  if (!roles.includes(caller.role))
    throw new ApiError(
      'READ_ONLY',
      `this API key has the role ${caller.role}; the operation requires a key with the role ${roles.join(' or ')}`,
    )
  if (access === 'write') assertExactTarget(request.raw.url ?? '', path)
  if (access === 'write') services.hold.assertOpen()
  return { caller, signed }
}
