import { z } from 'zod'
import { writeAuditEverywhere } from '../people/audit-log.ts'
import { cookieHeaders } from '../people/cookie.ts'
import { panelEndpoint } from '../people/endpoint.ts'
import { presentSession } from '../people/present.ts'
import { actorOf } from '../people/sessions.ts'
import { sessionShape } from '../people/schemas.ts'
import type { Settings } from '../../core/settings/settings.ts'
import type { Database } from '../../core/database/pool.ts'
import type { People } from '../people/people.ts'

interface Services {
  settings: Pick<Settings, 'network'>
  database: Database
  people: People
}

/** Ends the current session. */
export const signOut = panelEndpoint({
  method: 'POST',
  path: '/console/api/sign-out',
  summary: 'Sign out',
  needs: 'anybody',
  body: z.strictObject({}),
  response: sessionShape,
  async handler({ visitor: { session, from } }, services: Services) {
    const { database, people } = services
    await database.transaction(async (tx) => {
      await people.sessions.end(tx, session.personId, { id: session.id })
      await writeAuditEverywhere(tx, session.personId, actorOf(session, from), {
        action: 'session.ended',
        object: session.id,
      })
    })
    people.sessions.forget()
    return { headers: cookieHeaders(null, from), body: await presentSession(services, null, from) }
  },
})
