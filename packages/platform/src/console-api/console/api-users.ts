import { API_ROLES } from '@custody/request-auth/roles'
import {
  AuthError,
  canonicalPublicKey,
  fingerprintOfKey,
  parsePublicKey,
} from '@custody/request-auth'
import { z } from 'zod'
import type { Queryable, Database } from '../../core/database/pool.ts'
import { ApiError } from '../../core/errors.ts'
import type { ApiUserRequest } from '../people/api-user-requests.ts'
import { panelEndpoint } from '../people/endpoint.ts'
import { includesRole } from '../people/roles.ts'
import { workspaceName } from '../people/schemas.ts'
import {
  apiUserShape,
  commandShape,
  enrolmentCommands,
  ipAllowList,
  label,
  rateLimit,
  revocationCommands,
} from './api-user-shapes.ts'
import { changeWorkspace, WORKSPACE, workspaceParams } from './workspace.ts'
import type { Environment } from '../../core/environment.ts'
import type { SignerNodes } from '../../core/signing/nodes.ts'
import type { Callers } from '../../core/http/authentication/callers.ts'
import type { People } from '../people/people.ts'

interface Services {
  environment: Environment
  database: Database
  signers: SignerNodes
  callers: Callers
  people: People
}

/**
 * Maximum number of open requests of a workspace, and of one person in it, so that one person
 * cannot prevent others from making requests.
 */
const REQUESTS_MAX = { workspace: 100, person: 20 } as const

/** Lists the API users and the open requests for API users. */
export const listApiUsers = panelEndpoint({
  method: 'GET',
  path: `${WORKSPACE}/api-users`,
  summary: 'List API users and requests for API users',
  needs: 'viewer',
  params: z.strictObject(workspaceParams),
  response: z.array(apiUserShape),
  async handler({ visitor: { member } }, services: Pick<Services, 'database' | 'signers'>) {
    const rows = await services.database.query<
      ApiUserRequest & { api_key: string | null; key_fingerprint: string | null }
    >(
      `select u.api_key id, u.api_key, u.label, s.name sub_account, u.role, u.rate_limit,
         u.ip_allow_list, u.created_at, u.last_used_at,
         u.revoked_at, null key_fingerprint, u.public_key_pem, 'enrolled' enrolment,
         case when p.id is not null then jsonb_build_object('id', p.id, 'email', p.email, 'name',
           p.name) end person
       from api_users u join sub_accounts s on s.id = u.sub_account_id
         left join people p on p.id = u.person_id
       where s.workspace_id = $1
       union all
       select r.id, null, r.label, r.sub_account, r.role, r.rate_limit, r.ip_allow_list,
         r.created_at, null, null, r.key_fingerprint,
         r.public_key_pem, 'pending',
         case when p.id is not null then jsonb_build_object('id', p.id, 'email', p.email, 'name',
           p.name) end
       from api_user_requests r left join people p on p.id = r.person_id
       where r.workspace_id = $1 and r.api_key is null and r.withdrawn_at is null
       order by created_at desc, id`,
      [member.workspaceId],
    )
    return {
      body: rows.map((row) => {
        const key = parsePublicKey(row.public_key_pem)
        // Earlier versions stored the key as it was uploaded, so it is converted here.
        const shown = {
          ...row,
          public_key_pem: canonicalPublicKey(row.public_key_pem),
          key_fingerprint: fingerprintOfKey(key),
        }
        return {
          ...shown,
          commands:
            row.api_key === null ? enrolmentCommands(services, member.workspace, shown) : [],
        }
      }),
    }
  },
})

/**
 * Requests an API user. The platform cannot create one, because nodes accept API users from their
 * own operators only.
 */
export const requestApiUser = panelEndpoint({
  method: 'POST',
  path: `${WORKSPACE}/api-users`,
  summary: 'Request an API user',
  needs: 'operator',
  params: z.strictObject(workspaceParams),
  body: z.strictObject({
    sub_account: workspaceName,
    role: z.enum(API_ROLES),
    public_key_pem: z.string().max(10_000),
    label: label.optional(),
    rate_limit: rateLimit.optional(),
    ip_allow_list: ipAllowList.optional(),
    own: z.boolean().meta({
      description:
        'True: the API user belongs to the person who requests it. Only admins can request API users for others, such as services',
    }),
  }),
  response: z.object({
    id: z.uuid(),
    enrolment: z.literal('pending'),
    key_fingerprint: z.string(),
    commands: z.array(commandShape).meta({
      description:
        'Command for the operators, who compare its fingerprint with the one that you report to them',
    }),
  }),
  async handler({ visitor, body }, services: Services) {
    const { member, session } = visitor
    if (!body.own && !includesRole(member.role, 'admin')) {
      throw new ApiError(
        'ROLE_REQUIRED',
        `own: the role admin is required for a key that is not your own; your role is ${member.role}`,
      )
    }
    const pem = readPublicKey(body.public_key_pem)
    const request: ApiUserRequest = {
      id: services.environment.uuid(),
      sub_account: body.sub_account,
      role: body.role,
      public_key_pem: pem,
      key_fingerprint: fingerprintOfKey(parsePublicKey(pem)),
      label: body.label?.trim() || null,
      rate_limit: body.rate_limit || null,
      ip_allow_list: body.ip_allow_list ?? [],
      person_id: body.own ? session.personId : null,
      created_at: services.database.now(),
    }
    await changeWorkspace(
      services,
      visitor,
      async (tx) => {
        await assertRequestLeft(tx, member.workspaceId, session.personId)
        await insertRequest(tx, member.workspaceId, session.personId, request)
      },
      () => ({
        action: 'api_user.requested',
        object: request.id,
        details: {
          sub_account: request.sub_account,
          role: request.role,
          key_fingerprint: request.key_fingerprint,
          own: body.own,
          ip_allow_list: request.ip_allow_list,
          rate_limit: request.rate_limit,
        },
      }),
    )
    return {
      body: {
        id: request.id,
        enrolment: 'pending',
        key_fingerprint: request.key_fingerprint,
        commands: enrolmentCommands(services, member.workspace, request),
      },
    }
  },
})

/**
 * Checks that neither the person nor the workspace has the maximum number of open requests.
 * @throws ApiError `INVALID_REQUEST`
 */
async function assertRequestLeft(
  tx: Queryable,
  workspaceId: string,
  personId: string,
): Promise<void> {
  const open = await tx.one<{ all: number; own: number }>(
    `select count(*)::int "all", count(*) filter (where requested_by = $2)::int own
      from api_user_requests
   where workspace_id = $1 and api_key is null and withdrawn_at is null`,
    [workspaceId, personId],
  )
  if (open && (open.all >= REQUESTS_MAX.workspace || open.own >= REQUESTS_MAX.person)) {
    const waiting =
      open.own >= REQUESTS_MAX.person
        ? `${REQUESTS_MAX.person} of your requests`
        : `${REQUESTS_MAX.workspace} requests`
    throw new ApiError(
      'INVALID_REQUEST',
      `${waiting} are waiting for an operator, which is the maximum: withdraw one`,
    )
  }
}

/** Records a person's request for an API user. */
async function insertRequest(
  tx: Queryable,
  workspaceId: string,
  personId: string,
  request: ApiUserRequest,
): Promise<void> {
  await tx.query(
    `insert into api_user_requests (id, workspace_id, sub_account, role, public_key_pem,
      key_fingerprint, label, rate_limit,
     ip_allow_list, person_id, requested_by, created_at) values ($1, $2, $3, $4, $5, $6, $7, $8, $9,
       $10, $11, $12)`,
    [
      request.id,
      workspaceId,
      request.sub_account,
      request.role,
      request.public_key_pem,
      request.key_fingerprint,
      request.label,
      request.rate_limit,
      request.ip_allow_list,
      request.person_id,
      personId,
      request.created_at,
    ],
  )
}

/**
 * Returns the key in canonical form.
 * @throws ApiError that names the field
 */
function readPublicKey(pem: string): string {
  try {
    return canonicalPublicKey(pem)
  } catch (error) {
    if (error instanceof AuthError)
      throw new ApiError('INVALID_REQUEST', `public_key_pem: ${error.message}`, {
        field: 'public_key_pem',
      })
    throw error
  }
}

const keyParams = z.strictObject({ ...workspaceParams, api_key: z.string() })
const missing = () => new ApiError('NOT_FOUND', 'this workspace has no such API user')
const OF_WORKSPACE = `api_key::text = $1 and sub_account_id in (select id from sub_accounts where workspace_id = $2)`

/** Changes the data of an API user that the platform stores; the nodes' data cannot be changed. */
export const changeApiUser = panelEndpoint({
  method: 'PATCH',
  path: `${WORKSPACE}/api-users/{api_key}`,
  summary: 'Change an API user’s label, rate limit or networks',
  needs: 'admin',
  params: keyParams,
  body: z.strictObject({
    label: label.optional(),
    rate_limit: rateLimit.optional(),
    ip_allow_list: ipAllowList.optional(),
  }),
  response: z.object({
    api_key: z.uuid(),
    label: z.string().nullable(),
    rate_limit: z.int().nullable(),
    ip_allow_list: z.array(z.string()),
  }),
  async handler(
    { visitor, params, body },
    services: Pick<Services, 'database' | 'callers' | 'people'>,
  ) {
    const { after } = await changeWorkspace(
      services,
      visitor,
      async (tx) => {
        const select = `select label, rate_limit, ip_allow_list from api_users where ${OF_WORKSPACE}
          and revoked_at is null for update`
        type EditableFields = {
          label: string | null
          rate_limit: number | null
          ip_allow_list: string[]
        }
        const before = await tx.one<EditableFields>(select, [
          params.api_key,
          visitor.member.workspaceId,
        ])
        if (!before) throw missing()
        const changed: EditableFields = {
          label: body.label === undefined ? before.label : body.label.trim() || null,
          rate_limit: body.rate_limit === undefined ? before.rate_limit : body.rate_limit || null,
          ip_allow_list: body.ip_allow_list ?? before.ip_allow_list,
        }
        await tx.query(
          `update api_users set label = $2, rate_limit = $3, ip_allow_list = $4
            where api_key::text = $1`,
          [params.api_key, changed.label, changed.rate_limit, changed.ip_allow_list],
        )
        return { before, after: changed }
      },
      (done) => ({
        action: 'api_user.changed',
        object: params.api_key,
        details: { from: done.before, to: done.after },
      }),
    )
    services.callers.forget()
    return { body: { api_key: params.api_key, ...after } }
  },
})

/**
 * Revokes an API key at the platform immediately, or withdraws a request. At the nodes, their
 * operators revoke the key.
 */
export const revokeApiUser = panelEndpoint({
  method: 'POST',
  path: `${WORKSPACE}/api-users/{api_key}/revoke`,
  summary: 'Revoke an API user, or withdraw the request for one',
  needs: 'operator',
  params: keyParams,
  body: z.strictObject({}),
  response: z.object({
    api_key: z.uuid(),
    revoked: z.literal(true),
    commands: z.array(commandShape),
  }),
  async handler({ visitor, params: { api_key: id } }, services: Services) {
    const { member, session } = visitor
    const isAdmin = includesRole(member.role, 'admin')
    const { isRequest } = await changeWorkspace(
      services,
      visitor,
      async (tx) => {
        // A person with the role `operator` may only revoke their own keys.
        const own = `(${isAdmin} or person_id = $4)`
        const values = [id, member.workspaceId, tx.now(), session.personId]
        const user = await tx.one(
          `update api_users set revoked_at = coalesce(revoked_at, $3) where ${OF_WORKSPACE}
            and ${own} returning api_key`,
          values,
        )
        if (user) return { isRequest: false }
        const request = await tx.one(
          `update api_user_requests set withdrawn_at = $3 where id::text = $1 and workspace_id = $2
            and api_key is null
           and withdrawn_at is null and ${own} returning id`,
          values,
        )
        if (!request) throw missing()
        return { isRequest: true }
      },
      (done) => ({
        action: done.isRequest ? 'api_user.withdrawn' : 'api_user.revoked',
        object: id,
      }),
    )
    services.callers.forget()
    return {
      body: {
        api_key: id,
        revoked: true,
        commands: isRequest ? [] : revocationCommands(services, id),
      },
    }
  },
})
