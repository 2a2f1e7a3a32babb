import { z } from 'zod'
import type { Queryable, Database } from '../../core/database/pool.ts'
import { ApiError } from '../../core/errors.ts'
import { cookieHeaders } from '../people/cookie.ts'
import { panelEndpoint } from '../people/endpoint.ts'
import { withdrawInvitationsOf } from '../people/invitations.ts'
import { includesRole, type Role } from '../people/roles.ts'
import { role, time } from '../people/schemas.ts'
import { commandShape, revocationCommands } from './api-user-shapes.ts'
import { assertMayManage, changeWorkspace, WORKSPACE, workspaceParams } from './workspace.ts'
import type { SignerNodes } from '../../core/signing/nodes.ts'
import type { Callers } from '../../core/http/authentication/callers.ts'
import type { People } from '../people/people.ts'

interface Services {
  database: Database
  signers: SignerNodes
  callers: Callers
  people: People
}

export const listPeople = panelEndpoint({
  method: 'GET',
  path: `${WORKSPACE}/people`,
  summary: 'List the people of the workspace',
  needs: 'viewer',
  params: z.strictObject(workspaceParams),
  response: z.array(
    z.object({
      id: z.uuid(),
      email: z.string(),
      name: z.string(),
      role,
      last_seen_at: time.nullable(),
      passkeys: z.int(),
      has_totp: z.boolean(),
    }),
  ),
  async handler({ visitor: { member } }, { database }: Pick<Services, 'database'>) {
    return {
      body: await database.query(
        `select p.id, p.email, p.name, m.role, p.totp_secret is not null has_totp,
           (select max(s.last_seen_at) from sessions s where s.person_id = p.id) last_seen_at,
           (select count(*)::int from passkeys k where k.person_id = p.id) passkeys
         from memberships m join people p on p.id = m.person_id where m.workspace_id = $1
           order by p.name, p.id`,
        [member.workspaceId],
      ),
    }
  },
})

const personParams = z.strictObject({ ...workspaceParams, id: z.string() })

/**
 * Returns a person's membership.
 * @throws ApiError `NOT_FOUND`
 */
async function membership(
  tx: Queryable,
  workspaceId: string,
  id: string,
): Promise<{ email: string; role: Role }> {
  // All owners of the workspace are locked first: if two owners demote each other, the second
  // request sees the result of the first.
  await tx.query(
    `select 1 from memberships where workspace_id = $1 and role = 'owner' order by person_id
      for update`,
    [workspaceId],
  )
  const row = await tx.one<{ email: string; role: Role }>(
    `select p.email, m.role from memberships m join people p on p.id = m.person_id
     where m.workspace_id = $1 and m.person_id::text = $2 for update of m`,
    [workspaceId, id],
  )
  if (!row) throw new ApiError('NOT_FOUND', 'this workspace has no such person')
  return row
}

/**
 * Checks that the workspace still has an owner.
 * @throws ApiError `LAST_OWNER`
 */
async function assertOwnerLeft(tx: Queryable, workspaceId: string): Promise<void> {
  const owner = await tx.one(
    `select 1 from memberships where workspace_id = $1 and role = 'owner' limit 1`,
    [workspaceId],
  )
  if (!owner)
    throw new ApiError('LAST_OWNER', 'this is the last owner: make another person an owner first')
}

/**
 * Changes a person's role. Their other sessions end, and the current one gets a new token, so that
 * no old token has a new role.
 */
export const changePerson = panelEndpoint({
  method: 'PATCH',
  path: `${WORKSPACE}/people/{id}`,
  summary: 'Change a person’s role',
  needs: 'admin',
  params: personParams,
  body: z.strictObject({ role }),
  response: z.object({ id: z.uuid(), role }),
  async handler(
    { visitor, params: { id }, body },
    services: Pick<Services, 'database' | 'people'>,
  ) {
    const { member, session, from } = visitor
    const { sessions } = services.people
    const { cookie } = await changeWorkspace(
      services,
      visitor,
      async (tx) => {
        const before = await membership(tx, member.workspaceId, id)
        assertMayManage(visitor, before.role)
        assertMayManage(visitor, body.role)
        await tx.query(
          'update memberships set role = $3 where workspace_id = $1 and person_id = $2',
          [member.workspaceId, id, body.role],
        )
        await assertOwnerLeft(tx, member.workspaceId)
        const isOwn = id === session.personId
        await sessions.end(tx, id, isOwn ? { except: session.id } : {})
        const isDemoted = !includesRole(body.role, before.role)
        const withdrawn = isDemoted
          ? await withdrawInvitationsOf(tx, member.workspaceId, { id, email: before.email })
          : []
        return { before, withdrawn, cookie: isOwn ? await sessions.rotate(tx, session.id) : null }
      },
      ({ before, withdrawn }) => ({
        action: 'person.role_changed',
        object: id,
        details: {
          email: before.email,
          from: before.role,
          to: body.role,
          ...(withdrawn.length === 0 ? {} : { withdrawn_invitations: withdrawn }),
        },
      }),
    )
    return {
      headers: cookie === null ? {} : cookieHeaders(cookie, from),
      body: { id, role: body.role },
    }
  },
})

/**
 * Removes a person from the workspace, together with their own API keys, the invitations that they
 * made and those to their email address. At the nodes, their operators revoke the keys.
 */
export const removePerson = panelEndpoint({
  method: 'DELETE',
  path: `${WORKSPACE}/people/{id}`,
  summary: 'Remove a person from the workspace',
  needs: 'viewer',
  params: personParams,
  response: z.object({
    removed: z.literal(true),
    api_keys: z
      .array(z.string())
      .meta({ description: 'API keys of the person, which the platform no longer accepts' }),
    commands: z.array(commandShape).meta({
      description:
        'Commands for the operators, so that the signer nodes also stop signing for these keys',
    }),
  }),
  async handler({ visitor, params: { id } }, services: Services) {
    const { member, session } = visitor
    const { keys } = await changeWorkspace(
      services,
      visitor,
      async (tx) => {
        const before = await membership(tx, member.workspaceId, id)
        // Every person may leave a workspace, so leaving it requires no role.
        if (id !== session.personId) assertMayManage(visitor, before.role)
        await tx.query('delete from memberships where workspace_id = $1 and person_id = $2', [
          member.workspaceId,
          id,
        ])
        await assertOwnerLeft(tx, member.workspaceId)
        await tx.query('delete from saved_views where workspace_id = $1 and person_id = $2', [
          member.workspaceId,
          id,
        ])
        await tx.query(
          `update api_user_requests set withdrawn_at = $3
         where workspace_id = $1 and person_id = $2 and api_key is null and withdrawn_at is null`,
          [member.workspaceId, id, tx.now()],
        )
        const rows = await tx.query<{ api_key: string }>(
          `update api_users set revoked_at = $3 where person_id = $2 and revoked_at is null
           and sub_account_id in (select id from sub_accounts where workspace_id = $1)
             returning api_key`,
          [member.workspaceId, id, tx.now()],
        )
        const withdrawn = await withdrawInvitationsOf(tx, member.workspaceId, {
          id,
          email: before.email,
        })
        return { before, withdrawn, keys: rows.map(({ api_key }) => api_key) }
      },
      ({ before, withdrawn, keys: revoked }) => ({
        action: 'person.removed',
        object: id,
        details: {
          email: before.email,
          role: before.role,
          revoked_api_keys: revoked,
          ...(withdrawn.length === 0 ? {} : { withdrawn_invitations: withdrawn }),
        },
      }),
    )
    services.callers.forget()
    return {
      body: {
        removed: true,
        api_keys: keys,
        commands: keys.flatMap((key) => revocationCommands(services, key)),
      },
    }
  },
})
