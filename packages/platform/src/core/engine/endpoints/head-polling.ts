import type { Environment } from '../../environment.ts'

/**
 * Number of times that a chain's head is read per block time, and the longest pause in
 * milliseconds.
 */
const LOOKS_PER_BLOCK = 10
const PAUSE_MS_MAX = 30_000
/** Longest pause while saving requests because the daily limit would not last, in milliseconds. */
const SAVING_MS_MAX = 60_000
const DAY_MS = 86_400_000
/** Part of the daily limit that may be used early, as a time in milliseconds: one hour's worth. */
const SAVED_MS = 3_600_000

/**
 * Decides how often a network's head is polled: depending on its block time, and less often as this
 * process uses up the request limit of the endpoint's plan. Only polling is slowed down. All
 * existing blocks are still read and transfers make the queries that they need, so a chain whose
 * blocks alone exceed the plan is not slowed further.
 */
export class HeadPolling {
  /** Daily request limit; null: no limit was configured. */
  readonly perDay: number | null
  readonly #blockMs: number | undefined
  readonly #environment: Pick<Environment, 'now'>
  /** Number of requests available now; negative if more were sent than allowed. */
  #left: number
  #at: number

  /**
   * Starts with an unused limit.
   * @param o.blockMs usual time between two blocks; absent: blocks are created on command, and the
   *   head is polled as often as possible
   */
  constructor(o: {
    blockMs: number | undefined
    perDay: number | undefined
    environment: Pick<Environment, 'now'>
  }) {
    this.perDay = o.perDay ?? null
    this.#blockMs = o.blockMs
    this.#environment = o.environment
    this.#left = this.#most
    this.#at = o.environment.now()
  }

  get #most(): number {
    return ((this.perDay ?? 0) * SAVED_MS) / DAY_MS
  }

  #refill(): void {
    const now = this.#environment.now()
    const grown = this.#left + ((this.perDay ?? 0) * Math.max(0, now - this.#at)) / DAY_MS
    this.#left = Math.min(this.#most, grown)
    this.#at = now
  }

  /** Counts one request. */
  recordRequest(): void {
    if (this.perDay === null) return
    this.#refill()
    // The deficit is limited to one hour's worth, so that a burst does not slow down the next day.
    this.#left = Math.max(-this.#most, this.#left - 1)
  }

  /**
   * Returns the milliseconds between two reads of the head.
   * @param leastMs the platform's own minimum pause
   */
  pauseMs(leastMs: number): number {
    const usual = Math.max(leastMs, Math.min(PAUSE_MS_MAX, (this.#blockMs ?? 0) / LOOKS_PER_BLOCK))
    if (this.perDay === null) return usual
    this.#refill()
    // The pause is the usual one while at least half of the requests is left, and rises to the
    // longest pause when none is left.
    const lacking = Math.min(1, Math.max(0, 1 - this.#left / (this.#most / 2)))
    return usual + Math.max(0, SAVING_MS_MAX - usual) * lacking
  }
}
