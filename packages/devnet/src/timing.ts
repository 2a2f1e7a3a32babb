/** How a chain's time passes. */
export interface Timing {
  /** Blocks come on command only. */
  manual: boolean
  /** Milliseconds since 1970. */
  now: () => number
}

/** Blocks come at their pace, and the clock is this machine's. */
export const REAL_TIME: Timing = { manual: false, now: () => Date.now() }

/** Nothing moves unless it is told to: the clock stands at the start, and what follows the last block is one step later. */
export function manualTime(): Timing {
  const startMs = Date.now()
  return { manual: true, now: () => startMs }
}
