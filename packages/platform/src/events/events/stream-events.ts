import { z } from 'zod'
import { endpoint, type Caller, type ServerEvent } from '../../core/http/endpoint.ts'
import type { EventType } from '../../core/database/event-types.ts'
import type { Database } from '../../core/database/pool.ts'
import type { Feed } from '../../core/ledger/feed.ts'
import { cursor, endOfLog, positionOf, readLog, textOf, typeFilter } from './log.ts'
import { eventShape } from './registry.ts'

interface Services {
  database: Database
  feed: Feed
}

const BATCH = 100

/**
 * Streams the log: each event once, in order. After a reconnection the events that the client has
 * missed come first.
 */
export const streamEvents = endpoint({
  id: 'streamEvents',
  tag: 'Events',
  description:
    'Sends events as server-sent events when they are committed, starting with those after the event that you last received. To resume after a disconnect, send `Last-Event-ID`.',
  errors: ['CURSOR_EXPIRED'],
  method: 'GET',
  path: '/dac/v1/events/stream',
  access: 'read',
  streams: true,
  summary: 'Stream events (server-sent events)',
  query: z.strictObject({ after: cursor.optional(), type: typeFilter.optional() }),
  response: eventShape(),
  async handler({ caller, query, lastEventId }, services: Services) {
    // The last event that the client has received takes precedence over the position at which it
    // first began.
    const [seen, field] =
      lastEventId === undefined || lastEventId === ''
        ? [query.after, 'after']
        : [lastEventId, 'Last-Event-ID']
    const { database } = services
    const from =
      seen === undefined
        ? await endOfLog(database)
        : await positionOf(database, caller, seen, field)
    return { stream: (signal) => follow(services, caller, from, query.type ?? null, signal) }
  },
})

async function* follow(
  services: Services,
  caller: Caller,
  from: string,
  types: EventType[] | null,
  signal: AbortSignal,
): AsyncGenerator<ServerEvent> {
  const { database, feed } = services
  const listener = feed.listen({ workspace: caller.workspaceId })
  let at = from
  try {
    while (!signal.aborted) {
      const upTo = await endOfLog(database)
      const rows = await readLog(database, caller, { after: at, upTo, types, limit: BATCH })
      for (const row of rows) yield { id: row.uid, event: row.type, data: textOf(row) }
      const isAll = rows.length < BATCH
      at = isAll ? upTo : (rows.at(-1)?.position ?? upTo)
      if (isAll && !(await listener.next(signal))) return
    }
  } finally {
    listener.close()
  }
}
