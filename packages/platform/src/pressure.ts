import { performance } from 'node:perf_hooks'

/** So many requests at a time are being answered where other work begins to make way. */
const REQUESTS_MANY = 8
/** Share of its time that the event loop is busy where it is the bound. */
const LOOP_FULL = 0.9
/** Over so many milliseconds that is looked at. */
const LOOKED_AT_MS = 50

/**
 * Whether this process is kept busy by requests. A caller waits for his answer now, a transfer for its chain some seconds more:
 * where both want the same processor, what nobody waits for makes way. Where there are processors enough, it does not.
 */
export class Pressure {
  #requests = 0
  #last = performance.eventLoopUtilization()
  #isFull = false

  /** Counts a request while it is being answered. */
  async during<T>(answer: () => Promise<T>): Promise<T> {
    this.#requests++
    try {
      return await answer()
    } finally {
      this.#requests--
    }
  }

  get isHigh(): boolean {
    const now = performance.eventLoopUtilization()
    const { active, idle, utilization } = performance.eventLoopUtilization(now, this.#last)
    if (active + idle >= LOOKED_AT_MS) {
      this.#last = now
      this.#isFull = utilization >= LOOP_FULL
    }
    return this.#isFull && this.#requests >= REQUESTS_MANY
  }
}
