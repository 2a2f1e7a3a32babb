import type { RequestSender } from './transport.ts'
import type { Trust } from './trust/trust.ts'
import type { ReservesPage, ReservesProof, ReservesStatement } from './types.ts'
import type { VerifiedReserves } from './reserves/verify-reserves.ts'
import { query } from './wire.ts'

/** What the installation holds and owes, by its own word, and what proves that one is counted. */
export class Reserves {
  readonly #client: RequestSender
  readonly #trust: Trust | undefined

  constructor(client: RequestSender, trust: Trust | undefined) {
    this.#client = client
    this.#trust = trust
  }

  /** Newest first. */
  list(page: { page?: number; limit?: number } = {}): Promise<ReservesPage> {
    return this.#client.request('GET', `/dac/v1/reserves${query(page)}`)
  }

  /** The sub-account's own; nobody else's can be read. */
  proof(id: string): Promise<ReservesProof> {
    return this.#client.request('GET', `/dac/v1/reserves/${encodeURIComponent(id)}/proof`)
  }

  /**
   * Fetches a statement's proof and verifies both; nothing is believed but what the pinned nodes
   * signed. Compare `proven` with your own books, and `hash` with what others were shown.
   *
   * @param published the newest of {@link list} where none is given
   * @throws VerificationError; TypeError without `trust`, or where nothing was published
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
