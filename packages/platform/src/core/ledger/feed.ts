import { reasonOf } from '@custody/chains/reason'
import type { Logger } from 'pino'
import type { Database } from '../database/pool.ts'
import type { Environment } from '../environment.ts'
import { Notifier } from './notifier.ts'

/** Events that a listener waits for. Without `object`, all events of the workspace. */
export interface Subscription {
  workspace: string
  object?: string
}

/**
 * A listener for events. Events published since the last call are not missed: read first, then
 * wait, then read again.
 */
export interface Listener {
  /**
   * Resolves with true once a wanted event was published, and with false when the signal is
   * aborted. Only one call at a time.
   */
  next(signal: AbortSignal): Promise<boolean>
  close(): void
}

const BATCH = 1000
const FAILED_PAUSE_MS = 2000

interface Listening {
  wanted: Subscription
  notifier: Notifier
}

/**
 * Notifies listeners of this process that events were published by any process. The event log is
 * read once for all listeners, and not at all if there are none.
 */
export class Feed {
  readonly #o: { database: Database; environment: Environment; log: Logger; pollMs: number }
  readonly #listening = new Set<Listening>()
  readonly #notifier: Notifier
  /** Position up to which all listeners were notified; null: there were no listeners. */
  #emittedUpTo: bigint | null = null

  constructor(o: { database: Database; environment: Environment; log: Logger; pollMs: number }) {
    this.#o = o
    this.#notifier = new Notifier(o.environment)
  }

  /** Reports that events were published in this process. */
  ring(): void {
    if (this.#listening.size > 0) this.#notifier.ring()
  }

  listen(wanted: Subscription): Listener {
    const listening = { wanted, notifier: new Notifier(this.#o.environment) }
    this.#listening.add(listening)
    this.#notifier.ring()
    return {
      next: async (signal) => {
        await listening.notifier.wait(null, signal)
        return !signal.aborted
      },
      close: () => void this.#listening.delete(listening),
    }
  }

  /** Runs until the signal is aborted. */
  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      let pauseMs: number | null = this.#o.pollMs
      try {
        if (this.#listening.size === 0) {
          this.#emittedUpTo = null
          pauseMs = null
        } else await this.#emit()
      } catch (error) {
        if (!signal.aborted)
          this.#o.log.warn(
            { err: reasonOf(error) },
            'the event log cannot be read; reading is retried',
          )
        pauseMs = FAILED_PAUSE_MS
      }
      await this.#notifier.wait(pauseMs, signal)
    }
  }

  async #emit(): Promise<void> {
    if (this.#emittedUpTo === null) {
      const log = await this.#o.database.one<{ last: string }>('select last::text from event_log')
      this.#emittedUpTo = BigInt(log?.last ?? '0')
      // Listeners may have read before this position was determined and would miss events in
      // between.
      for (const { notifier } of this.#listening) notifier.ring()
      return
    }
    for (;;) {
      const rows = await this.#o.database.query<{
        position: string
        workspace_id: string
        object: string
      }>(
        `select position::text, workspace_id, object from events where position > $1
          order by events.position limit $2`,
        [this.#emittedUpTo.toString(), BATCH],
      )
      for (const { wanted, notifier } of this.#listening) {
        const isWanted = ({ workspace_id, object }: (typeof rows)[number]) =>
          workspace_id === wanted.workspace &&
          (wanted.object === undefined || object === wanted.object)
        if (rows.some(isWanted)) notifier.ring()
      }
      if (rows.length > 0) this.#emittedUpTo = BigInt(rows.at(-1)?.position ?? '0')
      if (rows.length < BATCH) return
    }
  }
}
