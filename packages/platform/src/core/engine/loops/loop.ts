import { reasonOf } from '@custody/chains/reason'
import { Notifier } from '../../ledger/notifier.ts'
import { LoopHealth } from './health.ts'
import type { Settings } from '../../settings/settings.ts'
import type { Environment } from '../../environment.ts'
import type { Database } from '../../database/pool.ts'
import type { Logger } from 'pino'

interface Services {
  settings: Pick<Settings, 'role'>
  environment: Pick<Environment, 'now' | 'sleep'>
  database: Pick<Database, 'now' | 'one'>
  log: Pick<Logger, 'warn'>
}

/**
 * A step function that is called repeatedly. It returns true if there is more to do immediately.
 */
export interface Loop {
  name: string
  everyMs: number
  /**
   * SQL expression that tells whether `run` has something to do; $1 is the current time. It may be
   * true unnecessarily, but must not be false while there is work. A loop with this expression does
   * not run while it has nothing to do: one statement checks all such loops.
   */
  due?: string
  /**
   * Notifier that is notified when this process has made something due; `run` is then called
   * immediately.
   */
  notifier?: Notifier
  run(signal: AbortSignal): Promise<boolean>
}

const BACKOFF_MAX_MS = 15_000
/**
 * Milliseconds without due work or a notification after which the database is checked less often,
 * and the interval of these checks in milliseconds. Work that this process creates is reported by a
 * notifier.
 */
const QUIET_AFTER_MS = 10_000
const QUIET_MS = 1000

/**
 * Runs loops until the signal is aborted. An error is logged, and the loop continues after a
 * growing pause.
 * @param health records each failure and success
 */
export async function runLoops(
  services: Services,
  loops: readonly Loop[],
  signal: AbortSignal,
  health: LoopHealth = new LoopHealth(),
): Promise<void> {
  const lookout = new Lookout(
    services,
    loops.filter(({ due }) => due !== undefined),
  )
  await Promise.all([
    lookout.run(signal),
    ...loops.map(async (loop) => {
      let failures = 0
      while (!signal.aborted) {
        let more = false
        try {
          more = await loop.run(signal)
          failures = 0
          health.succeeded(loop.name)
        } catch (error) {
          failures++
          if (!signal.aborted) health.failed(loop.name, reasonOf(error), services.environment.now())
          if (!signal.aborted && (failures === 1 || failures % 20 === 0)) {
            services.log.warn(
              { loop: loop.name, failures, err: reasonOf(error) },
              'a background loop failed; it is retried',
            )
          }
        }
        if (more || signal.aborted) continue
        if (failures > 0)
          await services.environment.sleep(
            Math.min(BACKOFF_MAX_MS, loop.everyMs * 2 ** Math.min(failures, 10)),
            signal,
          )
        else if (loop.due !== undefined) await lookout.wait(loop, signal)
        else await services.environment.sleep(loop.everyMs, signal)
      }
    }),
  ])
}

/**
 * Checks in one statement whether any waiting loop has something due, at the shortest interval of
 * all loops. Before, an idle platform spent most of its time checking each loop separately.
 */
class Lookout {
  readonly #services: Services
  readonly #bells: ReadonlyMap<Loop, Notifier>
  readonly #loops: readonly Loop[]
  readonly #everyMs: number
  /** Waiting loops and the time since which each waits. */
  readonly #waiting = new Map<Loop, number>()
  /** Notified when a loop continues to run. */
  readonly #moved: Notifier
  #movedAt: number

  constructor(services: Services, loops: readonly Loop[]) {
    this.#services = services
    this.#loops = loops
    this.#bells = new Map(
      loops.map((loop) => [loop, loop.notifier ?? new Notifier(services.environment)]),
    )
    this.#everyMs = Math.min(...loops.map(({ everyMs }) => everyMs))
    this.#moved = new Notifier(services.environment)
    this.#movedAt = services.environment.now()
  }

  /**
   * Resolves when something is due for the loop, when its notifier is notified, or when the signal
   * is aborted.
   */
  async wait(loop: Loop, signal: AbortSignal): Promise<void> {
    this.#waiting.set(loop, this.#services.environment.now())
    await this.#bells.get(loop)?.wait(null, signal)
    this.#waiting.delete(loop)
    this.#movedAt = this.#services.environment.now()
    this.#moved.ring()
  }

  /**
   * Waits until the next check: the usual interval, or longer if nothing has happened for a while
   * and only this process creates work. Any activity ends the additional wait; then the usual
   * interval applies.
   */
  async #pause(signal: AbortSignal): Promise<void> {
    const { environment, settings } = this.#services
    const quietMs =
      settings.role === 'all' && Math.abs(environment.now() - this.#movedAt) >= QUIET_AFTER_MS
        ? QUIET_MS - this.#everyMs
        : 0
    if (quietMs > 0) await this.#moved.wait(quietMs, signal)
    await environment.sleep(this.#everyMs, signal)
  }

  async run(signal: AbortSignal): Promise<void> {
    const { database, environment, log } = this.#services
    if (this.#loops.length === 0) return
    let isAway = false
    const terms = this.#loops.map(({ due }, at) => `case when (${due}) then ${at} end`)
    // The statement uses $1 even if no loop's expression does, because PostgreSQL rejects a
    // parameter whose type it cannot determine.
    const text = `select concat_ws(' ', ${terms.join(', ')}) due where $1::timestamptz is not null`
    while (!signal.aborted) {
      await this.#pause(signal)
      if (signal.aborted || this.#waiting.size === 0) continue
      // If the database cannot be queried, all loops count as due: each of them then reports the
      // failure and backs off by itself.
      const row = await database
        .one<{ due: string }>(text, [database.now()])
        .catch((error: unknown) => {
          if (!isAway && !signal.aborted)
            log.warn(
              { err: reasonOf(error) },
              'the joint query for due work failed; each background loop queries its own work',
            )
          return null
        })
      isAway = !row
      const due = row ? row.due.split(' ').filter(Boolean).map(Number) : this.#loops.keys()
      // Half an interval is added, because it is better to run a loop slightly early than to miss a
      // run that is due a millisecond later.
      const now = environment.now() + this.#everyMs / 2
      for (const at of due) {
        const loop = this.#loops[at] as Loop
        const since = this.#waiting.get(loop)
        if (since !== undefined && Math.abs(now - since) >= loop.everyMs)
          this.#bells.get(loop)?.ring()
      }
    }
  }
}
