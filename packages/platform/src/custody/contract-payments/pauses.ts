import { BALANCES_MAX, ChainError, type Registry } from '@custody/chains'
import type { Logger } from 'pino'
import type { Database } from '../../core/database/pool.ts'
import { assured, type Chain } from '../../core/engine/chain.ts'
import type { Environment } from '../../core/environment.ts'
import type { OwnAddress } from '../deposits/record.ts'
import { addressesAfter } from './addresses.ts'
import { look, type Balances } from './look.ts'

interface Services {
  environment: Pick<Environment, 'now'>
  database: Database
  registry: Registry
  log: Logger
}

/** Time in milliseconds for which a workspace without a deficit is not compared as a whole again. */
const COMPARED_MS = 600_000
/** Number of addresses that are read and compared at a time. */
const PART = BALANCES_MAX * 8
/** Number of unrecorded transfers that are asked for at a time. */
const ASKED_AT_ONCE = 20

/**
 * Decides for which workspaces a surplus is not credited now. A surplus is not always a stranger's coin:
 * in a database that lacks a transaction of ours, its coins are a surplus where they went.
 */
export class Pauses {
  readonly #services: Services
  readonly #chain: Chain & { balances: Balances }
  /** When each workspace was found without a deficit, by its id. */
  readonly #comparedAt = new Map<string, number>()

  constructor(services: Services, chain: Chain & { balances: Balances }) {
    this.#services = services
    this.#chain = chain
  }

  /**
   * Returns why surpluses of a workspace are not credited now; null: they are.
   * @param height a block that the scan has read
   */
  async reasonFor(workspace: string, height: number): Promise<string | null> {
    const { database, environment } = this.#services
    if (await database.one('select 1 from unadopted_steps where matters limit 1'))
      return 'records of the signer nodes are not adopted (custody reconcile)'
    if (await this.#hasUnrecorded(workspace))
      return 'the chain has a transaction of one of our own addresses that this database lacks (custody reconcile)'
    const comparedAt = this.#comparedAt.get(workspace)
    if (comparedAt !== undefined && Math.abs(environment.now() - comparedAt) < COMPARED_MS)
      return null
    const short = await this.#deficit(workspace, height)
    if (short !== null)
      return `the address ${short} holds less than the books, so the coins may only have moved (custody audit)`
    this.#comparedAt.set(workspace, environment.now())
    return null
  }

  /** Notes that an address of a workspace holds less than the books. */
  differs(workspace: string): void {
    this.#comparedAt.delete(workspace)
  }

  /**
   * Whether the chain has a transaction of one of the workspace's own addresses that this database lacks.
   * Notes of transactions that are on the chain no longer, or never were, are deleted.
   */
  async #hasUnrecorded(workspace: string): Promise<boolean> {
    const { database, log } = this.#services
    const { code } = this.#chain.network
    const noted = await database.query<{ txid: string }>(
      `select txid from unrecorded_transfers u where u.workspace_id = $1 and u.network = $2
         and not exists (select 1 from chain_transactions c where c.workspace_id = $1
           and c.network = $2 and c.hash = u.txid)
       order by noted_at, txid limit $3`,
      [workspace, code, ASKED_AT_ONCE],
    )
    for (const { txid } of noted) {
      if (await this.#isIncluded(txid)) return true
      log.warn(
        { network: code, txid },
        'a noted transaction of one of our own addresses is not on the chain; its note is deleted',
      )
      await database.query(
        'delete from unrecorded_transfers where workspace_id = $1 and network = $2 and txid = $3',
        [workspace, code, txid],
      )
    }
    return noted.length === ASKED_AT_ONCE
  }

  /** Whether a block contains a transaction; also true if no current endpoint denies it. */
  async #isIncluded(txid: string): Promise<boolean> {
    const { client } = this.#chain
    try {
      const { state } = await assured(
        this.#chain,
        () => client.status(txid),
        (answer) => answer.state !== 'included',
        1,
      )
      return state === 'included'
    } catch (error) {
      if (!(error instanceof ChainError)) throw error
      return true
    }
  }

  /** Returns an address of the workspace that holds less than the books in two looks; null: none. */
  async #deficit(workspace: string, height: number): Promise<string | null> {
    const { database } = this.#services
    for (let after = ''; ;) {
      const owners = await addressesAfter(database, this.#chain.network, {
        after,
        workspace,
        most: PART,
      })
      const last = owners.at(-1)
      if (!last) return null
      const short = await this.#short(await this.#short(owners, height), height)
      if (short[0]) return short[0].address
      after = last.address
    }
  }

  async #short(owners: readonly OwnAddress[], height: number): Promise<OwnAddress[]> {
    if (owners.length === 0) return []
    return (await look(this.#services, this.#chain, owners, height)).flatMap(({ owner, deficit }) =>
      deficit > 0n ? [owner] : [],
    )
  }
}
