/**
 * What a holder of addresses needs to check them by himself: registry, derivation, addresses. No network client is
 * loaded with it, and of a family only its addresses and traits, at their first use.
 */
import type { Traits } from './traits.ts'
import type { Asset, FamilyName, Network, Validation } from './types.ts'

export { CHANGE_INDEX, deriveExtendedKey, OMNIBUS_INDEX, pathOf, TANK_SUB_ACCOUNT, type ExtendedKey } from './derivation.ts'
export { loadRegistry, type Registry } from './registry.ts'
export type { Asset, Network } from './types.ts'

interface Addresses {
  address(network: Network, publicKey: Uint8Array): string
  validate(network: Network, text: string, addressTag?: string | null): Validation
}

const FAMILIES: Readonly<Record<FamilyName, () => Promise<[Addresses, { traits: Traits }]>>> = {
  utxo: () => Promise.all([import('./utxo/address.ts'), import('./utxo/traits.ts')]),
  evm: () => Promise.all([import('./evm/address.ts'), import('./evm/traits.ts')]),
  tron: () => Promise.all([import('./tron/address.ts'), import('./tron/traits.ts')]),
  xrp: () => Promise.all([import('./xrp/address.ts'), import('./xrp/traits.ts')]),
  stellar: () => Promise.all([import('./stellar/address.ts'), import('./stellar/traits.ts')]),
  cardano: () => Promise.all([import('./cardano/address.ts'), import('./cardano/traits.ts')]),
  solana: () => Promise.all([import('./solana/address.ts'), import('./solana/traits.ts')]),
}

/** Address of a public key, as `familyOf(network).address` makes it. */
export async function addressOfKey(network: Network, publicKey: Uint8Array): Promise<string> {
  const [addresses] = await FAMILIES[network.family]()
  return addresses.address(network, publicKey)
}

/** An address in its network's own spelling, or the reason why it is none. */
export async function canonicalAddress(network: Network, text: string, addressTag: string | null = null): Promise<Validation> {
  const [addresses] = await FAMILIES[network.family]()
  return addresses.validate(network, text, addressTag)
}

/** Whether a sub-account has one address on a network, and a tag beside it for each of its customers. */
export async function isTagged(network: Network): Promise<boolean> {
  const [, { traits }] = await FAMILIES[network.family]()
  return traits.deposits === 'tagged'
}

/** The payment URI of an address: what the platform hands out beside it, made here. */
export async function paymentUriOf(network: Network, asset: Asset, address: string, addressTag: string | null): Promise<string | null> {
  return (await import('./payment-uri.ts')).paymentUri(network, asset, { address, addressTag })
}
