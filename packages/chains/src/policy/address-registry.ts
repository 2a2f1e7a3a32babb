import type { Registry } from '../registry.ts'
import type { Tags } from '../family.ts'
import type { Traits } from '../traits.ts'
import { ChainError, type Asset, type Network, type Validation } from '../types.ts'

/** What a policy needs to know about an asset. */
interface RegisteredAsset {
  readonly decimals: number
  /** Code of the network. */
  readonly network: string
  /** Contract of a token; null for a native coin. */
  readonly contract: string | null
  /** Native coin of the network, in which fees are paid. */
  readonly fee_asset: string
  /** The paying wallet also pays the network fee. */
  readonly wallet_pays_fee: boolean
}

/** The assets, networks and addresses of a registry, as policies name them. All members are pure. */
export interface AddressRegistry {
  /** Returns undefined for an unknown asset. */
  asset(name: string): RegisteredAsset | undefined
  hasNetwork(code: string): boolean
  /**
   * Returns the canonical form of an address, as in a decoded transaction. Undefined: the address is
   * not valid on the network, or it contains a tag, which its canonical form cannot contain.
   */
  canonicalAddress(network: string, address: string): string | undefined
  /**
   * Returns the canonical form of a tag, as in a decoded transaction. Undefined: payments to the
   * address cannot have the tag, for example because the network has none.
   */
  canonicalTag(network: string, address: string, tag: string): string | undefined
  /**
   * Returns account and tag of an address that contains its tag (X-address, M…); null for every other
   * text.
   */
  splitAddress(network: string, address: string): { address: string; tag: string } | null
  /**
   * Returns a text that is the same for all addresses from which the same key can spend. An invalid
   * address is returned unchanged.
   */
  paymentKey(network: string, address: string): string
}

/** What a chain family knows about addresses. */
export interface AddressRules {
  readonly traits: Pick<Traits, 'feesFrom'>
  validate(network: Network, text: string, addressTag?: string | null): Validation
  paymentKey?(network: Network, address: string): string
  readonly tags?: Pick<Tags, 'split'>
}

/** Returns the rules of a network's family. */
type RulesOf = (network: Network) => AddressRules

/**
 * Validates an address of an asset's network. Rejects contracts that the registry lists there,
 * because a payment to one is lost.
 * @throws ChainError `ASSET` for an unknown ticker
 */
export function validateBy(
  rulesOf: RulesOf,
  registry: Registry,
  payment: { asset: string; address: string; addressTag: string | null | undefined },
): Validation {
  const asset = registry.asset(payment.asset)
  if (!asset) throw new ChainError('ASSET', `asset ${payment.asset} is not supported`)
  const network = registry.networkOf(asset)
  const checked = rulesOf(network).validate(network, payment.address, payment.addressTag)
  const reason = checked.valid ? contractProblem(registry, asset, checked.address) : null
  return reason === null ? checked : { valid: false, reason }
}

/**
 * Returns why a contract of the registry accepts no payment of an asset; null if the address is not
 * such a contract.
 */
function contractProblem(registry: Registry, asset: Asset, address: string): string | null {
  const { l1_fee_oracle: oracle } = registry.networkOf(asset)
  const token = registry.assetsOf(asset.network).find((each) => each.contract_address === address)
  if (token === asset) return 'is the token’s own contract; tokens sent there are lost'
  if (token) return `is the contract of ${token.asset_name}; coins sent there are lost`
  return oracle?.toLowerCase() === address.toLowerCase()
    ? 'is a contract of the network that sets fees; coins sent there are lost'
    : null
}

/** Returns the view of a registry on which policies are evaluated. */
export function addressRegistry(registry: Registry, rulesOf: RulesOf): AddressRegistry {
  return {
    asset(name) {
      const asset = registry.asset(name)
      return (
        asset && {
          decimals: asset.decimals,
          network: asset.network,
          contract: asset.contract_address,
          fee_asset: asset.fee_asset,
          // Where a gas tank pays fees, it also pays them for transfers of the native coin: it sends
          // what the wallet lacks for the fee before the transfer, so the wallet's own balance
          // decreases by the amount only. The nodes allow this funding, and do not require it.
          wallet_pays_fee: rulesOf(registry.networkOf(asset)).traits.feesFrom === 'wallet',
        }
      )
    },
    hasNetwork: (code) => registry.network(code) !== undefined,
    canonicalAddress(network, address) {
      // A network's addresses do not depend on the asset: the contracts of its tokens are not valid
      // for any of its assets.
      const asset = registry.network(network)?.native_asset
      if (asset === undefined) return undefined
      const checked = validateBy(rulesOf, registry, { asset, address, addressTag: undefined })
      return checked.valid && checked.address_tag === null ? checked.address : undefined
    },
    canonicalTag(network, address, tag) {
      const found = registry.network(network)
      const checked = found && rulesOf(found).validate(found, address, tag)
      return checked?.valid ? (checked.address_tag ?? undefined) : undefined
    },
    splitAddress(network, address) {
      const found = registry.network(network)
      return (found && rulesOf(found).tags?.split(address)) ?? null
    },
    paymentKey(network, address) {
      const found = registry.network(network)
      if (found === undefined) return address
      const rules = rulesOf(found)
      const checked = rules.validate(found, address)
      const canonical = checked.valid ? checked.address : address
      return rules.paymentKey?.(found, canonical) ?? canonical
    },
  }
}
