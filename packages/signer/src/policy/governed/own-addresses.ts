import {
  addressAt,
  CHANGE_INDEX,
  policyRegistry,
  TANK_SUB_ACCOUNT,
  type Network,
  type Registry,
} from '@custody/chains'
import type { CertifiedKey } from '../../keys/keyring.ts'
import type { Log } from '../../log.ts'
import { reason } from '../../log.ts'
import type { Store } from '../../store/index.ts'
import { ADDRESSES_DEFAULT } from '../../store/address-marks.ts'

/**
 * Addresses that are derived without giving way to other work. One takes about half a millisecond of
 * processor time.
 */
const SLICE = 10
/** Milliseconds between two slices, so that one workspace does not delay the signatures of others. */
const PAUSE_MS = 10
/** Greatest number of addresses of a workspace on one network; beyond it, the set stays incomplete. */
const ADDRESSES_MAX = 200_000

interface Parts {
  registry: Registry
  store: Store
  keyOf(workspace: string, curve: Network['curve']): Promise<CertifiedKey>
  log: Log
}

/** Addresses of one workspace on one network. */
interface AddressSet {
  /** Sub-account by the payment key of an address. */
  readonly owners: Map<string, number>
  /** Number of deposit addresses that are in the set, by sub-account. */
  readonly derived: Map<number, number>
  running: Promise<void> | null
  /** There are more addresses than a set may have. */
  isFull: boolean
}

/** Limits that tests lower. */
interface Limits {
  /** Deposit addresses of each sub-account that count without an announcement. */
  deposits?: number
  addresses?: number
}

/**
 * The addresses of each workspace, so that a node decides by itself whether a destination is an own
 * address: the omnibus, deposit and change addresses of the enrolled sub-accounts, and the gas tank's.
 * Of the deposit addresses, those below the recorded mark belong to the set. They are derived when a
 * policy first needs them.
 */
export class OwnAddresses {
  readonly #parts: Parts
  readonly #sets = new Map<string, AddressSet>()
  readonly #addresses: ReturnType<typeof policyRegistry>
  readonly #limits: Required<Limits>

  constructor(parts: Parts, limits: Limits = {}) {
    this.#parts = parts
    this.#limits = { deposits: ADDRESSES_DEFAULT, addresses: ADDRESSES_MAX, ...limits }
    this.#addresses = policyRegistry(parts.registry)
  }

  /**
   * Returns the index of the sub-account that an address belongs to, whatever its tag is; null: it is
   * not an own address; undefined: the set is not complete yet, and is being derived; `unknown`: the
   * workspace has too many addresses.
   */
  ownerOf(workspace: string, code: string, address: string): number | null | undefined | 'unknown' {
    const network = this.#parts.registry.network(code)
    if (!network) return undefined
    const set = this.#setOf(workspace, code)
    const owner = set.owners.get(this.#nameOf(network, address))
    if (owner !== undefined) return owner
    if (set.isFull) return 'unknown'
    if (this.#missing(workspace, network, set).next().done === true) return null
    set.running ??= this.#derive(workspace, network, set)
    return undefined
  }

  /** Begins to derive a set, and resolves when it is complete, or after a time in milliseconds. */
  async ready(workspace: string, code: string, withinMs: number): Promise<void> {
    this.ownerOf(workspace, code, '')
    const { running } = this.#setOf(workspace, code)
    if (running === null) return
    let timer: NodeJS.Timeout | undefined
    const timeout = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, withinMs)
    })
    await Promise.race([running, timeout])
    clearTimeout(timer)
  }

  #setOf(workspace: string, code: string): AddressSet {
    const name = JSON.stringify([workspace, code])
    const existing = this.#sets.get(name)
    if (existing) return existing
    const set: AddressSet = { owners: new Map(), derived: new Map(), running: null, isFull: false }
    this.#sets.set(name, set)
    return set
  }

  /** All addresses from which the same key can spend have one name. */
  #nameOf({ code }: Network, address: string): string {
    const account = this.#addresses.splitAddress(code, address)?.address ?? address
    return this.#addresses.paymentKey(code, account)
  }

  /** Yields the paths that are not in the set yet. */
  *#missing(
    workspace: string,
    network: Network,
    { derived }: AddressSet,
  ): Generator<{ sub: number; index: number }> {
    const { subAccountIndexes, addressMarks } = this.#parts.store.state
    for (const sub of [TANK_SUB_ACCOUNT, ...(subAccountIndexes.get(workspace) ?? [])]) {
      if (!derived.has(sub)) yield { sub, index: CHANGE_INDEX }
      const below =
        sub === TANK_SUB_ACCOUNT
          ? 1
          : addressMarks.get(workspace, network.code, sub, this.#limits.deposits)
      for (let index = derived.get(sub) ?? 0; index < below; index++) yield { sub, index }
    }
  }

  async #derive(workspace: string, network: Network, set: AddressSet): Promise<void> {
    const { log, keyOf } = this.#parts
    try {
      const key = await keyOf(workspace, network.curve)
      for (let count = 1; set.owners.size < this.#limits.addresses; count++) {
        const next = this.#missing(workspace, network, set).next()
        if (next.done) return
        const { sub, index } = next.value
        const address = addressAt(network, key, [sub, network.chain_index, index])
        set.owners.set(this.#nameOf(network, address), sub)
        set.derived.set(sub, index === CHANGE_INDEX ? 0 : index + 1)
        if (count % SLICE === 0) await new Promise((resolve) => setTimeout(resolve, PAUSE_MS))
      }
      set.isFull = true
      log('error', 'a workspace has too many addresses to decide which destinations are its own', {
        workspace,
        network: network.code,
      })
    } catch (error) {
      log('warn', 'the own addresses of a workspace were not derived', {
        workspace,
        network: network.code,
        reason: reason(error),
      })
    } finally {
      set.running = null
    }
  }
}
