import { LIMITS } from '@custody/policy'

/** Interval at which a transfer is judged again that no signer node judges now, in milliseconds. */
const LATER_MS = 5000
/**
 * Longest time until a transfer is judged again for which a window is full, in milliseconds. Events
 * wake it earlier, except those that reach the nodes without the platform.
 */
const FULL_MS_MAX = 600_000
/** Times of a node are whole seconds, and a step leaves a window within the second that it states. */
const SECOND_MS = 1000
/** Longest time in milliseconds after which a window has room: its length and its slack. */
const WINDOW_MS_MAX = (LIMITS.windowHours * 3600 + LIMITS.windowSlackS) * SECOND_MS

/**
 * Returns the time in milliseconds until a transfer is judged again that the policy does not allow
 * now.
 * @param freesAt Unix seconds from which the nodes would allow it, of those that state a full window;
 *   null: never, as the windows are now; undefined: the reason is not a full window
 * @param nowMs clock of the platform, in Unix ms
 */
export function waitMs(freesAt: readonly (number | null)[] | undefined, nowMs: number): number {
  if (freesAt === undefined) return LATER_MS
  // A time that no window can have is no time at all: the node is wrong.
  const waits = freesAt.flatMap((at) => {
    const ms = at === null ? Infinity : at * SECOND_MS - nowMs
    return ms <= WINDOW_MS_MAX ? [ms + SECOND_MS] : []
  })
  const earliest = Math.min(FULL_MS_MAX, ...waits)
  // The clock of the node is behind, or another pair has counted more.
  return earliest <= 0 ? LATER_MS : earliest
}

/** Judgements of waiting transfers that a workspace has per second, and at most at a time. */
const RATE = 10
const BURST = 20
/** Greatest number of workspaces that are remembered. */
const REMEMBERED_MAX = 10_000

/**
 * Limits how often the waiting transfers of a workspace are judged again, so that their number does
 * not delay other workspaces. The first judgement of a transfer is not counted.
 */
export class JudgePace {
  readonly #buckets = new Map<string, { left: number; at: number }>()

  /** Returns whether a waiting transfer may be judged now. @param nowMs Unix ms */
  take(workspace: string, nowMs: number): boolean {
    const { left, at } = this.#buckets.get(workspace) ?? { left: BURST, at: nowMs }
    const filled = Math.min(BURST, left + (Math.max(0, nowMs - at) * RATE) / SECOND_MS)
    if (this.#buckets.size >= REMEMBERED_MAX) this.#buckets.clear()
    this.#buckets.set(workspace, { left: filled >= 1 ? filled - 1 : filled, at: nowMs })
    return filled >= 1
  }
}
