/** Retry policy of requests that are safe to repeat. Times in milliseconds. */
export interface RetryOptions {
  /** Maximum number of attempts, including the first. */
  attemptsMax: number
  /** Wait before the second attempt in milliseconds, doubled for each further one. */
  backoffMs: number
  backoffMaxMs: number
}

/**
 * Returns the wait before the next attempt in milliseconds: exponential backoff, of which half is
 * random, so that many clients do not retry simultaneously.
 */
export function backoff(options: RetryOptions, attempt: number, random: () => number): number {
  const full = Math.min(options.backoffMaxMs, options.backoffMs * 2 ** (attempt - 1))
  return full / 2 + (random() * full) / 2
}

const WINDOW_MS = 60_000
const WAIT_MIN_MS = 100

/**
 * Returns the time in milliseconds until the rate-limit window of a 429 response ends. It is
 * computed from the response's own `date`, because this machine's clock may be wrong. That header
 * is rounded down to a second, so the wait is never too short.
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

/** Maximum number of attempts of a call that waits for the key of a new workspace. */
export const KEY_ATTEMPTS_MAX = 10
const KEY_WAIT_MS = { default: 5000, max: 60_000 }

/** Returns the time in milliseconds until a request that waits for a key is sent again. */
export function keyWait(headers: Headers, random: () => number): number {
  const after = Number(headers.get('retry-after') ?? Number.NaN) * 1000
  const wait = Number.isFinite(after) && after > 0 ? after : KEY_WAIT_MS.default
  return Math.min(wait, KEY_WAIT_MS.max) + random() * 250
}
