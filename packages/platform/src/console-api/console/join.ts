import { z } from 'zod'
import { ApiError } from '../../core/errors.ts'
import { cookieHeaders } from '../people/cookie.ts'
import { panelEndpoint } from '../people/endpoint.ts'
import { openInvitation } from '../people/invitations.ts'
import { acceptInvitation, readWorkspace } from '../people/join.ts'
import { presentSession } from '../people/present.ts'
import { sessionShape, token, workspaceName } from '../people/schemas.ts'
import type { Settings } from '../../core/settings/settings.ts'
import type { Environment } from '../../core/environment.ts'
import type { Database } from '../../core/database/pool.ts'
import type { DatabaseHold } from '../../core/engine/database-hold.ts'
import type { People } from '../people/people.ts'

interface Services {
  settings: Pick<Settings, 'network' | 'prepaidTiers'>
  environment: Environment
  database: Database
  hold: DatabaseHold
  people: People
}

/**
 * Accepts an invitation to another workspace for a signed-in person. Their session gets a new token
 * with the role.
 */
export const join = panelEndpoint({
  method: 'POST',
  path: '/console/api/join',
  summary: 'Accept an invitation as the person who is signed in',
  needs: 'anybody',
  body: z.strictObject({ invitation: token, workspace: workspaceName.optional() }),
  response: sessionShape,
  async handler({ body, visitor: { session, from } }, services: Services) {
    const { database, people } = services
    const cookie = await database.transaction(async (tx) => {
      const invitation = await openInvitation(tx, { token: body.invitation }, true)
      if (invitation.person_id !== null)
        throw new ApiError(
          'INVITATION_CLOSED',
          'this link resets a person’s factors: sign out first',
        )
      if (invitation.email !== null && invitation.email !== session.email) {
        throw new ApiError(
          'ROLE_REQUIRED',
          'the invitation is for another e-mail address than yours',
        )
      }
      const workspace = readWorkspace(services, invitation, body.workspace)
      await acceptInvitation(
        services,
        tx,
        { id: invitation.id, workspace },
        { id: session.personId, email: session.email },
        from,
      )
      return people.sessions.rotate(tx, session.id)
    })
    people.sessions.forget()
    return {
      headers: cookieHeaders(cookie, from),
      body: await presentSession(services, session.personId, from),
    }
  },
})
