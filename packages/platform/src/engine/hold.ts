import { ApiError } from '../errors.ts'

/**
 * Why the database is held. `outdated`: the nodes know more than it; the operator must run the
 * reconciliation.
 */
export interface Held {
  cause: 'comparing' | 'unheard' | 'outdated' | 'adopting' | 'adopted'
  reason: string
}

/**
 * A database that is older than the nodes' records must not go on working: it would hand out
 * addresses a second time, take change for deposits, and build on coins that are spent. Until it is
 * known to be complete nothing is written.
 */
export class Hold {
  #held: Held | null = null
  readonly #shortage: () => string | null

  /**
   * @param shortage why nothing new is begun although nothing is held: what is under way goes on
   */
  constructor(shortage: () => string | null = () => null) {
    this.#shortage = shortage
  }

  get held(): Held | null {
    return this.#held
  }

  /** Why nothing is written; null where everything goes on. */
  get because(): string | null {
    return this.#held?.reason ?? null
  }

  /** Why nothing new is begun, where there is no room for it. */
  get shortage(): string | null {
    return this.#shortage()
  }

  /** The records are being adopted: nothing else compares or works. */
  get isAdopting(): boolean {
    return this.#held?.cause === 'adopting'
  }

  set(held: Held | null): void {
    this.#held = held
  }

  /** @throws ApiError `UNAVAILABLE` while nothing is written */
  assertNone(): void {
    if (this.#held !== null)
      throw new ApiError('UNAVAILABLE', `changes are suspended: ${this.#held.reason}`)
  }

  /**
   * @throws ApiError `UNAVAILABLE` while nothing is written, and while there is no room for
   *   anything new
   */
  assertOpen(): void {
    this.assertNone()
    const { shortage } = this
    if (shortage !== null)
      throw new ApiError('UNAVAILABLE', `no new requests are accepted now: ${shortage}`)
  }

  /**
   * Marks that records are being adopted; afterwards the next comparison decides whether the
   * database stays held.
   */
  async during<T>(reason: string, work: () => Promise<T>): Promise<T> {
    this.#held = { cause: 'adopting', reason }
    try {
      return await work()
    } finally {
      this.#held = { cause: 'adopted', reason }
    }
  }
}
