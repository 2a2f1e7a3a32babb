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

/** An address as the service shows it. */
export interface ShownAddress {
  asset: string
  address: string
  address_tag?: string | null
  path: unknown
  payment_uri?: string | null
  /** Decimal, which the URI asks for. */ amount?: string | null
}
export interface Found {
  path: number[]
  keyId: string
  certifiedBy: number[]
}

const DERIVED_MAX = 100_000

/**
 * The highest index of a deposit address. The change index is the wallet's own; beside a tag there
 * is one address, and coins at another account of ours would be nobody's deposit.
 */
const indexMostOn = async (network: Network): Promise<number> =>
  (await isTagged(network)) ? OMNIBUS_INDEX : CHANGE_INDEX - 1

/**
 * Derives addresses from what the pinned nodes certified. It takes nothing from the service but the
 * certified key, and the index of an address: network, chain index and sub-account are its own.
 */
export class AddressVerifier {
  readonly #trust: PinnedTrust
  readonly #registry: Registry
  readonly #keys = new Map<string, VerifiedKey>()
  /**
   * Keys above the addresses of a sub-account on a chain: one step is then left for each address.
   */
  readonly #parents = new Map<string, ExtendedKey>()
  readonly #derived = new Map<string, string>()

  constructor(trust: PinnedTrust) {
    this.#trust = trust
    this.#registry = loadRegistry(trust.network)
  }

  /**
   * Curve of an asset's keys. @throws VerificationError `ADDRESS` for an asset that this client
   * does not know
   */
  curveOf(asset: string): string {
    return this.#networkOf(asset).network.curve
  }

  /** Curve of a network's keys. @throws VerificationError `ADDRESS` */
  curveOfNetwork(code: string): string {
    return this.#network(code).curve
  }

  /** Code of an asset's network. @throws VerificationError `ADDRESS` */
  networkCodeOf(asset: string): string {
    return this.#networkOf(asset).network.code
  }

  /**
   * The address at a path of the workspace's key, whichever sub-account's; null where the network
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
   * Verifies and keeps the key of a curve: it is the workspace's for ever. @throws
   * VerificationError `KEY`
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

  /** The address at `[sub-account, chain, index]` of the workspace's key. */
  async addressAt(network: Network, path: readonly [number, number, number]): Promise<string> {
    const key = this.#key(network)
    const name = `${network.code} ${path.join('/')}`
    const known = this.#derived.get(name)
    if (known !== undefined) return known
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
   * The path must be of the pinned sub-account and of the asset's chain; an index is all that the
   * service may choose.
   */
  async #pathOf(network: Network, asset: string, path: unknown): Promise<[number, number, number]> {
    const given = Array.isArray(path) ? path.join('/') : String(path)
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
      const message = `the service returned the path ${given} for the ${asset} address; addresses of ${owner} are at ${expected}`
      throw new VerificationError('PATH', message, { expected, actual: given })
    }
    return pathOf(network, this.#trust.sub_account_index, index as number) as [
      number,
      number,
      number,
    ]
  }

  #assertAsset(requested: string, shown: unknown): void {
    if (shown === requested) return
    const message = `${String(shown)} was given where ${requested} was asked for`
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
      const message = `the ${what} ${String(address)} is not ours: the nodes' key has ${expected} at ${path.join('/')}`
      throw new VerificationError('ADDRESS', message, { expected, actual: String(address) })
    }
  }

  /**
   * Refuses an address that is not the pinned sub-account's own. On XRP and XLM this is the
   * account; the tag beside it only says for which customer of the sub-account a deposit is. The
   * payment URI must say the same as the address.
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

  /** The same for a wallet's omnibus address. @throws VerificationError */
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
   * The same for the workspace's gas tank on a network, which whoever tops it up pays. @throws
   * VerificationError
   */
  async verifyTank(code: string, address: string): Promise<void> {
    const network = this.#network(code)
    const path = pathOf(network, TANK_SUB_ACCOUNT, OMNIBUS_INDEX) as [number, number, number]
    await this.#assertAt(network, `${code} gas tank address`, address, path)
  }

  /**
   * Says at which path of the sub-account an address is: at the given one, or at any index up to
   * `indexMax`.
   * @throws VerificationError where it is not
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
