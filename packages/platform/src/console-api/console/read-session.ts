import { panelEndpoint } from '../people/endpoint.ts'
import { presentSession } from '../people/present.ts'
import { sessionShape } from '../people/schemas.ts'
import type { Settings } from '../../core/settings/settings.ts'
import type { Database } from '../../core/database/pool.ts'

interface Services {
  settings: Pick<Settings, 'network'>
  database: Database
}

/** Returns the signed-in person and their workspaces. */
export const readSession = panelEndpoint({
  method: 'GET',
  path: '/console/api/session',
  summary: 'Read the current session',
  needs: 'nobody',
  response: sessionShape,
  async handler({ visitor: { someone, from } }, services: Services) {
    return { body: await presentSession(services, someone?.personId ?? null, from) }
  },
})
