import { bytesToHex } from '@noble/hashes/utils.js'
import { base58 } from '@scure/base'

/**
 * Blocks of its blockhash's 150 that a transaction must have left when the nodes begin to sign it,
 * at least and at most.
 */
const BLOCKS_LEAST = 50
const BLOCKS_MOST = 100
/** Signing and sending are given so long at least, and twice as long as they took lately. */
const TIME_LEAST_MS = 10_000
const TIMES_KEPT = 32
const BLOCKHASHES_KEPT = 1000
/** The speed of blocks is measured over so long. */
const MEASURED_MS = 20_000
const BLOCK_MS_USUAL = 400
const BLOCK_MS_LEAST = 100

/**
 * How many blocks must be left of a transaction's life for it to be signed and sent in time. The
 * life is counted in blocks, and signing takes time: both what the last transactions took and how
 * fast blocks come are measured, as slots went from 400 to 200 ms (SIMD-0525).
 */
export class Lives {
  readonly #now: () => number
  /**
   * When each blockhash was answered, or signing of a transaction with it began; by the blockhash.
   */
  readonly #answered = new Map<string, { at: number; height: number; isSigning: boolean }>()
  readonly #took: number[] = []
  #from: { height: number; at: number } | null = null
  #blockMs = BLOCK_MS_USUAL

  constructor(now: () => number) {
    this.#now = now
  }

  /** A blockhash was answered whose life ends with the block at a height. */
  began(blockhash: string, height: number): void {
    const at = this.#now()
    const key = bytesToHex(base58.decode(blockhash))
    if (!this.#answered.has(key)) this.#answered.set(key, { at, height, isSigning: false })
    const [oldest] = this.#answered.keys()
    if (this.#answered.size > BLOCKHASHES_KEPT && oldest !== undefined)
      this.#answered.delete(oldest)
    if (this.#from === null || at < this.#from.at || height < this.#from.height)
      this.#from = { height, at }
    if (at - this.#from.at < MEASURED_MS) return
    const blocks = height - this.#from.height
    if (blocks > 0)
      this.#blockMs = Math.min(
        BLOCK_MS_USUAL,
        Math.max(BLOCK_MS_LEAST, (at - this.#from.at) / blocks),
      )
    this.#from = { height, at }
  }

  /**
   * The nodes begin to sign a transaction whose life ends at a height. What it has waited until
   * then is no signing: counted as such, a queue would have more transactions built again, and grow
   * by that.
   */
  signing(validUntil: number): void {
    for (const each of this.#answered.values()) {
      if (each.height !== validUntil || each.isSigning) continue
      each.at = this.#now()
      each.isSigning = true
    }
  }

  /**
   * A signed transaction is sent; later times of the same one say nothing about its signing. @param
   * raw hex
   */
  sent(raw: string): void {
    for (const [blockhash, { at }] of this.#answered) {
      if (!raw.includes(blockhash)) continue
      this.#answered.delete(blockhash)
      this.#took.push(Math.max(0, this.#now() - at))
      if (this.#took.length > TIMES_KEPT) this.#took.shift()
      return
    }
  }

  /** What must be left; never so much that a transaction that was just built is refused. */
  get blocksNeeded(): number {
    const ms = Math.max(TIME_LEAST_MS, 2 * Math.max(0, ...this.#took))
    return Math.min(BLOCKS_MOST, Math.max(BLOCKS_LEAST, Math.ceil(ms / this.#blockMs)))
  }
}
