/** How a chain's time passes. */
export interface Timing {
  /** Blocks come on command only. */
  manual: boolean
  /** Milliseconds since 1970. */
  now: () => number
}

/** Blocks come at their pace, and the clock is this machine's. */
export const REAL_TIME: Timing = { manual: false, now: () => Date.now() }

/** No block comes and the clock stands until a command says otherwise; a new block is one step later than the last. */
export function manualTime(): Timing {
  const startMs = Date.now()
  return { manual: true, now: () => startMs }
}
