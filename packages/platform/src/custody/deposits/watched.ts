import type { Network } from '@custody/chains'
import type { Queryable } from '../../core/database/pool.ts'
import { Digests } from './digests.ts'

/** Number of addresses read per query. */
const PART = 20_000

/**
 * Thrown when another process or the operator has moved the scan of a network since this process
 * last wrote it. Nothing was written.
 */
export class TakenOver extends Error {
  constructor(network: Network) {
    super(`the scan of ${network.code} was taken over`)
    this.name = 'TakenOver'
  }
}

/**
 * Remembers which addresses of one network belong to the platform, so that the database is queried
 * only for those addresses of a block that may be ours, usually none. All addresses are read once.
 * Before each use, the database returns the addresses registered since, so an address that was
 * committed before that query is never missed, whichever process registered it. New addresses are
 * found by transaction ids, not by times or sequence numbers, whose order differs from the order of
 * commits: `below` of a snapshot is the oldest transaction that was still running, and everything
 * that older transactions did is visible in this and every later snapshot.
 *
 * This holds within one history of the database. A promoted standby or a restored backup may assign
 * the ids of lost transactions again. A mark therefore counts only together with the scan's token,
 * which was new when the mark was made and is written by no other process: a database that has the
 * token contains everything that was committed by then. Each statement here checks the token.
 */
export class WatchedAddresses {
  readonly #network: Network
  #cache: Digests | null = null
  /** Everything registered by transactions below this id is known. */
  #since: string
  /** Mark of the last write of the token: later reads include everything below it. */
  #below: string

  /**
   * Creates the cache without addresses; all are read at the first use.
   * @param below mark of the snapshot in which the scan's first token was written
   */
  constructor(network: Network, below: string) {
    this.#network = network
    this.#since = below
    this.#below = below
  }

  /**
   * Stores the mark after the scan's token was changed.
   * @param below mark of the snapshot in which the token was written
   */
  moved(below: string): void {
    this.#below = below
  }

  /**
   * Reads the addresses registered until now. Afterwards {@link among} is correct for payments made
   * before this call.
   * @param token the last token that was written
   * @throws TakenOver
   */
  async learn(database: Queryable, token: string): Promise<void> {
    const existing = (this.#cache ??= await this.#all(database, token))
    // Rows with a transaction id in the future were copied from another server; they already
    // existed when all addresses were read.
    const row = await database.one<{ isOurs: boolean | null; fresh: string | null }>(
      `select lease_token = $2 and pg_snapshot_xmin(pg_current_snapshot()) >= $3::xid8 "isOurs", (
         select string_agg(address, e'\\n') from chain_addresses where network = $1
           and registered >= $3::xid8
           and registered < pg_snapshot_xmax(pg_current_snapshot())) fresh
       from network_scans where network = $1`,
      [this.#network.code, token, this.#since],
    )
    if (row?.isOurs !== true) throw new TakenOver(this.#network)
    if (row.fresh !== null) existing.add(row.fresh)
    this.#since = this.#below
  }

  /**
   * Filters addresses: returns all that belong to the platform, and rarely another one.
   * @throws if {@link learn} was not called before
   */
  among(addresses: readonly string[]): string[] {
    const existing = this.#cache
    if (existing === null) throw new Error('the list of our addresses is not loaded yet')
    return addresses.filter((address) => existing.mayHave(address))
  }

  async #all(database: Queryable, token: string): Promise<Digests> {
    const existing = new Digests()
    for (let last: string | null = ''; last !== null;) {
      const part:
        | { isOurs: boolean | null; addresses: string | null; last: string | null }
        | undefined = await database.one(
        `select (select lease_token = $2 from network_scans where network = $1) "isOurs",
           string_agg(address, e'\\n') addresses,
           max(address) last
         from (select address from chain_addresses where network = $1 and address > $3
           order by address limit ${PART}) part`,
        [this.#network.code, token, last],
      )
      if (part?.isOurs !== true) throw new TakenOver(this.#network)
      if (part.addresses !== null) existing.add(part.addresses)
      last = part.last
    }
    return existing
  }
}
