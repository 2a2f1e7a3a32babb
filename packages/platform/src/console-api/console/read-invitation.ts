import { z } from 'zod'
import { panelEndpoint } from '../people/endpoint.ts'
import { openInvitation } from '../people/invitations.ts'
import { role, time, token } from '../people/schemas.ts'
import type { Database } from '../../core/database/pool.ts'

interface Services {
  database: Database
}

/** Returns the purpose of a link, before it is used. */
export const readInvitation = panelEndpoint({
  method: 'POST',
  path: '/console/api/join/invitation',
  summary: 'Read an invitation by the token in its link',
  needs: 'nobody',
  body: z.strictObject({ invitation: token }),
  response: z.object({
    workspace: z.string().nullable().meta({
      description:
        'Null: the first owner enters the name, or the link resets the factors of a person',
    }),
    role,
    email: z.string().nullable(),
    is_first: z.boolean(),
    is_reset: z
      .boolean()
      .meta({ description: 'Removes the factors of a person who lost them, and sets new ones' }),
    expires_at: time,
  }),
  async handler({ body }, { database }: Services) {
    const match = await openInvitation(database, { token: body.invitation })
    return {
      body: {
        workspace: match.workspace,
        role: match.role,
        email: match.email,
        is_first: match.workspace_id === null && match.person_id === null,
        is_reset: match.person_id !== null,
        expires_at: match.expires_at.toISOString(),
      },
    }
  },
})
