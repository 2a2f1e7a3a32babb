import { familyOf, type Network, type Registry } from '@custody/chains'

/**
 * Returns the scope in which an address means the same party: all EVM chains together, otherwise
 * its network alone.
 */
export const spaceOf = (network: Network): string => familyOf(network).space ?? network.code

/** Returns the account behind an address: an M… address of Stellar belongs to its G… account. */
export const accountOf = (network: Network, address: string): string =>
  familyOf(network).accountOf?.(address) ?? address

/**
 * Returns the canonical form of an address, for comparison within its scope. Text that is no
 * address of the network is returned unchanged.
 */
export function addressKey(network: Network, address: string): string {
  const { key, validate } = familyOf(network)
  const account = accountOf(network, address)
  if (key) return key(account)
  const checked = validate(network, account)
  return checked.valid ? checked.address : account
}

/**
 * Returns all keys under which an address may be stored: the key of {@link addressKey}, and the
 * text, which versions before 0.1.0 stored for Cardano addresses.
 */
export function addressKeys(network: Network, address: string): string[] {
  const checked = familyOf(network).validate(network, accountOf(network, address))
  return [...new Set([addressKey(network, address), ...(checked.valid ? [checked.address] : [])])]
}

/**
 * Returns a key that is the same for one key holder's address on all networks of the same format:
 * hex on EVM chains, the output script on UTXO networks, otherwise the text.
 */
export function formatKey(network: Network, address: string): string {
  const { format } = familyOf(network)
  if (!format) return `text ${addressKey(network, address)}`
  const account = accountOf(network, address)
  return format(network, account) ?? `text ${account}`
}

/**
 * Returns the format keys that a published address of an unnamed or unsupported network can have.
 */
export function formatKeysOf(registry: Registry, address: string): Set<string> {
  const keys = new Set<string>()
  let isOnePartyEverywhere = false
  for (const network of registry.networks) {
    const { format, space } = familyOf(network)
    const key = format?.(network, address)
    if (!key) continue
    keys.add(key)
    isOnePartyEverywhere ||= space !== undefined
  }
  // On other networks, the address may have an unknown format, so its text is added.
  return isOnePartyEverywhere ? keys : keys.add(`text ${address}`)
}
