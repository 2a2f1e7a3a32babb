import { reasonOf } from '@custody/chains/reason'
import type { Logger } from 'pino'
import type { Database } from '../database/pool.ts'
import type { Environment } from '../environment.ts'
import { Bell } from './bell.ts'

/** Whose events somebody waits for. Without `object` all of the workspace's. */
export interface Wanted {
  workspace: string
  object?: string
}

/**
 * Somebody who waits for events. What came since the last call is not missed: look first, then
 * wait, then look again.
 */
export interface Listener {
  /**
   * Resolves with true once something came that is wanted, and with false with the signal. One call
   * at a time.
   */
  next(signal: AbortSignal): Promise<boolean>
  close(): void
}

const BATCH = 1000
const FAILED_PAUSE_MS = 2000

interface Listening {
  wanted: Wanted
  bell: Bell
}

/**
 * Tells listeners of this process that events were published, in whichever process that was.
 * However many listen, the log is asked once; and not at all where nobody does.
 */
export class Feed {
  readonly #o: { database: Database; environment: Environment; log: Logger; pollMs: number }
  readonly #listening = new Set<Listening>()
  readonly #bell: Bell
  /** Up to here everybody was told; null: nobody listened. */
  #told: bigint | null = null

  constructor(o: { database: Database; environment: Environment; log: Logger; pollMs: number }) {
    this.#o = o
    this.#bell = new Bell(o.environment)
  }

  /** Something was published in this process. */
  ring(): void {
    if (this.#listening.size > 0) this.#bell.ring()
  }

  listen(wanted: Wanted): Listener {
    const listening = { wanted, bell: new Bell(this.#o.environment) }
    this.#listening.add(listening)
    this.#bell.ring()
    return {
      next: async (signal) => {
        await listening.bell.wait(null, signal)
        return !signal.aborted
      },
      close: () => void this.#listening.delete(listening),
    }
  }

  /** Until the signal. */
  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      let pauseMs: number | null = this.#o.pollMs
      try {
        if (this.#listening.size === 0) {
          this.#told = null
          pauseMs = null
        } else await this.#tell()
      } catch (error) {
        if (!signal.aborted)
          this.#o.log.warn(
            { err: reasonOf(error) },
            'the event log cannot be read; reading is retried',
          )
        pauseMs = FAILED_PAUSE_MS
      }
      await this.#bell.wait(pauseMs, signal)
    }
  }

  async #tell(): Promise<void> {
    if (this.#told === null) {
      const log = await this.#o.database.one<{ last: string }>('select last::text from event_log')
      this.#told = BigInt(log?.last ?? '0')
      // They may have looked before that, and what came in between would be lost to them.
      for (const { bell } of this.#listening) bell.ring()
      return
    }
    for (;;) {
      const rows = await this.#o.database.query<{
        position: string
        workspace_id: string
        object: string
      }>(
        'select position::text, workspace_id, object from events where position > $1 order by events.position limit $2',
        [this.#told.toString(), BATCH],
      )
      for (const { wanted, bell } of this.#listening) {
        const isWanted = ({ workspace_id, object }: (typeof rows)[number]) =>
          workspace_id === wanted.workspace &&
          (wanted.object === undefined || object === wanted.object)
        if (rows.some(isWanted)) bell.ring()
      }
      if (rows.length > 0) this.#told = BigInt(rows.at(-1)?.position ?? '0')
      if (rows.length < BATCH) return
    }
  }
}
