/**
 * What a holder of addresses needs to check them by himself: registry, derivation, addresses. No
 * network client is loaded with it, and of a family only its addresses and traits, at their first
 * use.
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

/** Where a library must be there before addresses are asked for. */
const LOADS: Partial<Record<FamilyName, () => Promise<void>>> = { utxo: load }

async function addressesOf(network: Network): Promise<Addresses> {
  await LOADS[network.family]?.()
  // A family's folder has its name.
  return import(`./${network.family}/address.ts`) as Promise<Addresses>
}
const traitsOf = (network: Network) =>
  import(`./${network.family}/traits.ts`) as Promise<{ traits: Traits }>

/** Address of a public key, as `familyOf(network).address` makes it. */
export async function addressOfKey(network: Network, publicKey: Uint8Array): Promise<string> {
  return (await addressesOf(network)).address(network, publicKey)
}

/** An address in its network's own spelling, or the reason why it is none. */
export async function canonicalAddress(
  network: Network,
  text: string,
  addressTag: string | null = null,
): Promise<Validation> {
  return (await addressesOf(network)).validate(network, text, addressTag)
}

/**
 * Whether a sub-account has one address on a network, and a tag beside it for each of its
 * customers.
 */
export async function isTagged(network: Network): Promise<boolean> {
  return (await traitsOf(network)).traits.deposits === 'tagged'
}

/**
 * The payment URI of an address: what the platform hands out beside it, made here. @param amount
 * decimal; null: the payer chooses
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
