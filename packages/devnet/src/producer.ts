import type { Timing } from './timing.ts'

/**
 * Schedules the next block. Busy (a transaction waits, or fewer than `quietAfter` blocks follow the
 * last one): every `busyMs`. Idle: every `idleMs`, so that an unused machine stays quiet. With
 * manual time: never.
 */
export class Producer {
  readonly #busyMs: number
  readonly #idleMs: number
  readonly #timing: Timing
  readonly #isBusy: () => boolean
  readonly #produce: () => Promise<void>
  #last = Date.now()
  #timer: NodeJS.Timeout | undefined
  #running = false
  #stopped = false

  constructor(options: {
    timing: Timing
    busyMs: number
    idleMs: number
    isBusy: () => boolean
    produce: () => Promise<void>
  }) {
    this.#timing = options.timing
    this.#busyMs = options.busyMs / options.timing.pace
    this.#idleMs = options.idleMs
    this.#isBusy = options.isBusy
    this.#produce = options.produce
  }

  /**
   * Recomputes the schedule. Call it after anything that may change the pace: a broadcast, or a
   * block on demand.
   */
  wake(): void {
    if (this.#stopped || this.#running || this.#timing.manual) return
    clearTimeout(this.#timer)
    const due = this.#last + (this.#isBusy() ? this.#busyMs : this.#idleMs)
    this.#timer = setTimeout(() => void this.#tick(), Math.max(0, due - Date.now()))
  }

  stop(): void {
    this.#stopped = true
    clearTimeout(this.#timer)
  }

  async #tick(): Promise<void> {
    this.#running = true
    try {
      if (!this.#timing.halted) await this.#produce()
    } catch (error) {
      if (!this.#stopped)
        console.error(`devnet: no block could be made: ${(error as Error).message}`)
    } finally {
      this.#last = Date.now()
      this.#running = false
      this.wake()
    }
  }
}
