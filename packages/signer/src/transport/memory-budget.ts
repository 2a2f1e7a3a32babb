/**
 * What a node may say in a call, in bytes with its envelope. Orders show previous transactions in
 * hex, thirty of the largest.
 */
const ORDER_BYTES_MAX = 72 * 1024 * 1024
/** All rounds of eight signatures. */
const ROUND_BYTES_MAX = 8 * 1024 * 1024
/** One message of a run of three, or of a test signature. */
const MESSAGE_BYTES_MAX = 2 * 1024 * 1024
const SHORT_BYTES_MAX = 256 * 1024
const BYTES_MAX: Readonly<Record<string, number>> = {
  '/peer/sign/open': ORDER_BYTES_MAX,
  '/peer/sign/round': ROUND_BYTES_MAX,
  '/peer/ceremony/message': MESSAGE_BYTES_MAX,
  '/peer/test/round': MESSAGE_BYTES_MAX,
}

/** The most that a peer's call may hold. */
export const callBytesMax = (path: string): number => BYTES_MAX[path] ?? SHORT_BYTES_MAX

/**
 * How much of one peer's calls is in memory at a time, from the moment that their length is known
 * until they are answered. A call's signature can be checked only when it is here whole, so that
 * this is what bounds a peer that signs nothing.
 */
export class MemoryBudget {
  /** The largest order, and what may come beside it. */
  static readonly bytesMax = 96 * 1024 * 1024
  readonly #used = new Map<number, number>()

  /** @returns gives the room back, once. @throws Error where there is none */
  take(node: number, bytes: number): () => void {
    const used = this.#used.get(node) ?? 0
    if (used + bytes > MemoryBudget.bytesMax)
      throw new Error(`more than ${MemoryBudget.bytesMax} bytes of calls at the same time`)
    this.#used.set(node, used + bytes)
    let isReleased = false
    return () => {
      if (!isReleased) this.#used.set(node, this.#used.get(node)! - bytes)
      isReleased = true
    }
  }
}
