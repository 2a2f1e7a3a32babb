import { setTimeout as sleep } from 'node:timers/promises'

/** Maximum time for which an order waits for the policies of a silent peer, in milliseconds. */
const ATTEMPT_MS = 1500
/** Time between two attempts to read a peer that has not answered yet, in milliseconds. */
const PERIOD_MS = 30_000

/**
 * Attempts to read peers before orders are judged. A peer that accepts a call and does not answer
 * delays the orders of 1.5 seconds, and no further ones for half a minute.
 */
export class Attempts {
  readonly #monotonic: () => number
  readonly #last = new Map<number, { done: Promise<void>; since: number }>()

  constructor(monotonic: () => number) {
    this.#monotonic = monotonic
  }

  /**
   * Reads a peer, or joins the last attempt.
   * @param read reads the peer; it never fails
   */
  async make(node: number, read: () => Promise<void>): Promise<void> {
    const now = this.#monotonic()
    const last = this.#last.get(node)
    if (last && now - last.since < PERIOD_MS) return last.done
    const reading = read().finally(() => {
      this.#last.delete(node)
    })
    const done = Promise.race([reading, sleep(ATTEMPT_MS, undefined, { ref: false })])
    this.#last.set(node, { done, since: now })
    return done
  }
}
