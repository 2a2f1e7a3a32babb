import type { Environment } from '../environment.ts'

/**
 * A chain's head is looked at this often in the time of one of its blocks; and at least every 30
 * seconds.
 */
const LOOKS_PER_BLOCK = 10
const PAUSE_MS_MAX = 30_000
/** At most this long where the day's requests would not last. */
const SAVING_MS_MAX = 60_000
const DAY_MS = 86_400_000
/** What a day allows may be used so much earlier: an hour's worth. */
const SAVED_MS = 3_600_000

/**
 * How often a network's head is looked at: by how fast its blocks come, and more seldom as the
 * requests of this process use up what the endpoint's plan allows. Only looking waits. Blocks that
 * are there are all read, and transfers ask what they need: a chain whose blocks alone cost more
 * than the plan is not slowed below them.
 */
export class HeadPolling {
  /** What a day allows; null: no limit was configured. */
  readonly perDay: number | null
  readonly #blockMs: number | undefined
  readonly #environment: Pick<Environment, 'now'>
  /** Requests that may be made at once; below zero where more were made. */
  #left: number
  #at: number

  /**
   * @param blockMs the usual time between two blocks; absent: blocks come on command, and the
   *   head is looked at as often as may be
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

  /** Tells of one request. */
  asked(): void {
    if (this.perDay === null) return
    this.#refill()
    // What is overdrawn is owed for an hour at most: a burst does not slow the next day.
    this.#left = Math.max(-this.#most, this.#left - 1)
  }

  /** Milliseconds between two looks at the head. @param leastMs the platform's own pause */
  pauseMs(leastMs: number): number {
    const usual = Math.max(leastMs, Math.min(PAUSE_MS_MAX, (this.#blockMs ?? 0) / LOOKS_PER_BLOCK))
    if (this.perDay === null) return usual
    this.#refill()
    // All the pause while half is left, the longest when nothing is.
    const lacking = Math.min(1, Math.max(0, 1 - this.#left / (this.#most / 2)))
    return usual + Math.max(0, SAVING_MS_MAX - usual) * lacking
  }
}
