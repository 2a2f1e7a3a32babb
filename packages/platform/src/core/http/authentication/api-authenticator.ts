import { SIGNED_BODY_BYTES_MAX, type SignedRequest } from '@custody/request-auth'
import type { FastifyRequest } from 'fastify'
import { ApiError } from '../../errors.ts'
import type { Settings } from '../../settings/settings.ts'
import type { Environment } from '../../environment.ts'
import type { DatabaseHold } from '../../engine/database-hold.ts'
import { authenticate } from './authenticate.ts'
import type { KnownCaller, Callers } from './callers.ts'
import { countAddress, type Authenticator, type Principal } from './authenticator.ts'
import type { Endpoint } from '../endpoint.ts'
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
    // The signed bytes of a write request are passed on to the signer nodes.
    bodyBytesMax: ({ access }) => (access === 'write' ? SIGNED_BODY_BYTES_MAX : null),
    async admit(request, rawBody, definition) {
      if (definition.access === 'public') {
        countAddress(limits.open, services, request)
        return { admission: {}, holder: null }
      }
      const { caller, signed } = await admitCaller(services, limits, request, rawBody, definition)
      const isAudited =
        definition.access === 'write' && (caller.personId !== null || definition.audit === 'entry')
      if (isAudited) await auditWrite?.(caller, signed, request.ip)
      const holder: Principal = {
        name: `key ${caller.apiKey}`,
        share: `workspace ${caller.workspaceId}`,
        stays: async () => (await services.callers.find(caller.apiKey)) !== null,
      }
      return { admission: { caller, signed }, holder }
    },
  }
}

/**
 * Authenticates and authorizes the caller. Only a failed authentication counts against the rate
 * limit of the client's address.
 */
async function admitCaller(
  services: Services,
  limits: AddressLimits,
  request: FastifyRequest,
  rawBody: string,
  { access, path }: Endpoint,
): Promise<{ caller: KnownCaller; signed: SignedRequest }> {
  try {
    const { caller, signed, rate } = await authenticate(services, request, rawBody, path)
    request.rate = rate
    if (access === 'write' && caller.role !== 'full')
      throw new ApiError(
        'READ_ONLY',
        'this API key is read-only; the operation requires a key with the role full',
      )
    if (access === 'write') assertExactTarget(request.raw.url ?? '', path)
    if (access === 'write') services.hold.assertOpen()
    return { caller, signed }
  } catch (error) {
    const rate =
      error instanceof ApiError ? (error.details?.['rate'] as RateState | undefined) : undefined
    if (rate) request.rate = rate
    else if (error instanceof ApiError && error.status === 401)
      countAddress(limits.strangers, services, request)
    throw error
  }
}
