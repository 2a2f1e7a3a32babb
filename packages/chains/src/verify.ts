/**
 * Functions with which a caller can verify addresses independently of the service: registry,
 * derivation, addresses. They load no network client, and of a family only its addresses and
 * traits, on first use.
 */
import { parseAmount } from './amount.ts'
import {
  addressRegistry,
  validateBy,
  type AddressRegistry,
  type AddressRules,
} from './policy/address-registry.ts'
import type { Tags } from './family.ts'
import type { Registry } from './registry.ts'
import type { Traits } from './traits.ts'
import { ChainError, type Asset, type FamilyName, type Network, type Validation } from './types.ts'
import { load } from './utxo/address-library.ts'

export {
  CHANGE_INDEX,
  deriveExtendedKey,
  OMNIBUS_INDEX,
  pathOf,
  TANK_SUB_ACCOUNT,
  type ExtendedKey,
} from './derivation.ts'
export { parseAmount } from './amount.ts'
export { loadRegistry, type Registry } from './registry.ts'
export { ChainError, type Asset, type Network, type Validation } from './types.ts'

interface Addresses {
  address(network: Network, publicKey: Uint8Array): string
  validate(network: Network, text: string, addressTag?: string | null): Validation
  paymentKey?(network: Network, address: string): string
  readonly tags?: Tags
}

/** Families with a library that must be loaded before their addresses are used. */
const LOADS: Partial<Record<FamilyName, () => Promise<void>>> = { utxo: load }

async function addressesOf(network: Network): Promise<Addresses> {
  await LOADS[network.family]?.()
  // A family's folder has the family's name.
  return import(`./${network.family}/address.ts`) as Promise<Addresses>
}
const traitsOf = (network: Network) =>
  import(`./${network.family}/traits.ts`) as Promise<{ traits: Traits }>

/** Returns the address of a public key, as `familyOf(network).address` does. */
export async function addressOfKey(network: Network, publicKey: Uint8Array): Promise<string> {
  return (await addressesOf(network)).address(network, publicKey)
}

/** Returns an address in its network's own spelling, or the reason why it is invalid. */
export async function canonicalAddress(
  network: Network,
  text: string,
  addressTag: string | null = null,
): Promise<Validation> {
  return (await addressesOf(network)).validate(network, text, addressTag)
}

/**
 * Returns whether a sub-account has one address on a network, with a separate tag for each of its
 * customers.
 */
export async function isTagged(network: Network): Promise<boolean> {
  return (await traitsOf(network)).traits.deposits === 'tagged'
}

/**
 * Computes locally the payment URI of an address, equal to the one that the platform returns with
 * it.
 * @param amount decimal; null: the payer chooses
 */
export async function paymentUriOf(
  network: Network,
  asset: Asset,
  address: string,
  addressTag: string | null,
  amount: string | null = null,
): Promise<string | null> {
  const { paymentUri } = await import('./payment-uri.ts')
  return paymentUri(network, asset, {
    address,
    addressTag,
    amount: amount === null ? null : parseAmount(amount, asset.decimals),
  })
}

/** What signed statements about payments name, with all families loaded. */
export interface PaymentRegistry extends AddressRegistry {
  /**
   * Validates a destination as `validateAddress` does.
   * @throws ChainError `ASSET` for an unknown ticker
   */
  validate(asset: string, address: string, addressTag: string | null): Validation
}

/**
 * Loads the families of all networks of a registry, and returns the view of it on which policies are
 * evaluated, equal to the one of `policyRegistry`.
 */
export async function loadPaymentRegistry(registry: Registry): Promise<PaymentRegistry> {
  const families = new Map<FamilyName, AddressRules>()
  for (const network of registry.networks) {
    if (families.has(network.family)) continue
    const { validate, paymentKey, tags } = await addressesOf(network)
    const { traits } = await traitsOf(network)
    families.set(network.family, {
      traits,
      validate,
      ...(paymentKey && { paymentKey }),
      ...(tags && { tags }),
    })
  }
  const rulesOf = ({ code, family }: Network): AddressRules => {
    const rules = families.get(family)
    if (!rules) throw new ChainError('FAMILY', `${code}: family ${family} is not available`)
    return rules
  }
  return {
    ...addressRegistry(registry, rulesOf),
    validate: (asset, address, addressTag) =>
      validateBy(rulesOf, registry, { asset, address, addressTag }),
  }
}
