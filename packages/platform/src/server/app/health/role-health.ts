import { hostname } from 'node:os'
import type { Loop } from '../../../core/engine/loops/loop.ts'
import { LoopHealth, type FailingLoop } from '../../../core/engine/loops/health.ts'
import type { Database } from '../../../core/database/pool.ts'
import type { Role, Settings } from '../../../core/settings/settings.ts'

interface Services {
  settings: Pick<Settings, 'role'>
  database: Database
}

/** Interval at which each process writes its heartbeat, in milliseconds. */
const HEARTBEAT_MS = 5000
/**
 * Time in milliseconds after which a process counts as absent; it has then missed three heartbeats
 * in a row.
 */
export const AWAY_MS = 20_000
/**
 * Time in seconds after which an absent process is removed, if another process of its role was seen
 * since.
 */
const FORGOTTEN_S = 3600
/**
 * Tolerated difference between the clocks of hosts, in milliseconds; leases and request lifetimes
 * are many times longer.
 */
const AHEAD_MS = 5000

/** Duties that some process must perform, and the roles that perform them. */
const DUTIES = {
  api: ['api', 'all'],
  worker: ['worker', 'all'],
  scanner: ['scanner', 'all'],
} as const satisfies Record<string, readonly Role[]>
export type Duty = keyof typeof DUTIES
/** Duties without which nothing is processed, although requests are accepted. */
const NEEDED: readonly Duty[] = ['worker', 'scanner']

/**
 * Health of one duty: the number of processes that perform it, and the time since one was last
 * seen, in milliseconds; null: never.
 */
export interface DutyHealth {
  duty: Duty
  processes: number
  unseenMs: number | null
}

interface Seen {
  role: Role
  host: string
  seen_at: Date
  failing: FailingLoop[]
}

/**
 * Creates the loop that writes this process's heartbeat while it runs, even while other writes are
 * stopped (see `DatabaseHold`).
 * @param health health of this process's loops
 */
export function heartbeatLoop(
  services: Services,
  id: string,
  health: LoopHealth = new LoopHealth(),
): Loop {
  const { database, settings } = services
  const startedAt = database.now()
  return {
    name: 'heartbeat',
    everyMs: HEARTBEAT_MS,
    async run() {
      const now = database.now()
      await database.query(
        `insert into processes (id, role, host, started_at, seen_at, failing)
          values ($1, $2, $3, $4, $5, $6)
         on conflict (id) do update set seen_at = excluded.seen_at, failing = excluded.failing`,
        [
          id,
          settings.role,
          hostname(),
          startedAt,
          now,
          JSON.stringify(health.failing(now.getTime())),
        ],
      )
      await database.query(
        `delete from processes p where p.seen_at < $1::timestamptz - $2 * interval '1 second'
           and exists (select 1 from processes o where o.role = p.role and o.seen_at > p.seen_at)`,
        [now, FORGOTTEN_S],
      )
      return false
    },
  }
}

/**
 * Returns the health of all duties, a sentence about a host whose clock is ahead of this one's, and
 * the loops that have failed for minutes in running processes.
 */
export async function readRoleHealth({ database }: Pick<Services, 'database'>): Promise<{
  duties: DutyHealth[]
  ahead: string | null
  failing: FailingLoop[]
}> {
  const seen = await database.query<Seen>('select role, host, seen_at, failing from processes')
  const now = database.now().getTime()
  const duties = (Object.keys(DUTIES) as Duty[]).map((duty): DutyHealth => {
    const ages = seen
      .filter(({ role }) => (DUTIES[duty] as readonly Role[]).includes(role))
      .map(({ seen_at }) => now - seen_at.getTime())
    return {
      duty,
      processes: ages.filter((ms) => ms < AWAY_MS).length,
      unseenMs: ages.length === 0 ? null : Math.max(0, Math.min(...ages)),
    }
  })
  const [first] = seen
    .filter(({ seen_at }) => seen_at.getTime() - now > AHEAD_MS)
    .map(
      ({ host, seen_at }) =>
        `the clock of ${host} is ${Math.round((seen_at.getTime() - now) / 1000)} s ahead of this host's`,
    )
  const failing = seen
    .filter(({ seen_at }) => now - seen_at.getTime() < AWAY_MS)
    .flatMap((each) => each.failing)
    .sort((a, b) => a.since - b.since)
  return { duties, ahead: first ?? null, failing }
}

/** Returns a sentence for each needed duty that no process performs. */
export function missingDuties(duties: readonly DutyHealth[]): Map<Duty, string> {
  return new Map(
    duties
      .filter(({ duty, processes }) => NEEDED.includes(duty) && processes === 0)
      .map(({ duty, unseenMs }) => [
        duty,
        unseenMs === null
          ? `no ${duty} has ever run`
          : `no ${duty} has reported for ${Math.round(unseenMs / 1000)} s`,
      ]),
  )
}
