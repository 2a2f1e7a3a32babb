import { z } from 'zod'
import { ApiError } from '../../core/errors.ts'
import { panelEndpoint } from '../people/endpoint.ts'
import { invite, linkOf } from '../people/invitations.ts'
import { mayManage, type Role } from '../people/roles.ts'
import { email, role, time } from '../people/schemas.ts'
import { assertMayManage, changeWorkspace, WORKSPACE, workspaceParams } from './workspace.ts'
import type { Environment } from '../../core/environment.ts'
import type { Database } from '../../core/database/pool.ts'
import type { People } from '../people/people.ts'

interface Services {
  environment: Environment
  database: Database
  people: People
}

export const listInvitations = panelEndpoint({
  method: 'GET',
  path: `${WORKSPACE}/invitations`,
  summary: 'List open invitations',
  needs: 'admin',
  params: z.strictObject(workspaceParams),
  response: z.array(
    z.object({
      id: z.uuid(),
      email: z.string().nullable(),
      role,
      created_at: time,
      expires_at: time,
      invited_by: z
        .string()
        .nullable()
        .meta({ description: 'E-mail address of the inviting person; null: the operator' }),
    }),
  ),
  async handler({ visitor: { member } }, { database }: Pick<Services, 'database'>) {
    return {
      body: await database.query(
        `select i.id, i.email, i.role, i.created_at, i.expires_at, p.email invited_by
         from invitations i left join people p on p.id = i.invited_by
         where i.workspace_id = $1 and i.accepted_at is null and i.revoked_at is null
           and i.expires_at > $2 order by i.created_at desc`,
        [member.workspaceId, database.now()],
      ),
    }
  },
})

/** Creates a link by which one person joins. It is shown only once and is not sent to anyone. */
export const createInvitation = panelEndpoint({
  method: 'POST',
  path: `${WORKSPACE}/invitations`,
  summary: 'Invite a person',
  needs: 'admin',
  params: z.strictObject(workspaceParams),
  body: z.strictObject({
    email: email.optional().meta({ description: 'Absent: anyone with the link can accept it' }),
    role,
  }),
  response: z.object({ id: z.uuid(), link: z.string(), expires_at: time }),
  async handler({ visitor, body }, services: Services) {
    assertMayManage(visitor, body.role)
    const { workspaceId } = visitor.member
    const { personId } = visitor.session
    const { id, token, expiresAt } = await changeWorkspace(
      services,
      visitor,
      async (tx) => {
        // If the inviting person is removed or demoted concurrently, either this request waits for
        // that change and is rejected, or that change withdraws the invitation.
        const now = await tx.one<{ role: Role }>(
          'select role from memberships where workspace_id = $1 and person_id = $2 for share',
          [workspaceId, personId],
        )
        if (!now || !mayManage(now.role, body.role))
          throw new ApiError(
            'ROLE_REQUIRED',
            'your role was changed while the request was processed',
          )
        return invite(services, tx, {
          workspaceId,
          role: body.role,
          email: body.email ?? null,
          person: null,
          by: personId,
        })
      },
      (made) => ({
        action: 'invitation.created',
        object: made.id,
        details: { role: body.role, email: body.email ?? null },
      }),
    )
    return {
      body: { id, link: linkOf(visitor.from.origin, token), expires_at: expiresAt.toISOString() },
    }
  },
})

export const withdrawInvitation = panelEndpoint({
  method: 'DELETE',
  path: `${WORKSPACE}/invitations/{id}`,
  summary: 'Withdraw an invitation',
  needs: 'admin',
  params: z.strictObject({ ...workspaceParams, id: z.string() }),
  response: z.object({ withdrawn: z.literal(true) }),
  async handler({ visitor, params: { id } }, services: Pick<Services, 'database' | 'people'>) {
    await changeWorkspace(
      services,
      visitor,
      async (tx) => {
        const row = await tx.one<{ role: Role }>(
          `update invitations set revoked_at = $3 where id::text = $1 and workspace_id = $2
            and accepted_at is null and revoked_at is null
         returning role`,
          [id, visitor.member.workspaceId, tx.now()],
        )
        if (!row) throw new ApiError('NOT_FOUND', 'there is no such open invitation')
        assertMayManage(visitor, row.role)
        return row
      },
      (row) => ({ action: 'invitation.withdrawn', object: id, details: { role: row.role } }),
    )
    return { body: { withdrawn: true } }
  },
})
