import { reasonOf } from '@custody/chains/reason'
import type { EventType } from '../../core/database/event-types.ts'
import { isPassing, type Queryable, type Database } from '../../core/database/pool.ts'
import type { Loop } from '../../core/engine/loops/loop.ts'
import type { Settings } from '../../core/settings/settings.ts'
import type { Environment } from '../../core/environment.ts'
import type { Logger } from 'pino'
import type { Notifier } from '../../core/ledger/notifier.ts'
import type { LoadMonitor } from '../../core/load-monitor.ts'
import type { Feed } from '../../core/ledger/feed.ts'
import { objectOf } from './object.ts'

interface Services {
  settings: Pick<Settings, 'pollMs'>
  environment: Environment
  database: Database
  log: Logger
  outbox: Notifier
  pressure: LoadMonitor
  feed: Feed
}

/** An event with its position in the log. */
export interface Published {
  id: bigint
  uid: string
  workspaceId: string
  /** Null: all keys of the workspace receive the event. */ subAccountId: string | null
  type: EventType
  object: string
  version: bigint
  position: bigint
  createdAt: Date
  /** JSON text. */ payload: string
}

/** Creates the deliveries of published events. */
export interface Distributor {
  /** Called in the database transaction that publishes the events. */
  write(tx: Queryable, events: readonly Published[]): Promise<void>
  /** Called after the commit of the database transaction that published the events. */
  done(): void
}

const LOCK = 7_205_160_013
const BATCH = 200
const CROWD_MS = 50
/** Delay in milliseconds between batches while the process is busy with requests. */
const CROWD_BUSY_MS = 250
/**
 * Maximum poll interval in milliseconds. Other processes write events too, and do not notify this
 * one.
 */
const POLL_MS_MAX = 1000

export const eventPollMs = (services: Pick<Services, 'settings'>): number =>
  Math.min(services.settings.pollMs, POLL_MS_MAX)

interface Row {
  id: string
  uid: string
  workspace_id: string
  sub_account_id: string | null
  type: EventType
  payload: string
  created_at: Date
}

/** SQL condition on `events`: the event has no position in the log yet. */
const IS_WAITING = 'position is null'

/**
 * Assigns committed events their positions in the log, in the order of their IDs, so that a
 * consumer that pages by position cannot skip an event that was committed late. Writes nothing if
 * there are none.
 * @returns the number of published events
 */
export async function publish(services: Services, distributor: Distributor): Promise<number> {
  const { database } = services
  if ((await database.one(`select 1 from events where ${IS_WAITING} limit 1`)) === undefined)
    return 0
  const published = await batch(services, distributor.write, BATCH).catch(
    async (error: unknown) => {
      if (isPassing(error)) throw error
      // An error of a single event must not block all others.
      return batch(services, distributor.write, 1).catch(async (reason: unknown) => {
        if (isPassing(reason)) throw reason
        services.log.error(
          { err: reasonOf(reason) },
          'an event could not be queued for its webhooks; receivers can only query it from the API',
        )
        return batch(services, async () => undefined, 1)
      })
    },
  )
  if (published > 0) {
    services.environment.checkpoint('events.published')
    services.feed.ring()
    distributor.done()
  }
  return published
}

/**
 * Publishes the oldest unpublished events. Only one process publishes at a time; events of other
 * processes are in its next batch.
 */
async function batch(
  services: Services,
  write: Distributor['write'],
  limit: number,
): Promise<number> {
  return services.database.transaction(async (tx) => {
    await tx.query('select pg_advisory_xact_lock($1)', [LOCK])
    const rows = await tx.query<Row>(
      `select id::text, uid, workspace_id, sub_account_id, type, payload::text payload, created_at
        from events
       where ${IS_WAITING} order by events.id limit $1`,
      [limit],
    )
    if (rows.length === 0) return 0
    const events = await numbered(tx, rows)
    await tx.query(
      `update events e set position = n.position, object = n.object, version = n.version
       from unnest($1::bigint[], $2::bigint[], $3::text[], $4::bigint[], $5::uuid[]) n (id,
         position, object, version, workspace)
       where e.workspace_id = n.workspace and e.id = n.id`,
      [
        events.map(({ id }) => id),
        events.map(({ position }) => position),
        events.map(({ object }) => object),
        events.map(({ version }) => version),
        events.map(({ workspaceId }) => workspaceId),
      ],
    )
    await write(tx, events)
    return rows.length
  })
}

/** Assigns positions from the end of the log, and the next version of each object. */
async function numbered(tx: Queryable, rows: readonly Row[]): Promise<Published[]> {
  const matches = rows.map((row) => ({
    row,
    object: objectOf(
      row.type,
      (JSON.parse(row.payload) ?? {}) as Record<string, unknown>,
      row.workspace_id,
    ),
  }))
  const log = await tx.one<{ last: string }>(
    'update event_log set last = last + $1 returning last::text',
    [rows.length],
  )
  let position = BigInt(log?.last ?? '0') - BigInt(rows.length)
  const objects = await tx.query<{ workspace_id: string; object: string; version: string }>(
    `insert into event_objects as o (workspace_id, object, version)
     select w, name, count(*) from unnest($1::uuid[], $2::text[]) e (w, name) group by w, name
     on conflict (workspace_id, object) do update set version = o.version + excluded.version
     returning o.workspace_id, o.object, o.version::text`,
    [matches.map(({ row }) => row.workspace_id), matches.map(({ object }) => object)],
  )
  const key = (workspace: string, object: string) => `${workspace} ${object}`
  const counts = new Map<string, bigint>()
  for (const { row, object } of matches) {
    const name = key(row.workspace_id, object)
    counts.set(name, (counts.get(name) ?? 0n) + 1n)
  }
  const versions = new Map(
    objects.map(({ workspace_id, object, version }) => {
      const name = key(workspace_id, object)
      return [name, BigInt(version) - (counts.get(name) ?? 0n)] as const
    }),
  )
  return matches.map(({ row, object }) => {
    position += 1n
    const name = key(row.workspace_id, object)
    const version = (versions.get(name) ?? 0n) + 1n
    versions.set(name, version)
    return {
      id: BigInt(row.id),
      uid: row.uid,
      workspaceId: row.workspace_id,
      subAccountId: row.sub_account_id,
      type: row.type,
      object,
      version,
      position,
      createdAt: row.created_at,
      payload: row.payload,
    }
  })
}

/**
 * Creates the loop that publishes events as soon as this process has committed one, and polls
 * periodically for events of other processes.
 */
export function publishLoop(services: Services, distributor: Distributor): Loop {
  return {
    name: 'publish events',
    everyMs: eventPollMs(services),
    due: `exists (select 1 from events where ${IS_WAITING})`,
    notifier: services.outbox,
    async run(signal) {
      const published = await publish(services, distributor)
      // Events that arrive in quick succession are published together.
      if (published > 0 && published < BATCH) {
        await services.environment.sleep(
          services.pressure.isHigh ? CROWD_BUSY_MS : CROWD_MS,
          signal,
        )
      }
      return published > 0
    },
  }
}
