const SECOND_MS = 1000
const MINUTE_MS = 60 * SECOND_MS
const HOUR_MS = 60 * MINUTE_MS

/**
 * Delay in milliseconds before each attempt, after the previous one: immediately, then over three
 * days.
 */
const DELAYS_MS = [
  0,
  5 * SECOND_MS,
  5 * MINUTE_MS,
  30 * MINUTE_MS,
  2 * HOUR_MS,
  5 * HOUR_MS,
  10 * HOUR_MS,
  14 * HOUR_MS,
  20 * HOUR_MS,
  24 * HOUR_MS,
]
export const TRIES_MAX = DELAYS_MS.length
/** Time in milliseconds after which no attempt is left. */
export const GIVEN_UP_AFTER_MS = DELAYS_MS.reduce((sum, delay) => sum + delay, 0)
/**
 * Random fraction that is added to a delay, so that deliveries that failed together are not retried
 * together.
 */
const JITTER = 0.1
const RETRY_AFTER_MAX_MS = 24 * HOUR_MS

/** Number of consecutive failures after which a webhook is disabled. */
export const FAILURES_MAX = 50
/**
 * Number of consecutive failures after which attempts pause, so that a receiver that restarts is
 * not disabled within a second.
 */
const FAILURES_BEFORE_PAUSE = 10
const PAUSE_MS = SECOND_MS

/**
 * Returns the delay before the next attempt, in milliseconds.
 * @param left number of attempts that are left
 * @param chance random number from 0 to below 1
 * @param retryAfterMs the receiver's `Retry-After`; limited
 */
export function delayBefore(left: number, chance: number, retryAfterMs: number | null): number {
  const delay = DELAYS_MS[Math.min(DELAYS_MS.length - 1, Math.max(0, TRIES_MAX - left))] as number
  const own = delay * (1 + JITTER * chance)
  return Math.round(Math.max(own, Math.min(retryAfterMs ?? 0, RETRY_AFTER_MAX_MS)))
}

/** Returns the pause of a webhook after this number of consecutive failures, in milliseconds. */
export const pauseAfter = (failures: number): number =>
  failures >= FAILURES_BEFORE_PAUSE ? PAUSE_MS : 0
