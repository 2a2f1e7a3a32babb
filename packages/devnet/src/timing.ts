import { createHash } from 'node:crypto'

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
  /** What makes one block unlike another; without it the machine's randomness. */
  bytes?: (length: number) => Buffer
}

/** Blocks come at their pace, and the clock is this machine's. */
export const REAL_TIME: Timing = { manual: false, pace: 1, now: () => Date.now() }

/**
 * As {@link REAL_TIME}, with busy chains `pace` times as fast: their blocks' times run ahead of the
 * clock `now`.
 */
export const quickTime = (pace: number, now = REAL_TIME.now): Timing => ({
  ...REAL_TIME,
  pace,
  now,
})

/**
 * No block comes and the clock stands until a command says otherwise; a new block is one step later
 * than the last.
 */
export function manualTime(): Timing {
  const startMs = Date.now()
  return { manual: true, pace: 1, now: () => startMs }
}

/** As {@link manualTime}, by another clock, and each time with the same blocks. */
export function toldTime(now: () => number): Timing {
  let count = 0
  const bytes = (length: number): Buffer =>
    createHash('sha256').update(`block ${count++}`).digest().subarray(0, length)
  return { manual: true, pace: 1, now, bytes }
}
