import { panelEndpoint } from '../people/endpoint.ts'
import { presentSession } from '../people/present.ts'
import { sessionShape } from '../people/schemas.ts'

/** Who is signed in, and where he may look. */
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
