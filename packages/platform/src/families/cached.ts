import { shared } from '../engine/shared.ts'

/** How long fee rates and other prices of a chain are good for. */
export const RATES_FRESH_MS = 10_000

/** One question, whose answer is kept for a while. */
export interface Cached<T> {
  (): Promise<T>
  /** When it was last answered, milliseconds since the Unix Epoch; null: never. */
  readAt(): number | null
}

/**
 * As {@link shared}, and says when it was last answered: a later failure changes nothing of that.
 */
export function cached<T>(ask: () => Promise<T>, keptMs: number, clock: () => number): Cached<T> {
  let at: number | null = null
  const answer = shared(
    async () => {
      const value = await ask()
      at = clock()
      return value
    },
    keptMs,
    clock,
  )
  return Object.assign(answer, { readAt: () => at })
}
