import pg from 'pg'
import type { ConnectionPool, Database } from '../src/core/database/pool.ts'
import type { Environment } from '../src/core/environment.ts'
import { replaceColumnDefaults } from './column-defaults.ts'

/**
 * Noon of a day in the middle of a month: no test crosses the end of a day or a month unless it
 * advances the clock.
 */
const START_MS = Date.UTC(2030, 0, 15, 12)

interface Sleeper {
  atMs: number
  wake(): void
}

/**
 * A clock that stands still until a test advances it, and the Environment's `now` and `sleep` that
 * follow it.
 */
export class ManualClock implements Pick<Environment, 'now' | 'sleep'> {
  readonly startMs: number
  #nowMs: number
  readonly #sleepers = new Set<Sleeper>()

  constructor(startMs = START_MS) {
    this.startMs = startMs
    this.#nowMs = startMs
  }

  /** Milliseconds since the Unix epoch. */
  readonly now = (): number => this.#nowMs

  /** Resolves when the clock has been advanced by `milliseconds`, or when the signal is aborted. */
  readonly sleep = (milliseconds: number, signal?: AbortSignal): Promise<void> =>
    new Promise((resolve) => {
      if (milliseconds <= 0 || signal?.aborted) return resolve()
      const sleeper: Sleeper = {
        atMs: this.#nowMs + milliseconds,
        wake: () => {
          this.#sleepers.delete(sleeper)
          signal?.removeEventListener('abort', sleeper.wake)
          resolve()
        },
      }
      this.#sleepers.add(sleeper)
      signal?.addEventListener('abort', sleeper.wake, { once: true })
    })

  /**
   * Advances the clock and wakes, in the order of their deadlines, all sleepers whose time has
   * come.
   */
  advance(milliseconds: number): void {
    this.#nowMs += milliseconds
    this.#wake()
  }

  /**
   * Sets the clock back to its start, for a fixture that begins again. The remaining time of each
   * sleeper stays the same.
   */
  reset(): void {
    const elapsedMs = this.#nowMs - this.startMs
    for (const sleeper of this.#sleepers) sleeper.atMs -= elapsedMs
    this.#nowMs = this.startMs
  }

  #wake(): void {
    const due = [...this.#sleepers]
      .filter(({ atMs }) => atMs <= this.#nowMs)
      .sort((a, b) => a.atMs - b.atMs)
    for (const { wake } of due) wake()
  }
}

/**
 * Configuration parameter of a connection: the clock's time, in milliseconds since the Unix epoch.
 */
const NOW_SETTING = 'manual_clock.now_ms'

/**
 * Function that replaces now() in column defaults. Each call is one microsecond later than the
 * last, so that rows that are inserted at one time of the clock keep their order, and all of them
 * are less than 100 ms before that time.
 */
const CLOCK_FUNCTION = `
  create schema manual_clock;
  create sequence manual_clock.calls;
  create function manual_clock.now() returns timestamptz language sql volatile as
    'select timestamptz ''epoch'' + (current_setting(''${NOW_SETTING}'')::bigint - 100) * interval ''1 millisecond''
       + nextval(''manual_clock.calls'') * interval ''1 microsecond''';
  grant usage on schema manual_clock to public;
  grant usage on sequence manual_clock.calls to public`

/** Makes a database's column defaults follow the clock of {@link clockPool}. */
export async function followClock(database: Database): Promise<void> {
  await database.query(CLOCK_FUNCTION)
  await database.query(replaceColumnDefaults({ now: 'manual_clock.now()' }))
}

/**
 * A connection pool for `openDatabase`: each connection has the clock's time from when it is taken
 * out of the pool.
 */
export const clockPool =
  (clock: ManualClock) =>
  (config: pg.PoolConfig): ConnectionPool => {
    const pool = new pg.Pool(config)
    const times = new WeakMap<pg.PoolClient, number>()
    return {
      on: (event: 'error' | 'connect', listener: never) => pool.on(event as 'error', listener),
      end: () => pool.end(),
      async connect() {
        const client = await pool.connect()
        const nowMs = clock.now()
        if (times.get(client) !== nowMs) {
          try {
            await client.query(`select set_config('${NOW_SETTING}', '${nowMs}', false)`)
          } catch (error) {
            client.release(true)
            throw error
          }
          times.set(client, nowMs)
        }
        return client
      },
    }
  }
