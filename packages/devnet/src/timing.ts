/** How a chain's time passes. */
export interface Timing {
  /** Blocks come on command only. */
  manual: boolean
  /** How many times as fast blocks come while something waits for them. */
  pace: number
  /** Until it ends no block comes by itself, however many wait for one. */
  halted?: boolean
  /** Milliseconds since 1970. */
  now: () => number
}

/** Blocks come at their pace, and the clock is this machine's. */
export const REAL_TIME: Timing = { manual: false, pace: 1, now: () => Date.now() }

/** As {@link REAL_TIME}, with busy chains so many times as fast: their blocks' times run ahead of the clock. */
export const quickTime = (pace: number): Timing => ({ ...REAL_TIME, pace })

/**
 * No block comes and the clock stands until a command says otherwise; a new block is one step later than the last.
 * @param now another clock, for who wants the same blocks each time
 */
export function manualTime(now?: () => number): Timing {
  const startMs = Date.now()
  return { manual: true, pace: 1, now: now ?? (() => startMs) }
}
