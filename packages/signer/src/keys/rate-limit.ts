/**
 * So many at once, and one more after each interval. By the process's own clock, not the machine's,
 * which may be set back.
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

  /** Whether there is one more; it is taken then. */
  take(): boolean {
    const more = Math.floor((this.#now() - this.#at) / this.#everyMs)
    this.#left = Math.min(this.#burst, this.#left + more)
    this.#at += more * this.#everyMs
    if (this.#left === 0) return false
    this.#left--
    return true
  }
}
