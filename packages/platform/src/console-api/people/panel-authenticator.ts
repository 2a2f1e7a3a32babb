import { SIGNED_BODY_BYTES_MAX } from '@custody/request-auth'
import type { FastifyRequest } from 'fastify'
import { ApiError } from '../../core/errors.ts'
import type { Settings } from '../../core/settings/settings.ts'
import type { Environment } from '../../core/environment.ts'
import type { Database } from '../../core/database/pool.ts'
import type { People } from './people.ts'
import {
  assertNotExhausted,
  countAddress,
  type Authenticator,
  type Principal,
} from '../../core/http/authentication/authenticator.ts'
import { PUBLIC_BODY_BYTES_MAX } from '../../core/http/bodies.ts'
import type { Caller } from '../../core/http/endpoint.ts'
import type { AddressLimits } from '../../core/http/rate-limit.ts'
import { tokenOfCookie } from './cookie.ts'
import type { PanelEndpoint, Visitor } from './endpoint.ts'
import { assertOwnPage, fromOf } from './origin.ts'
import { includesRole, type Role } from './roles.ts'
import type { Session } from './sessions.ts'
import { hashOfToken } from './token.ts'

interface Services {
  settings: Pick<Settings, 'publicUrl'>
  environment: Environment
  database: Database
  people: People
}

/**
 * Time in milliseconds after the confirmation of a factor within which a person may change their
 * factors.
 */
const RECENT_MS = 15 * 60_000

/**
 * Authenticator of the control panel: requires a session cookie, a page of the panel, and a role in
 * the workspace of the path.
 */
export const panelAuthenticator = (
  services: Services,
  limits: AddressLimits,
): Authenticator<PanelEndpoint> => ({
  bodyBytesMax: ({ needs }) => (needs === 'nobody' ? PUBLIC_BODY_BYTES_MAX : SIGNED_BODY_BYTES_MAX),
  async identify(request, definition) {
    const { needs } = definition
    const from = fromOf(services, request)
    if (request.method !== 'GET' && request.method !== 'HEAD') assertOwnPage(request, from)
    const token = tokenOfCookie(request.headers.cookie, from)
    if (needs === 'nobody') {
      countAddress(limits.open, services, request)
      const someone = token === null ? null : await services.people.sessions.find(token)
      const visitor = { from, someone } as Visitor
      return {
        owner: { ip: request.ip },
        admit: async () => ({ admission: { visitor }, holder: null, workspaceId: null }),
      }
    }
    const someone = await sessionOf(services, limits, request, token)
    countSession(services, request, someone, definition.heavy?.weight)
    const params = request.params as Partial<Record<'workspace' | 'sub_account', string>>
    const member =
      params.workspace === undefined
        ? undefined
        : await memberOf(services, someone, params.workspace)
    if (needs !== 'anybody' && (!member || !includesRole(member.role, needs))) {
      if (!member) throw new Error(`${definition.path} requires a role but has no workspace`)
      throw new ApiError(
        'ROLE_REQUIRED',
        `the role ${needs} is required in ${member.workspace}; your role is ${member.role}`,
      )
    }
    const caller =
      member && params.sub_account !== undefined
        ? await callerOf(services, member, params.sub_account)
        : undefined
    if (
      definition.isSensitive &&
      services.environment.now() - someone.confirmedAt.getTime() > RECENT_MS
    ) {
      throw new ApiError(
        'RECENT_SIGN_IN_REQUIRED',
        'confirm one of your factors again: the last confirmation is more than 15 minutes old',
      )
    }
    const visitor = { from, someone, session: someone, ...(member ? { member } : {}) } as Visitor
    const holder = principalOf(services, someone, token as string, member)
    const admission = { visitor, ...(caller ? { caller } : {}) }
    const workspaceId = member?.workspaceId ?? null
    return {
      owner: { share: holder.share },
      admit: async () => ({ admission, holder, workspaceId }),
    }
  },
})

/** Returns the owner of streams of a session. */
const principalOf = (
  services: Services,
  { id, personId }: Session,
  token: string,
  member: Visitor['member'] | undefined,
): Principal => ({
  name: `session ${id}`,
  share: `person ${personId}`,
  // The person must still be a member, because the stream's data belongs to the workspace.
  stays: async () => {
    const still = await services.people.sessions.find(token)
    return still !== null && (!member || (await isStillMember(services, still, member.workspaceId)))
  },
})

/**
 * Returns the session of a cookie, and counts a request without one against the limit of its
 * address. An address that has used up this limit costs no query, unless it has a session.
 * @throws ApiError `SIGN_IN_REQUIRED`, `RATE_LIMITED`
 */
async function sessionOf(
  services: Services,
  limits: AddressLimits,
  request: FastifyRequest,
  token: string | null,
): Promise<Session> {
  const name = token === null ? '' : hashOfToken(token).toString('hex')
  assertNotExhausted(limits, services, request, name)
  const someone = token === null ? null : await services.people.sessions.find(token)
  if (someone === null) {
    countAddress(limits.strangers, services, request)
    throw new ApiError('SIGN_IN_REQUIRED', 'there is no session, or it has expired')
  }
  limits.recent.note(request.ip, name)
  return someone
}

/**
 * Counts a request against the session's rate limit.
 * @throws ApiError `RATE_LIMITED`
 */
function countSession(
  services: Services,
  request: FastifyRequest,
  session: Session,
  weight = 1,
): void {
  const state = services.people.requests.count(session.id, services.environment.now(), weight)
  request.rate = state
  if (state.exceeded) {
    throw new ApiError(
      'RATE_LIMITED',
      `too many requests in this minute; wait until ${new Date(state.reset).toISOString()}`,
    )
  }
}

/**
 * Returns the person's membership of a workspace.
 * @throws ApiError `NOT_FOUND` if the workspace does not exist or the person is not a member; the
 *   two cases get the same response
 */
async function memberOf(
  services: Services,
  session: Session,
  workspace: string,
): Promise<Visitor['member']> {
  const row = await services.database.one<{ id: string; name: string; role: Role }>(
    `select w.id, w.name, m.role from workspaces w join memberships m on m.workspace_id = w.id
      where w.name = $1 and m.person_id = $2`,
    [workspace, session.personId],
  )
  if (!row) throw new ApiError('NOT_FOUND', 'this workspace does not exist')
  return { workspaceId: row.id, workspace: row.name, role: row.role }
}

async function isStillMember(
  services: Services,
  session: Session,
  workspaceId: string,
): Promise<boolean> {
  return (
    (await services.database.one(
      'select 1 from memberships where workspace_id = $1 and person_id = $2',
      [workspaceId, session.personId],
    )) !== undefined
  )
}

/**
 * Returns a session as caller in a sub-account: as a read-only key that does not exist.
 * @throws ApiError `NOT_FOUND`
 */
async function callerOf(
  services: Services,
  member: Visitor['member'],
  subAccount: string,
): Promise<Caller> {
  const row = await services.database.one<{ id: string; name: string; path_index: number }>(
    'select id, name, path_index from sub_accounts where workspace_id = $1 and name = $2',
    [member.workspaceId, subAccount],
  )
  if (!row) throw new ApiError('NOT_FOUND', 'this sub-account does not exist')
  return {
    // A session has no key. Code that reads the key is not read-only, so it must not be reached.
    get apiKey(): string {
      throw new Error('a session has no API key')
    },
    role: 'read-only',
    workspaceId: member.workspaceId,
    workspace: member.workspace,
    subAccountId: row.id,
    subAccount: row.name,
    subAccountIndex: row.path_index,
  }
}
