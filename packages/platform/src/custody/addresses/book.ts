import type { Network } from '@custody/chains'
import type { Owner } from '../../core/engine/chain.ts'
import type { Addresses } from '../../core/engine/interfaces/addresses.ts'
import type { Database } from '../../core/database/pool.ts'
import type { Networks } from '../../core/engine/networks.ts'
import type { WorkspaceKeys } from '../../core/signing/keys.ts'
import type { Logger } from 'pino'
import { ensureChange, ensureOmnibus } from './derive.ts'
import { commitScanStart } from './start-scan.ts'

interface Services {
  database: Database
  networks: Networks
  keys: WorkspaceKeys
  addresses: Addresses
  log: Logger
}

const KEPT_MAX = 100_000

/**
 * Finds and creates the platform's addresses. It caches addresses, which never change, and which
 * networks are scanned, because every transfer needs them. The size of the cache is limited; a full
 * cache is cleared completely.
 */
export class AddressBook implements Addresses {
  readonly #services: () => Services
  readonly #cache = new Map<string, string>()
  readonly #started = new Map<string, Promise<void>>()

  /**
   * Creates the address book.
   * @param services returns the services, which are created after the book because chains depend on
   *   it
   */
  constructor(services: () => Services) {
    this.#services = services
  }

  omnibus(network: Network, owner: Owner): Promise<string> {
    return this.#remembered(`omnibus ${network.code} ${owner.subAccountId}`, (services) =>
      ensureOmnibus(services, services.database, network, owner),
    )
  }

  change(network: Network, owner: Owner): Promise<string> {
    return this.#remembered(`change ${network.code} ${owner.subAccountId}`, (services) =>
      ensureChange(services, services.database, network, owner),
    )
  }

  async startScan(network: Network): Promise<void> {
    let starting = this.#started.get(network.code)
    if (!starting) {
      starting = commitScanStart(this.#services(), network)
      this.#started.set(network.code, starting)
      starting.catch(() => this.#started.delete(network.code))
    }
    await starting
  }

  async #remembered(name: string, find: (services: Services) => Promise<string>): Promise<string> {
    const existing = this.#cache.get(name)
    if (existing !== undefined) return existing
    if (this.#cache.size >= KEPT_MAX) this.#cache.clear()
    const address = await find(this.#services())
    this.#cache.set(name, address)
    return address
  }
}
