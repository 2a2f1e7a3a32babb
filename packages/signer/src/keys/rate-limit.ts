/**
 * Number of key generations and refreshes that a peer may lead in a burst, and the interval in
 * milliseconds after which one more is allowed. Each one writes several entries of the record.
 */
export const RUNS = { burst: 200, everyMs: 2000 }
/** The same for test signatures that a peer begins: a run has up to two. */
export const TESTS = { burst: 400, everyMs: 1000 }

/**
 * Allows a burst, and one more call after each interval. Uses the process's monotonic clock,
 * because the machine's clock may be set back.
 */
export class RateLimit {
  readonly #burst: number
  readonly #everyMs: number
  readonly #now: () => number
  #left: number
  #at: number

  constructor({
    burst,
    everyMs,
    now = () => performance.now(),
  }: {
    burst: number
    everyMs: number
    now?: () => number
  }) {
    this.#burst = burst
    this.#everyMs = everyMs
    this.#now = now
    this.#left = burst
    this.#at = now()
  }

  /** Returns whether a call is allowed, and counts it. */
  take(): boolean {
    const more = Math.floor((this.#now() - this.#at) / this.#everyMs)
    this.#left = Math.min(this.#burst, this.#left + more)
    this.#at += more * this.#everyMs
    if (this.#left === 0) return false
    this.#left--
    return true
  }
}
