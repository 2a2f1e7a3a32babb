import { bytesToHex } from '@noble/hashes/utils.js'
import { base58 } from '@scure/base'

/**
 * Minimum and maximum number of blocks, of the 150 of its blockhash, that a transaction must have
 * left when the nodes begin to sign it.
 */
const BLOCKS_LEAST = 50
const BLOCKS_MOST = 100
/**
 * Minimum time in milliseconds for signing and sending; otherwise twice the longest recent
 * duration.
 */
const TIME_LEAST_MS = 10_000
const TIMES_KEPT = 32
const BLOCKHASHES_KEPT = 1000
/** Interval in milliseconds over which the block rate is measured. */
const MEASURED_MS = 20_000
const BLOCK_MS_USUAL = 400
const BLOCK_MS_LEAST = 100

/**
 * Computes how many blocks of a transaction's lifetime must be left for it to be signed and sent in
 * time. The lifetime is counted in blocks, and signing takes time, so both the duration of the last
 * transactions and the block rate are measured; slots went from 400 to 200 ms (SIMD-0525).
 */
export class Lives {
  readonly #now: () => number
  /**
   * Time at which each blockhash was received, or at which signing of a transaction with it began;
   * by blockhash.
   */
  readonly #answered = new Map<string, { at: number; height: number; isSigning: boolean }>()
  readonly #took: number[] = []
  #from: { height: number; at: number } | null = null
  #blockMs = BLOCK_MS_USUAL

  constructor(now: () => number) {
    this.#now = now
  }

  /**
   * Records a new blockhash.
   * @param height last block of its lifetime
   */
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
   * Records that the nodes begin to sign a transaction whose lifetime ends at a height. Its earlier
   * wait in a queue does not count as signing time: otherwise a queue would make more transactions
   * be built again, and grow because of that.
   */
  signing(validUntil: number): void {
    for (const each of this.#answered.values()) {
      if (each.height !== validUntil || each.isSigning) continue
      each.at = this.#now()
      each.isSigning = true
    }
  }

  /**
   * Records that a signed transaction was sent. Later calls for the same transaction are ignored.
   * @param raw signed bytes in hex
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

  /**
   * Number of blocks that must be left, limited so that a transaction that was just built is never
   * refused.
   */
  get blocksNeeded(): number {
    const ms = Math.max(TIME_LEAST_MS, 2 * Math.max(0, ...this.#took))
    return Math.min(BLOCKS_MOST, Math.max(BLOCKS_LEAST, Math.ceil(ms / this.#blockMs)))
  }
}
