import {
  addressOfKey,
  canonicalAddress,
  CHANGE_INDEX,
  deriveExtendedKey,
  isTagged,
  loadRegistry,
  OMNIBUS_INDEX,
  pathOf,
  paymentUriOf,
  TANK_SUB_ACCOUNT,
  type Asset,
  type ExtendedKey,
  type Network,
  type Registry,
} from '@custody/chains/verify'
import { VerificationError } from './errors.ts'
import { verifiedKey, type VerifiedKey } from './keys.ts'
import type { PinnedTrust } from './trust.ts'

/** An address as the service returns it. */
export interface ShownAddress {
  asset: string
  address: string
  address_tag?: string | null
  path: unknown
  payment_uri?: string | null
  /** Amount in the payment URI, decimal. */
  amount?: string | null
}
export interface Found {
  path: number[]
  keyId: string
  certifiedBy: number[]
}

const DERIVED_MAX = 100_000

/**
 * Returns the highest index of a deposit address. The change index belongs to the wallet itself. On
 * networks with tags there is one address, and coins at another account would be credited to no
 * one.
 */
const indexMostOn = async (network: Network): Promise<number> =>
  (await isTagged(network)) ? OMNIBUS_INDEX : CHANGE_INDEX - 1

/**
 * Derives addresses from the keys that the pinned nodes certified. Of the service's data it uses
 * only the certified key and the index of an address: network, chain index and sub-account are its
 * own.
 */
export class AddressVerifier {
  readonly #trust: PinnedTrust
  readonly #registry: Registry
  readonly #keys = new Map<string, VerifiedKey>()
  /**
   * Cache of the keys above a sub-account's addresses on a chain, so that each address takes one
   * derivation step.
   */
  readonly #parents = new Map<string, ExtendedKey>()
  readonly #derived = new Map<string, string>()

  constructor(trust: PinnedTrust) {
    this.#trust = trust
    this.#registry = loadRegistry(trust.network)
  }

  /**
   * Returns the curve of an asset's keys.
   * @throws VerificationError `ADDRESS` for an asset that this client does not know
   */
  curveOf(asset: string): string {
    return this.#networkOf(asset).network.curve
  }

  /**
   * Returns the curve of a network's keys.
   * @throws VerificationError `ADDRESS`
   */
  curveOfNetwork(code: string): string {
    return this.#network(code).curve
  }

  /**
   * Returns the code of an asset's network.
   * @throws VerificationError `ADDRESS`
   */
  networkCodeOf(asset: string): string {
    return this.#networkOf(asset).network.code
  }

  /**
   * Returns the address at a path of the workspace's key, of any sub-account; null if the network
   * has no such path.
   */
  async addressOn(code: string, path: unknown): Promise<string | null> {
    const network = this.#network(code)
    const isIndex = (each: unknown) =>
      typeof each === 'number' && Number.isInteger(each) && each >= 0 && each <= CHANGE_INDEX
    const isPath = Array.isArray(path) && path.length === 3 && path.every(isIndex)
    return isPath && path[1] === network.chain_index
      ? this.addressAt(network, path as [number, number, number])
      : null
  }

  hasKey(curve: string): boolean {
    return this.#keys.has(curve)
  }

  /**
   * Verifies the key of a curve and stores it permanently, because a workspace's key never changes.
   * @throws VerificationError `KEY`
   */
  takeKey(answer: unknown, curve: string): void {
    this.#keys.set(curve, verifiedKey(this.#trust, answer, curve))
  }

  #network(code: string): Network {
    const network = this.#registry.network(code)
    if (!network)
      throw new VerificationError('ADDRESS', `${code} is not a network that this client supports`)
    return network
  }

  #networkOf(name: string): { asset: Asset; network: Network } {
    const asset = this.#registry.asset(name)
    if (!asset)
      throw new VerificationError('ADDRESS', `${name} is not an asset that this client supports`)
    return { asset, network: this.#registry.networkOf(asset) }
  }

  #key(network: Network): VerifiedKey {
    const key = this.#keys.get(network.curve)
    if (!key) throw new VerificationError('KEY', `there is no verified ${network.curve} key`)
    return key
  }

  /** Returns the address at `[sub-account, chain, index]` of the workspace's key. */
  async addressAt(network: Network, path: readonly [number, number, number]): Promise<string> {
    const key = this.#key(network)
    const name = `${network.code} ${path.join('/')}`
    const existing = this.#derived.get(name)
    if (existing !== undefined) return existing
    const above = `${network.curve} ${path[0]}/${path[1]}`
    const parent =
      this.#parents.get(above) ??
      deriveExtendedKey(network.curve, key.publicKey, key.chainCode, path.slice(0, 2))
    this.#parents.set(above, parent)
    const { publicKey } = deriveExtendedKey(
      network.curve,
      parent.publicKey,
      parent.chainCode,
      path.slice(2),
    )
    const address = await addressOfKey(network, publicKey)
    if (this.#derived.size >= DERIVED_MAX) this.#derived.clear()
    this.#derived.set(name, address)
    return address
  }

  /**
   * Checks that a path belongs to the pinned sub-account and to the asset's chain. The service may
   * choose only the index.
   */
  async #pathOf(network: Network, asset: string, path: unknown): Promise<[number, number, number]> {
    const input = Array.isArray(path) ? path.join('/') : String(path)
    const index: unknown = Array.isArray(path) ? path[2] : undefined
    const most = await indexMostOn(network)
    const expected = `${this.#trust.sub_account_index}/${network.chain_index}/${most === OMNIBUS_INDEX ? OMNIBUS_INDEX : 'n'}`
    const isIndex =
      typeof index === 'number' && Number.isInteger(index) && index >= 0 && index <= most
    const isOurs =
      Array.isArray(path) &&
      path.length === 3 &&
      path[0] === this.#trust.sub_account_index &&
      path[1] === network.chain_index
    if (!isOurs || !isIndex) {
      const owner = `${this.#trust.workspace} / ${this.#trust.sub_account}`
      const message = `the service returned the path ${input} for the ${asset} address; addresses of ${owner} are at ${expected}`
      throw new VerificationError('PATH', message, { expected, actual: input })
    }
    return pathOf(network, this.#trust.sub_account_index, index as number) as [
      number,
      number,
      number,
    ]
  }

  #assertAsset(requested: string, shown: unknown): void {
    if (shown === requested) return
    const message = `the service returned ${String(shown)} instead of the requested ${requested}`
    throw new VerificationError('ADDRESS', message, { expected: requested, actual: String(shown) })
  }

  async #assertAt(
    network: Network,
    what: string,
    address: unknown,
    path: [number, number, number],
  ): Promise<void> {
    const expected = await this.addressAt(network, path)
    if (address !== expected) {
      const message = `the ${what} ${String(address)} does not belong to the certified key, whose address at ${path.join('/')} is ${expected}`
      throw new VerificationError('ADDRESS', message, { expected, actual: String(address) })
    }
  }

  /**
   * Rejects an address that is not the pinned sub-account's own. On XRP and XLM the account is
   * verified; its tag only identifies the sub-account's customer. The payment URI must match the
   * address.
   *
   * @throws VerificationError
   */
  async verifyAddress(requested: string, shown: ShownAddress): Promise<void> {
    const { asset, network } = this.#networkOf(requested)
    this.#assertAsset(requested, shown.asset)
    await this.#assertAt(
      network,
      `${requested} address`,
      shown.address,
      await this.#pathOf(network, requested, shown.path),
    )
    if (shown.payment_uri === undefined || shown.payment_uri === null) return
    const expected = await paymentUriOf(
      network,
      asset,
      shown.address,
      shown.address_tag ?? null,
      shown.amount ?? null,
    )
    if (shown.payment_uri !== expected) {
      const message = `the payment URI of ${shown.address} contains another address: ${shown.payment_uri}`
      throw new VerificationError('PAYMENT_URI', message, {
        expected: expected ?? undefined,
        actual: shown.payment_uri,
      })
    }
  }

  /**
   * Rejects an omnibus address that is not the pinned sub-account's own.
   * @throws VerificationError
   */
  async verifyOmnibus(
    requested: string,
    shown: { asset: string; omnibus_address: unknown; path: unknown },
  ): Promise<void> {
    const { network } = this.#networkOf(requested)
    this.#assertAsset(requested, shown.asset)
    const path = await this.#pathOf(network, requested, shown.path)
    if (path[2] !== OMNIBUS_INDEX) {
      throw new VerificationError(
        'PATH',
        `the service returned index ${path[2]} for the omnibus address; it must be ${OMNIBUS_INDEX}`,
        {
          expected: String(OMNIBUS_INDEX),
          actual: String(path[2]),
        },
      )
    }
    await this.#assertAt(network, `${requested} omnibus address`, shown.omnibus_address, path)
  }

  /**
   * Rejects an address that is not that of the workspace's gas tank on a network. Operators pay to
   * it to refill the tank.
   * @throws VerificationError
   */
  async verifyTank(code: string, address: string): Promise<void> {
    const network = this.#network(code)
    const path = pathOf(network, TANK_SUB_ACCOUNT, OMNIBUS_INDEX) as [number, number, number]
    await this.#assertAt(network, `${code} gas tank address`, address, path)
  }

  /**
   * Finds the path of an address of the sub-account: checks the given path, or every index up to
   * `indexMax`.
   * @throws VerificationError if the address is at none of them
   */
  async find(
    asset: string,
    text: string,
    options: { path?: readonly number[] | undefined; indexMax: number },
  ): Promise<Found> {
    const { network } = this.#networkOf(asset)
    const { keyId, certifiedBy } = this.#key(network)
    const read = await canonicalAddress(network, text)
    if (!read.valid)
      throw new VerificationError(
        'ADDRESS',
        `${text} is not a valid ${asset} address: ${read.reason}`,
        {
          actual: text,
        },
      )
    if (options.path !== undefined) {
      const path = await this.#pathOf(network, asset, options.path)
      await this.#assertAt(network, `${asset} address`, read.address, path)
      return { path, keyId, certifiedBy }
    }
    const most = Math.min(options.indexMax, await indexMostOn(network))
    for (let index = 0; index <= most; index++) {
      const path = pathOf(network, this.#trust.sub_account_index, index) as [number, number, number]
      if ((await this.addressAt(network, path)) === read.address)
        return { path, keyId, certifiedBy }
    }
    const owner = `${this.#trust.workspace} / ${this.#trust.sub_account}`
    throw new VerificationError(
      'ADDRESS',
      `${text} is not one of the ${asset} addresses 0 to ${most} of ${owner}`,
      { actual: text },
    )
  }
}
