import { shared } from '../engine/shared.ts'

/** Time for which fee rates and other prices of a chain are cached, in milliseconds. */
export const RATES_FRESH_MS = 10_000

/** A query whose result is cached for a while. */
export interface Cached<T> {
  (): Promise<T>
  /** Time of the last successful query, in milliseconds since the Unix epoch; null: never. */
  readAt(): number | null
  /** Returns the result of the last successful query, if it is at most so many milliseconds old; otherwise null. */
  known(maxAgeMs: number): T | null
}

/**
 * Like {@link shared}, and also reports the time of the last successful query. Later failures do
 * not change that time.
 */
export function cached<T>(ask: () => Promise<T>, keptMs: number, clock: () => number): Cached<T> {
  let at: number | null = null
  let last: T | null = null
  const answer = shared(
    async () => {
      const value = await ask()
      at = clock()
      last = value
      return value
    },
    keptMs,
    clock,
  )
  return Object.assign(answer, {
    readAt: () => at,
    known: (maxAgeMs: number) => (at !== null && Math.abs(clock() - at) <= maxAgeMs ? last : null),
  })
}
