import { familyOf, type Network, type Registry } from '@custody/chains'

/** Where an address means the same party: on every EVM chain, else on its network alone. */
export const spaceOf = (network: Network): string => familyOf(network).space ?? network.code

/** The account behind an address: an M… address of Stellar is its G… account. */
export const accountOf = (network: Network, address: string): string =>
  familyOf(network).accountOf?.(address) ?? address

/**
 * One spelling of an address for comparison within its space. What is no address of the network
 * stays as it is.
 */
export function addressKey(network: Network, address: string): string {
  const { key, validate } = familyOf(network)
  const account = accountOf(network, address)
  if (key) return key(account)
  const checked = validate(network, account)
  return checked.valid ? checked.address : account
}

/**
 * All keys under which an address may have been written down: that of {@link addressKey}, and the
 * text, under which versions before 0.1.0 wrote Cardano's addresses.
 */
export function addressKeys(network: Network, address: string): string[] {
  const checked = familyOf(network).validate(network, accountOf(network, address))
  return [...new Set([addressKey(network, address), ...(checked.valid ? [checked.address] : [])])]
}

/**
 * What one key holder's address looks like on every network of the same format: hex of any EVM
 * chain, the output script of any UTXO network; elsewhere the text.
 */
export function formatKey(network: Network, address: string): string {
  const { format } = familyOf(network)
  if (!format) return `text ${addressKey(network, address)}`
  const account = accountOf(network, address)
  return format(network, account) ?? `text ${account}`
}

/** The format keys that a published address of an unnamed or foreign network can have. */
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
  // Elsewhere a format that nobody has named may be meant.
  return isOnePartyEverywhere ? keys : keys.add(`text ${address}`)
}
