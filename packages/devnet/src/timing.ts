import { createHash } from 'node:crypto'

/** Timing of a chain's blocks. */
export interface Timing {
  /** Blocks are produced only on command. */
  manual: boolean
  /** Factor by which blocks are faster while a transaction waits for them. */
  pace: number
  /** While true, no automatic block is produced, even if transactions wait. */
  halted?: boolean
  /** Returns Unix milliseconds. */
  now: () => number
  /** Source of the bytes that make blocks distinct; by default the machine's random source. */
  bytes?: (length: number) => Buffer
}

/** Blocks are produced automatically, and the clock is this machine's. */
export const REAL_TIME: Timing = { manual: false, pace: 1, now: () => Date.now() }

/**
 * Like {@link REAL_TIME}, but busy chains are `pace` times as fast. Their block times run ahead of
 * the clock `now`.
 */
export const quickTime = (pace: number, now = REAL_TIME.now): Timing => ({
  ...REAL_TIME,
  pace,
  now,
})

/**
 * No block is produced and the clock stands still until a command is sent; each new block is one
 * step later than the previous one.
 */
export function manualTime(): Timing {
  const startMs = Date.now()
  return { manual: true, pace: 1, now: () => startMs }
}

/** Like {@link manualTime}, but with another clock, and with identical blocks in each run. */
export function toldTime(now: () => number): Timing {
  let count = 0
  const bytes = (length: number): Buffer =>
    createHash('sha256').update(`block ${count++}`).digest().subarray(0, length)
  return { manual: true, pace: 1, now, bytes }
}
