/**
 * Maximum size of a call with orders, in bytes with its envelope. Orders contain previous
 * transactions in hex, up to thirty of the largest.
 */
const ORDER_BYTES_MAX = 72 * 1024 * 1024
/** Maximum size of all rounds of eight signatures. */
const ROUND_BYTES_MAX = 8 * 1024 * 1024
/** Maximum size of one message of a run of three nodes, or of a test signature. */
const MESSAGE_BYTES_MAX = 2 * 1024 * 1024
const SHORT_BYTES_MAX = 256 * 1024
const BYTES_MAX: Readonly<Record<string, number>> = {
  '/peer/sign/open': ORDER_BYTES_MAX,
  '/peer/sign/round': ROUND_BYTES_MAX,
  '/peer/ceremony/message': MESSAGE_BYTES_MAX,
  '/peer/test/round': MESSAGE_BYTES_MAX,
}

/** Returns the maximum size of a peer's call. */
export const callBytesMax = (path: string): number => BYTES_MAX[path] ?? SHORT_BYTES_MAX

/**
 * Limits the memory of one peer's calls, from the moment that their length is known until they are
 * answered. A call's signature can only be verified when the call is complete, so this limit also
 * restricts a peer that signs nothing.
 */
export class MemoryBudget {
  /** Maximum memory of one peer's calls: the largest order, and other calls at the same time. */
  static readonly bytesMax = 96 * 1024 * 1024
  readonly #used = new Map<number, number>()

  /**
   * Reserves memory.
   * @returns a function that releases it once
   * @throws Error if there is not enough
   */
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
