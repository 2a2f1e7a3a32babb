import { JsonNumber, parseJson, stringifyJson } from '@custody/request-auth'
import { z } from 'zod'
import type { EventType } from '../../core/database/event-types.ts'
import type { Queryable } from '../../core/database/pool.ts'
import { ApiError } from '../../core/errors.ts'
import type { Caller } from '../../core/http/endpoint.ts'
import { eventPattern, EVENTS_PATTERN, PATTERNS_MAX, typesOf } from './filter.ts'

/** Retention time of events, in days. */
export const KEPT_DAYS = 90

/** An event, with the fields from which its message is formatted. */
export interface EventEntry {
  uid: string
  type: EventType
  created_at: Date
  object: string
  version: string
  /** JSON text. */ payload: string
}

/**
 * Returns an event in the format that callers receive. Numbers keep their original digits.
 * @param data replaces its payload
 */
export const messageOf = (event: EventEntry, data: unknown = parseJson(event.payload)) => ({
  type: event.type,
  timestamp: event.created_at.toISOString(),
  data,
  id: event.uid,
  object: event.object,
  version: new JsonNumber(event.version),
})

/** Names, groups or `*`, separated by commas. */
export const typeFilter = z
  .string()
  .max(2000)
  .transform((input, context): EventType[] | null => {
    const patterns: string[] = []
    const parts = input.split(',')
    if (parts.length > PATTERNS_MAX)
      context.addIssue({ code: 'custom', message: `must contain at most ${PATTERNS_MAX} names` })
    for (const part of parts.slice(0, PATTERNS_MAX)) {
      const read = eventPattern.safeParse(part)
      if (read.success) patterns.push(read.data)
      else
        context.addIssue({
          code: 'custom',
          message: read.error.issues[0]?.message ?? 'is not valid',
        })
    }
    return patterns.includes('*') ? null : typesOf(patterns)
  })
  .meta({
    type: 'string',
    pattern: EVENTS_PATTERN,
    description: 'Event types, `group.*` or `*`, comma-separated, in any letter case',
  })

export const cursor = z
  .string()
  .max(100)
  .meta({ minLength: 1, description: 'The `id` of an event: returns the events that follow it' })

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/

/**
 * Returns the log position of an event that the caller has received. The cursor is the event's ID
 * instead of a number, so that it reveals nothing about the events of others, and an ID that is
 * missing in a restored older database cannot match another event.
 * @param field name of the request field, for errors
 * @throws ApiError `INVALID_REQUEST`, `CURSOR_EXPIRED`
 */
export async function positionOf(
  database: Queryable,
  caller: Caller,
  after: string,
  field: string,
): Promise<string> {
  if (!UUID.test(after))
    throw new ApiError('INVALID_REQUEST', `${field}: must be the id of an event`, { field })
  const row = await database.one<{ position: string }>(
    `select position::text from events where workspace_id = $2 and ${VISIBLE('$3')} and uid = $1
      and position is not null`,
    [after, caller.workspaceId, caller.subAccountId],
  )
  if (row) return row.position
  throw new ApiError(
    'CURSOR_EXPIRED',
    `${field}: the log no longer contains this event, and later events may be missing: events are retained for ${KEPT_DAYS} days. Start again without ${field}, and read the objects that you track`,
    { field },
  )
}

/**
 * SQL condition on the events of a workspace: a key receives those of its own sub-account and those
 * that concern the whole workspace.
 */
const VISIBLE = (subAccount: string): string =>
  `(sub_account_id is null or sub_account_id = ${subAccount})`

/** Returns the current end of the log. Everything up to it is committed. */
export async function endOfLog(database: Queryable): Promise<string> {
  return (await database.one<{ last: string }>('select last::text from event_log'))?.last ?? '0'
}

/**
 * Returns the caller's events between two positions, oldest first.
 * @param types null: all
 */
export async function readLog(
  database: Queryable,
  caller: Caller,
  o: {
    after: string
    upTo: string
    types: EventType[] | null
    limit: number
  },
): Promise<(EventEntry & { position: string })[]> {
  return database.query(
    `select uid, type, created_at, object, version::text, payload::text, position::text from events
     where workspace_id = $1 and ${VISIBLE('$2')} and position > $3 and position <= $4
       and ($5::text[] is null or type = any($5))
     order by events.position limit $6`,
    [caller.workspaceId, caller.subAccountId, o.after, o.upTo, o.types, o.limit],
  )
}

/** Returns a message as JSON text. */
export const textOf = (event: EventEntry): string => stringifyJson(messageOf(event))
