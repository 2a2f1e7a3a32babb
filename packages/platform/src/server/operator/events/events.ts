import type { Environment } from '../../../core/environment.ts'
import type { Database } from '../../../core/database/pool.ts'
import type { Webhooks } from '../../../events/webhooks/webhooks.ts'
import { endOfLog, textOf, typeFilter, type EventEntry } from '../../../events/events/log.ts'
import { bodySignature } from '../../../events/webhooks/sign.ts'
import type { TestEvents } from '../../../events/events/test-events.ts'
import { argument, OperatorError, type Command } from '../command.ts'

interface Services {
  environment: Environment
  database: Database
  webhooks: Webhooks
  testEvents: TestEvents
}

const BATCH = 100

/**
 * Returns the events after a position in the log, of one workspace or of all, as they would be
 * delivered, and the test events after `tests`. Without a position it returns no events, but the
 * end of the log. `sign`: includes their `x-signature`.
 */
export const eventsAfter: Command<Services> = async (services, input) => {
  const { database } = services
  const [after, workspace, types] = [
    argument(input, 'after'),
    argument(input, 'workspace'),
    typesIn(argument(input, 'events')),
  ]
  if (
    workspace !== null &&
    (await database.one('select 1 from workspaces where name = $1', [workspace])) === undefined
  )
    throw new OperatorError(`--workspace: workspace ${workspace} does not exist`)
  const upTo = await endOfLog(database)
  const isStart = after === null || !/^\d{1,18}$/.test(after)
  const tests = services.testEvents.after(
    isStart || typeof input['tests'] !== 'number' ? null : input['tests'],
    { workspace, types },
    services.environment.now(),
  )
  if (isStart) return { cursor: upTo, tests: tests.position, events: [] }
  const rows = await database.query<
    EventEntry & { at: string; workspace: string; sub_account: string | null }
  >(
    `select e.uid, e.type, e.created_at, e.object, e.version::text, e.payload::text payload,
       e.position::text at, w.name workspace,
       s.name sub_account
     from events e join workspaces w on w.id = e.workspace_id
       left join sub_accounts s on s.id = e.sub_account_id
     where e.position > $1 and e.position <= $2 and ($3::text is null or w.name = $3)
       and ($4::text[] is null or e.type = any($4))
     order by e.position limit $5`,
    [after, upTo, workspace, types, BATCH],
  )
  const events = [
    ...rows.map((row) => ({
      id: row.uid,
      type: row.type,
      workspace: row.workspace,
      sub_account: row.sub_account,
      object: row.object,
      version: Number(row.version),
      timestamp: row.created_at.toISOString(),
      body: textOf(row),
    })),
    ...tests.events.map((event) => ({ ...event, sub_account: null, version: 1, test: true })),
  ]
  const key =
    input['sign'] === true && events.length > 0 ? (await services.webhooks.key()).privateKey : null
  return {
    cursor: rows.length < BATCH ? upTo : rows.at(-1)?.at,
    tests: tests.position,
    events: await Promise.all(
      events.map(async (event) => ({
        ...event,
        ...(key ? { x_signature: await bodySignature(event.body, key) } : {}),
      })),
    ),
  }
}

function typesIn(text: string | null) {
  if (text === null) return null
  const read = typeFilter.safeParse(text)
  if (!read.success)
    throw new OperatorError(`--events: ${read.error.issues[0]?.message ?? 'is not valid'}`)
  return read.data
}
