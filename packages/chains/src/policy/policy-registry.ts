import { familyOf, traitsOf, validateAddress } from '../families.ts'
import type { Registry } from '../registry.ts'

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
interface AddressRegistry {
  /** Returns undefined for an unknown asset. */
  asset(name: string): RegisteredAsset | undefined
  hasNetwork(code: string): boolean
  /**
   * Returns the canonical form of an address, as in a decoded transaction. Undefined: the address is
   * not valid on the network, or it contains a tag, which its canonical form cannot contain.
   */
  canonicalAddress(network: string, address: string): string | undefined
  /**
   * Returns a text that is the same for all addresses from which the same key can spend. An invalid
   * address is returned unchanged.
   */
  paymentKey(network: string, address: string): string
}

/** Returns the view of a registry on which policies are evaluated. */
export function policyRegistry(registry: Registry): AddressRegistry {
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
          wallet_pays_fee: traitsOf(registry.networkOf(asset)).feesFrom === 'wallet',
        }
      )
    },
    hasNetwork: (code) => registry.network(code) !== undefined,
    canonicalAddress(network, address) {
      // A network's addresses do not depend on the asset: the contracts of its tokens are not valid
      // for any of its assets.
      const native = registry.network(network)?.native_asset
      if (native === undefined) return undefined
      const checked = validateAddress(registry, native, address)
      return checked.valid && checked.address_tag === null ? checked.address : undefined
    },
    paymentKey(network, address) {
      const found = registry.network(network)
      if (found === undefined) return address
      const { validate, paymentKey } = familyOf(found)
      const checked = validate(found, address)
      const canonical = checked.valid ? checked.address : address
      return paymentKey?.(found, canonical) ?? canonical
    },
  }
}
