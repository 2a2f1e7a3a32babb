/** Longest time in milliseconds for which a withdrawal matters: no authorisation lives as long. */
const KEPT_MS = 600_000
/** Hexadecimal digits of a hash that are kept: 52 bits, which a number holds exactly. */
const DIGITS = 13

/** The platform's orders, as far as this node must remember them. */
export class OrderedTransactions {
  /** Whether only orders with the platform's authorisation are signed. */
  isAuthorisationRequired = false
  /**
   * Transactions that this node has signed, or has begun to. Two of them may have the same first digits
   * (probability 10^-4 at a million): then one that was not signed counts as signed, which only delays it.
   */
  readonly #bound = new Set<number>()
  /** Hash of a transaction → latest order of it that is withdrawn, Unix ms of the platform's clock. */
  readonly #withdrawn = new Map<string, number>()

  bind(hash: string): void {
    this.#bound.add(prefixOf(hash))
  }
  isBound(hash: string): boolean {
    return this.#bound.has(prefixOf(hash))
  }

  withdraw(hashes: readonly string[], until: number): void {
    for (const [hash, earlier] of this.#withdrawn) {
      if (earlier >= until - KEPT_MS) break
      this.#withdrawn.delete(hash)
    }
    for (const hash of hashes) {
      const latest = Math.max(until, this.#withdrawn.get(hash) ?? 0)
      // Deleted first, so that the oldest remain in front.
      this.#withdrawn.delete(hash)
      this.#withdrawn.set(hash, latest)
    }
  }
  isWithdrawn(hash: string, issuedAt: number): boolean {
    return issuedAt <= (this.#withdrawn.get(hash) ?? -1)
  }
}

const prefixOf = (hash: string): number => Number.parseInt(hash.slice(0, DIGITS), 16)
