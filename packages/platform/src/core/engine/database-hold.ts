import { ApiError } from '../errors.ts'

/**
 * Why the database is held. `outdated`: the signer nodes have records that the database lacks, and
 * the operator must run the reconciliation.
 */
export interface HoldReason {
  cause: 'comparing' | 'unheard' | 'outdated' | 'adopting' | 'adopted'
  reason: string
}

/**
 * Stops all writes until the database is known to be complete. With a database older than the
 * signer nodes' records, the platform would assign addresses a second time, treat change as
 * deposits and build on spent coins.
 */
export class DatabaseHold {
  #held: HoldReason | null = null
  readonly #shortage: () => string | null

  /**
   * Creates the hold of a process.
   * @param shortage returns why no new work is accepted although the database is not held, or null;
   *   pending work continues
   */
  constructor(shortage: () => string | null = () => null) {
    this.#shortage = shortage
  }

  get held(): HoldReason | null {
    return this.#held
  }

  /** Reason why nothing is written, or null if the database is not held. */
  get because(): string | null {
    return this.#held?.reason ?? null
  }

  /** Reason why no new work is accepted, if storage space is short; otherwise null. */
  get shortage(): string | null {
    return this.#shortage()
  }

  /** Whether records are being adopted. No comparison or other work may run during that time. */
  get isAdopting(): boolean {
    return this.#held?.cause === 'adopting'
  }

  set(held: HoldReason | null): void {
    this.#held = held
  }

  /**
   * Checks that the database is not held.
   * @throws ApiError `UNAVAILABLE` while the database is held
   */
  assertNone(): void {
    if (this.#held !== null)
      throw new ApiError('UNAVAILABLE', `changes are suspended: ${this.#held.reason}`)
  }

  /**
   * Checks that new work may be accepted.
   * @throws ApiError `UNAVAILABLE` while the database is held or storage space is short
   */
  assertOpen(): void {
    this.assertNone()
    const { shortage } = this
    if (shortage !== null)
      throw new ApiError('UNAVAILABLE', `no new requests are accepted now: ${shortage}`)
  }

  /**
   * Marks the database as held while `work` adopts records. Afterwards the next comparison decides
   * whether it stays held.
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
