import { hostname } from 'node:os'
import type { Loop } from '../engine/loop.ts'
import { LoopHealth, type FailingLoop } from '../engine/loop-health.ts'
import type { Services } from '../engine/services.ts'
import type { Role } from '../settings/settings.ts'

/** Each process says so often that it is there. */
const HEARTBEAT_MS = 5000
/** Not heard for so long it is away: three times in a row it could not say so. */
export const AWAY_MS = 20_000
/**
 * A process that will not come back is forgotten after this time, if another of its role was there
 * since.
 */
const FORGOTTEN_S = 3600
/** Clocks of hosts may differ by less; leases and requests' lives are many times that. */
const AHEAD_MS = 5000

/** What has to be done by somebody, and the roles that do it. */
const DUTIES = {
  api: ['api', 'all'],
  worker: ['worker', 'all'],
  scanner: ['scanner', 'all'],
} as const satisfies Record<string, readonly Role[]>
export type Duty = keyof typeof DUTIES
/** Without these nothing goes on, whatever is accepted. */
const NEEDED: readonly Duty[] = ['worker', 'scanner']

/**
 * Of one duty: how many processes are there, and how long ago one was last seen, in ms; null:
 * never.
 */
export interface Presence {
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
 * Says, for as long as this process works, that it is there; whatever holds the database up.
 * @param health of the loops of this process
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
        `insert into processes (id, role, host, started_at, seen_at, failing) values ($1, $2, $3, $4, $5, $6)
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
 * Who is there, of every role, a sentence for a host whose clock is ahead of this one's, and the
 * loops that have failed for minutes in the processes that are there.
 */
export async function readPresence({
  database,
}: Services): Promise<{ duties: Presence[]; ahead: string | null; failing: FailingLoop[] }> {
  const seen = await database.query<Seen>('select role, host, seen_at, failing from processes')
  const now = database.now().getTime()
  const duties = (Object.keys(DUTIES) as Duty[]).map((duty): Presence => {
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

/** Of what is needed, what nobody does: a sentence for each duty. */
export function absences(duties: readonly Presence[]): Map<Duty, string> {
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
