import { z } from 'zod'
import type { Database } from '../../../core/database/pool.ts'
import { endpoint } from '../../../core/http/endpoint.ts'
import { integer, LIMIT_MAX, oneOf } from '../../../core/http/schemas.ts'
import { after, pageFields, pageOf, readCursor } from '../../../core/time-cursor.ts'
import { CHANGE_STATES, listChanges } from './change.ts'
import { changeShape, presentChange } from './shapes.ts'

interface Services {
  database: Database
}

/** Lists the proposed policy changes of the workspace, newest first. */
export const listPolicyChanges = endpoint({
  id: 'listPolicyChanges',
  tag: 'Policy',
  description:
    'Returns the policy changes that were proposed over the API or by `npx custody policy propose`, newest first. To continue, pass `next` of the response as `after`.',
  method: 'GET',
  path: '/dac/v1/policy/changes',
  summary: 'List policy changes',
  access: 'read',
  query: z.strictObject({
    state: oneOf(CHANGE_STATES, 'Only changes in this state').optional(),
    after: after('changes'),
    limit: integer(
      1,
      LIMIT_MAX,
      'Maximum number of changes in the response; by default 50',
    ).default(50),
  }),
  response: z.object({ data: z.array(changeShape).max(LIMIT_MAX), ...pageFields }),
  async handler({ caller, query: { state, after: cursor, limit } }, { database }: Services) {
    const states = state === undefined ? CHANGE_STATES : [state]
    const range = { ...readCursor(cursor), count: limit + 1 }
    const read = await listChanges(database, caller.workspaceId, states, range)
    const { rows, page } = pageOf(read, limit, (row) => ({ at: row.created_at, id: row.id }))
    return { body: { data: rows.map(presentChange), ...page } }
  },
})
