import { z } from 'zod'
import { ApiError } from '../../core/errors.ts'
import { panelEndpoint } from '../people/endpoint.ts'
import { changeOwn } from '../people/factors.ts'
import { time } from '../people/schemas.ts'
import type { Database } from '../../core/database/pool.ts'
import type { People } from '../people/people.ts'

interface Services {
  database: Database
  people: People
}

const UUID = z.uuid()

/** Lists the person's sessions. */
export const listMySessions = panelEndpoint({
  method: 'GET',
  path: '/console/api/me/sessions',
  summary: 'List your sessions',
  needs: 'anybody',
  response: z.array(
    z.object({
      id: z.uuid(),
      created_at: time,
      last_seen_at: time,
      ip: z.string(),
      user_agent: z.string(),
      is_current: z.boolean(),
    }),
  ),
  async handler({ visitor: { session } }, { database }: Pick<Services, 'database'>) {
    const rows = await database.query<{
      id: string
      created_at: Date
      last_seen_at: Date
      ip: string
      user_agent: string
    }>(
      `select id, created_at, last_seen_at, ip, user_agent from sessions
       where person_id = $1 and ended_at is null and expires_at > $2 order by last_seen_at desc
         limit 200`,
      [session.personId, database.now()],
    )
    return { body: rows.map((row) => ({ ...row, is_current: row.id === session.id })) }
  },
})

export const endMySession = panelEndpoint({
  method: 'DELETE',
  path: '/console/api/me/sessions/{id}',
  summary: 'End one of your sessions',
  needs: 'anybody',
  params: z.strictObject({ id: z.string() }),
  response: z.object({ ended: z.literal(1) }),
  async handler({ visitor, params: { id } }, services: Services) {
    if (!UUID.safeParse(id).success) throw new ApiError('NOT_FOUND', 'you have no such session')
    await changeOwn(services, visitor, { action: 'session.ended', object: id }, async (tx) => {
      const ended = await services.people.sessions.end(tx, visitor.session.personId, { id })
      if (ended.length === 0) throw new ApiError('NOT_FOUND', 'you have no such session')
    })
    return { body: { ended: 1 } }
  },
})

export const endOtherSessions = panelEndpoint({
  method: 'POST',
  path: '/console/api/me/sessions/revoke-others',
  summary: 'End all your sessions except this one',
  needs: 'anybody',
  body: z.strictObject({}),
  response: z.object({ ended: z.int() }),
  async handler({ visitor }, services: Services) {
    const { personId, id } = visitor.session
    const ended = await changeOwn(services, visitor, { action: 'session.others_ended' }, (tx) =>
      services.people.sessions.end(tx, personId, { except: id }),
    )
    return { body: { ended: ended.length } }
  },
})
