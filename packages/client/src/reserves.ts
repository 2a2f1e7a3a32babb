import type { RequestSender } from './transport.ts'
import type { Trust } from './trust/trust.ts'
import type { ReservesPage, ReservesProof, ReservesStatement } from './types.ts'
import type { VerifiedReserves } from './reserves/verify-reserves.ts'
import { query } from './wire.ts'

/**
 * The installation's assets and liabilities by its own statements, and proofs that the own balance
 * is included.
 */
export class Reserves {
  readonly #client: RequestSender
  readonly #trust: Trust | undefined

  constructor(client: RequestSender, trust: Trust | undefined) {
    this.#client = client
    this.#trust = trust
  }

  /** Lists the published statements of reserves, newest first. */
  list(page: { page?: number; limit?: number } = {}): Promise<ReservesPage> {
    return this.#client.request('GET', `/dac/v1/reserves${query(page)}`)
  }

  /**
   * Returns the proof of the own sub-account. Proofs of other sub-accounts cannot be read.
   * @param id of the statement
   */
  proof(id: string): Promise<ReservesProof> {
    return this.#client.request('GET', `/dac/v1/reserves/${encodeURIComponent(id)}/proof`)
  }

  /**
   * Reads a statement's proof and verifies both. Nothing is trusted except what the pinned nodes
   * signed. Compare `proven` with your own books, and `hash` with the hash that others received.
   *
   * @param published the statement, by default the newest of {@link list}
   * @param holdings canonical JSON of the list of addresses, as published; without it the addresses
   *   are not verified
   * @throws VerificationError; TypeError without `trust`, or if no statement is published
   */
  async verify(published?: ReservesStatement, holdings?: string): Promise<VerifiedReserves> {
    if (!this.#trust) throw new TypeError('verifyReserves requires the option trust')
    const statement = published ?? (await this.list({ limit: 1 })).data[0]
    if (!statement) throw new TypeError('no statement of reserves is published')
    const { verifyReserves } = await import('./reserves/verify-reserves.ts')
    return verifyReserves({
      published: statement,
      proof: await this.proof(statement.id),
      trust: this.#trust,
      holdings,
    })
  }
}
