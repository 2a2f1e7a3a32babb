import { panelEndpoint } from '../people/endpoint.ts'
import { presentSession } from '../people/present.ts'
import { sessionShape } from '../people/schemas.ts'

/** Returns the signed-in person and their workspaces. */
export const readSession = panelEndpoint({
  method: 'GET',
  path: '/console/api/session',
  summary: 'Read the current session',
  needs: 'nobody',
  response: sessionShape,
  async handler({ services, visitor: { someone, from } }) {
    return { body: await presentSession(services, someone?.personId ?? null, from) }
  },
})
