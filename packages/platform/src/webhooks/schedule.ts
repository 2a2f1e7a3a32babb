const SECOND_MS = 1000
const MINUTE_MS = 60 * SECOND_MS
const HOUR_MS = 60 * MINUTE_MS

/** Before each try, from the one before: at once, then over three days. */
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
/** After this time no try would be left. */
export const GIVEN_UP_AFTER_MS = DELAYS_MS.reduce((sum, delay) => sum + delay, 0)
/**
 * So much of a delay is left to chance, so that what failed together does not come back together.
 */
const JITTER = 0.1
const RETRY_AFTER_MAX_MS = 24 * HOUR_MS

/** Failures in a row after which a webhook is disabled. */
export const FAILURES_MAX = 50
/**
 * From so many on it is tried only now and then, so that a receiver that restarts is not disabled
 * within a second.
 */
const FAILURES_BEFORE_PAUSE = 10
const PAUSE_MS = SECOND_MS

/**
 * Milliseconds until the next try.
 * @param left tries that are left @param chance from 0 to below 1 @param retryAfterMs as the
 *   receiver asks; bounded
 */
export function delayBefore(left: number, chance: number, retryAfterMs: number | null): number {
  const delay = DELAYS_MS[Math.min(DELAYS_MS.length - 1, Math.max(0, TRIES_MAX - left))] as number
  const own = delay * (1 + JITTER * chance)
  return Math.round(Math.max(own, Math.min(retryAfterMs ?? 0, RETRY_AFTER_MAX_MS)))
}

/** Milliseconds for which a webhook is left alone after so many failures in a row. */
export const pauseAfter = (failures: number): number =>
  failures >= FAILURES_BEFORE_PAUSE ? PAUSE_MS : 0
