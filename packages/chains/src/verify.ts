/**
 * Functions with which a caller can verify addresses independently of the service: registry,
 * derivation, addresses. They load no network client, and of a family only its addresses and
 * traits, on first use.
 */
import { parseAmount } from './amount.ts'
import type { Traits } from './traits.ts'
import type { Asset, FamilyName, Network, Validation } from './types.ts'
import { load } from './utxo/address-library.ts'

export {
  CHANGE_INDEX,
  deriveExtendedKey,
  OMNIBUS_INDEX,
  pathOf,
  TANK_SUB_ACCOUNT,
  type ExtendedKey,
} from './derivation.ts'
export { loadRegistry, type Registry } from './registry.ts'
export type { Asset, Network } from './types.ts'

interface Addresses {
  address(network: Network, publicKey: Uint8Array): string
  validate(network: Network, text: string, addressTag?: string | null): Validation
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
