import { familyOf, stellar, utxo, type Network, type Registry } from '@custody/chains'

/** Where an address means the same party: on every EVM chain, else on its network alone. */
export function spaceOf(network: Network): string {
  return network.family === 'evm' ? 'evm' : network.code
}

/** The account behind an address: an M… address of Stellar is its G… account. */
export function accountOf(network: Network, address: string): string {
  return network.family === 'stellar' ? stellar.splitMuxed(address)?.account ?? address : address
}

/** One spelling of an address for comparison within its space. What is no address of the network stays as it is. */
export function addressKey(network: Network, address: string): string {
  const account = accountOf(network, address)
  if (network.family === 'evm') return account.toLowerCase()
  const checked = familyOf(network).validate(network, account)
  return checked.valid ? checked.address : account
}

/**
 * What one key holder's address looks like on every network of the same format: hex of any EVM chain, the output
 * script of any UTXO network; elsewhere the text.
 */
export function formatKey(network: Network, address: string): string {
  const account = accountOf(network, address)
  if (network.family === 'evm') return `evm ${account.toLowerCase()}`
  if (network.family !== 'utxo') return `text ${addressKey(network, account)}`
  try {
    return `script ${Buffer.from(utxo.scriptOf(network, account)).toString('hex')}`
  } catch {
    return `text ${account}`
  }
}

/** The format keys that a published address of an unnamed or foreign network can have. */
export function formatKeysOf(registry: Registry, address: string): Set<string> {
  const keys = new Set<string>()
  if (/^0x[0-9a-f]{40}$/i.test(address)) return keys.add(`evm ${address.toLowerCase()}`)
  keys.add(`text ${address}`)
  for (const network of registry.networks) {
    if (network.family !== 'utxo') continue
    const key = formatKey(network, address)
    if (key.startsWith('script ')) keys.add(key)
  }
  return keys
}
