export interface RetryOptions {
  /** Attempts in all. */
  attemptsMax: number
  /** Wait before the second attempt; doubled each time. */
  backoff_ms: number
  backoffMax_ms: number
}

/** Exponential backoff with half of it at random, so that many clients do not come back at once. */
export function backoff(options: RetryOptions, attempt: number, random: () => number): number {
  const full = Math.min(options.backoffMax_ms, options.backoff_ms * 2 ** (attempt - 1))
  return full / 2 + (random() * full) / 2
}

const WINDOW_MS = 60_000
const WAIT_MIN_MS = 100

/**
 * How long to wait for the window of a 429 to end. Counted from the answer's own `date`, for this
 * machine's clock may be wrong. That header is rounded down to a second, so the wait is never too
 * short.
 */
export function rateLimitWait(headers: Headers, now: number, random: () => number): number {
  const reset = Date.parse(headers.get('x-rate-limit-reset') ?? '')
  const date = Date.parse(headers.get('date') ?? '')
  const after = Number(headers.get('retry-after') ?? Number.NaN) * 1000
  const wait = Number.isFinite(reset)
    ? reset - (Number.isFinite(date) ? date : now)
    : Number.isFinite(after)
      ? after
      : WINDOW_MS
  return Math.min(Math.max(wait, WAIT_MIN_MS), WINDOW_MS + 1000) + random() * 250
}
