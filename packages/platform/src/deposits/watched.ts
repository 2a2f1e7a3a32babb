import type { Network } from '@custody/chains'
import type { Queryable } from '../database/pool.ts'
import { Digests } from './digests.ts'

/** Addresses that are read at a time. */
const PART = 20_000

/**
 * The scan of a network is not as this process left it: another process, or the operator, has moved
 * it. Nothing was written.
 */
export class TakenOver extends Error {
  constructor(network: Network) {
    super(`the scan of ${network.code} was taken over`)
    this.name = 'TakenOver'
  }
}

/**
 * Which addresses of one network are ours, remembered, so that the database is asked only about
 * those of a block that may be: mostly about none. It is read once, and for each look the database
 * says what was registered since, so that an address which was committed before that question is
 * never missed, whoever registered it. What was registered since is told by transactions, not by
 * times or numbers, which come in another order than commits: `below` of a snapshot is the first
 * transaction that was not over, and whatever older ones did is seen by it and by every later one.
 *
 * That holds in one history of the database. A standby that was promoted, or a backup, may give the
 * numbers of lost transactions again. So a mark counts only together with the scan's token, which
 * was new when the mark was made and is written by nobody else: a database that has the token has
 * all that was over then. It is asked for by each statement here.
 */
export class WatchedAddresses {
  readonly #network: Network
  #known: Digests | null = null
  /** What transactions below this registered is known. */
  #since: string
  /** The mark of the last write of the token: what is read later has all from before it. */
  #below: string

  /** @param below of the snapshot by which the scan's first token was written */
  constructor(network: Network, below: string) {
    this.#network = network
    this.#since = below
    this.#below = below
  }

  /** The scan was given another token. @param below of the snapshot by which it was written */
  moved(below: string): void {
    this.#below = below
  }

  /**
   * Learns what was registered until now: what {@link among} says after it is right for payments
   * that were made before it was called.
   * @param token that was written last @throws TakenOver
   */
  async learn(database: Queryable, token: string): Promise<void> {
    const known = (this.#known ??= await this.#all(database, token))
    // Rows of a transaction that is still to come were copied from another server: they were there
    // when all was read.
    const row = await database.one<{ isOurs: boolean | null; fresh: string | null }>(
      `select lease_token = $2 and pg_snapshot_xmin(pg_current_snapshot()) >= $3::xid8 "isOurs", (
         select string_agg(address, e'\\n') from chain_addresses where network = $1 and registered >= $3::xid8
           and registered < pg_snapshot_xmax(pg_current_snapshot())) fresh
       from network_scans where network = $1`,
      [this.#network.code, token, this.#since],
    )
    if (row?.isOurs !== true) throw new TakenOver(this.#network)
    if (row.fresh !== null) known.add(row.fresh)
    this.#since = this.#below
  }

  /**
   * Of some addresses those that may be ours: all that are, and hardly another. @throws before
   * {@link learn} was called
   */
  among(addresses: readonly string[]): string[] {
    const known = this.#known
    if (known === null) throw new Error('the list of our addresses is not loaded yet')
    return addresses.filter((address) => known.mayHave(address))
  }

  async #all(database: Queryable, token: string): Promise<Digests> {
    const known = new Digests()
    for (let last: string | null = ''; last !== null;) {
      const part:
        | { isOurs: boolean | null; addresses: string | null; last: string | null }
        | undefined = await database.one(
        `select (select lease_token = $2 from network_scans where network = $1) "isOurs", string_agg(address, e'\\n') addresses,
           max(address) last
         from (select address from chain_addresses where network = $1 and address > $3 order by address limit ${PART}) part`,
        [this.#network.code, token, last],
      )
      if (part?.isOurs !== true) throw new TakenOver(this.#network)
      if (part.addresses !== null) known.add(part.addresses)
      last = part.last
    }
    return known
  }
}
