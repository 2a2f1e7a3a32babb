import { z } from 'zod'
import { panelEndpoint } from '../people/endpoint.ts'
import { title } from '../people/schemas.ts'
import { changeWorkspace, WORKSPACE, workspaceParams } from './workspace.ts'
import type { Environment } from '../../core/environment.ts'
import type { Database } from '../../core/database/pool.ts'
import type { People } from '../people/people.ts'

interface Services {
  environment: Environment
  database: Database
  people: People
}

const VIEWS_MAX = 100

const view = { name: title(), page: z.string().min(1).max(100), query: z.string().max(2000) }
const shown = z.array(
  z.object({ id: z.uuid(), name: z.string(), page: z.string(), query: z.string() }),
)

const LIST = `select id, name, page, query from saved_views where person_id = $1 and workspace_id = $2
    order by at`

/** Returns the person's saved list filters. */
export const listViews = panelEndpoint({
  method: 'GET',
  path: `${WORKSPACE}/views`,
  summary: 'List your saved views',
  needs: 'viewer',
  params: z.strictObject(workspaceParams),
  response: shown,
  async handler({ visitor: { session, member } }, { database }: Pick<Services, 'database'>) {
    return { body: await database.query(LIST, [session.personId, member.workspaceId]) }
  },
})

/** Replaces all of the person's saved views. */
export const saveViews = panelEndpoint({
  method: 'PUT',
  path: `${WORKSPACE}/views`,
  summary: 'Replace your saved views',
  needs: 'viewer',
  params: z.strictObject(workspaceParams),
  body: z.strictObject({
    views: z.array(z.strictObject({ id: z.uuid().optional(), ...view })).max(VIEWS_MAX),
  }),
  response: shown,
  async handler({ visitor, body: { views } }, services: Services) {
    const own = [visitor.session.personId, visitor.member.workspaceId]
    const saved = await changeWorkspace(
      services,
      visitor,
      async (tx) => {
        await tx.query(
          'select 1 from memberships where person_id = $1 and workspace_id = $2 for update',
          own,
        )
        await tx.query('delete from saved_views where person_id = $1 and workspace_id = $2', own)
        for (const [at, { name, page, query }] of views.entries()) {
          await tx.query(
            `insert into saved_views (id, person_id, workspace_id, name, page, query, at)
              values ($1, $2, $3, $4, $5, $6, $7)`,
            [services.environment.uuid(), ...own, name, page, query, at],
          )
        }
        return tx.query(LIST, own)
      },
      () => ({ action: 'views.saved', details: { views: views.length } }),
    )
    return { body: saved }
  },
})
