import { reasonOf } from '@custody/chains/reason'
import { Bell } from '../ledger/bell.ts'
import { LoopHealth } from './loop-health.ts'
import type { Services } from './services.ts'

/** A step function that is called again and again; true: there is more to do at once. */
export interface Loop {
  name: string
  everyMs: number
  /**
   * Whether `run` would find something to do, as an expression of SQL in which $1 is the time; it
   * may be true too often, never too seldom. Such a loop is not run while there is nothing to do:
   * one statement asks for all of them.
   */
  due?: string
  /** Rung where this process has made something due: `run` is called at once. */
  bell?: Bell
  run(signal: AbortSignal): Promise<boolean>
}

const BACKOFF_MAX_MS = 15_000
/**
 * Where nothing was due and no bell rang for so long, it is asked less often what is: what this
 * process makes due rings.
 */
const QUIET_AFTER_MS = 10_000
const QUIET_MS = 1000

/**
 * Runs loops until the signal; an error is logged, and the loop goes on after a growing pause.
 * @param health is told of each failure, and of each success
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
              'a loop failed; it continues',
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
 * Asks for all loops that wait whether something is due to them, in one statement, as often as the
 * most impatient of them would ask for itself: most of what an idle platform did was to ask for
 * each alone.
 */
class Lookout {
  readonly #services: Services
  readonly #bells: ReadonlyMap<Loop, Bell>
  readonly #loops: readonly Loop[]
  readonly #everyMs: number
  /** Those that wait, and since when. */
  readonly #waiting = new Map<Loop, number>()
  /** Rung when a loop goes on. */
  readonly #moved: Bell
  #movedAt: number

  constructor(services: Services, loops: readonly Loop[]) {
    this.#services = services
    this.#loops = loops
    this.#bells = new Map(loops.map((loop) => [loop, loop.bell ?? new Bell(services.environment)]))
    this.#everyMs = Math.min(...loops.map(({ everyMs }) => everyMs))
    this.#moved = new Bell(services.environment)
    this.#movedAt = services.environment.now()
  }

  /** Resolves when something is due to a loop, when its bell is rung, or with the signal. */
  async wait(loop: Loop, signal: AbortSignal): Promise<void> {
    this.#waiting.set(loop, this.#services.environment.now())
    await this.#bells.get(loop)?.wait(null, signal)
    this.#waiting.delete(loop)
    this.#movedAt = this.#services.environment.now()
    this.#moved.ring()
  }

  /**
   * Until it is asked again: soon, or where all is quiet and this process alone makes work, a
   * little later, unless something moves. After a move it is as long as ever until the next
   * question.
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
    // The time has its place also where no loop asks for it: PostgreSQL refuses a value that has
    // none.
    const text = `select concat_ws(' ', ${terms.join(', ')}) due where $1::timestamptz is not null`
    while (!signal.aborted) {
      await this.#pause(signal)
      if (signal.aborted || this.#waiting.size === 0) continue
      // Where the database cannot be asked all are due: each tells of that as it does alone, and
      // waits the longer for it.
      const row = await database
        .one<{ due: string }>(text, [database.now()])
        .catch((error: unknown) => {
          if (!isAway && !signal.aborted)
            log.warn(
              { err: reasonOf(error) },
              'the due work cannot be determined centrally; each loop queries it separately',
            )
          return null
        })
      isAway = !row
      const due = row ? row.due.split(' ').filter(Boolean).map(Number) : this.#loops.keys()
      // A turn that comes a little early is better than one that is missed for a millisecond.
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
