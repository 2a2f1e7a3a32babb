import { z } from 'zod'
import { WORD_MAX } from '../../core/bounds.ts'
import { endpoint } from '../../core/http/endpoint.ts'
import { integer, LIMIT_MAX } from '../../core/http/schemas.ts'
import { cursor, endOfLog, KEPT_DAYS, messageOf, positionOf, readLog, typeFilter } from './log.ts'
import { eventShape } from './registry.ts'
import type { Database } from '../../core/database/pool.ts'

interface Services {
  database: Database
}

/** Lists the event log, oldest first. Webhook deliveries are created from the same log. */
export const listEvents = endpoint({
  id: 'listEvents',
  tag: 'Events',
  description: `Returns the event log, oldest first. To continue, pass \`next\` of the last response as \`after\`. Events are retained for ${KEPT_DAYS} days.`,
  errors: ['CURSOR_EXPIRED'],
  method: 'GET',
  path: '/dac/v1/events',
  summary: 'List events, oldest first',
  access: 'read',
  query: z.strictObject({
    after: cursor.optional(),
    type: typeFilter.optional(),
    limit: integer(
      1,
      LIMIT_MAX,
      'Maximum number of events in the response; by default 100',
    ).default(100),
  }),
  response: z.object({
    data: z.array(eventShape()).max(LIMIT_MAX),
    next: z.string().max(WORD_MAX).nullable().meta({
      description: 'Cursor for the next request’s `after`; null if there are no events yet',
    }),
    has_more: z.boolean().meta({ description: 'Whether more events are available now' }),
  }),
  async handler({ caller, query: { after, type, limit } }, { database }: Services) {
    const from = after === undefined ? '0' : await positionOf(database, caller, after, 'after')
    const rows = await readLog(database, caller, {
      after: from,
      upTo: await endOfLog(database),
      types: type ?? null,
      limit: limit + 1,
    })
    const shown = rows.slice(0, limit)
    return {
      body: {
        data: shown.map((row) => messageOf(row)),
        next: shown.at(-1)?.uid ?? after ?? null,
        has_more: rows.length > limit,
      },
    }
  },
})
