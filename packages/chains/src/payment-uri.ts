import { formatAmount } from './amount.ts'
import { hasRealCoins } from './mode.ts'
import { paymentUri as stellarUri } from './stellar/payment-uri.ts'
import type { Asset, Network } from './types.ts'
import { paymentUri as xrpUri } from './xrp/payment-uri.ts'

/** Builds a query string from the values that are present, in the given order. */
function query(values: Record<string, string | null>): string {
  const words = Object.entries(values)
    .filter((entry): entry is [string, string] => entry[1] !== null)
    .map(([name, value]) => `${name}=${encodeURIComponent(value)}`)
  return words.length === 0 ? '' : `?${words.join('&')}`
}

/**
 * Builds the URI that a payer's wallet opens, for example from a QR code: BIP21 (UTXO), EIP-681
 * (EVM), Solana Pay, SEP-7 (Stellar), CIP-13 (Cardano), and `xrpl:` as Xaman reads it. Tron's
 * wallets have no common format and read the address alone. EIP-681 counts in the smallest unit,
 * every other scheme in whole coins.
 *
 * @param o.amount in the smallest unit of the asset; if it is absent, the payer chooses
 * @returns the URI, or null if no convention exists for the asset
 */
export function paymentUri(
  network: Network,
  asset: Asset,
  o: { address: string; addressTag?: string | null; amount?: bigint | null },
): string | null {
  const amount = o.amount ?? null
  const decimal = amount === null ? null : formatAmount(amount, asset.decimals)
  const tag = o.addressTag ?? null
  const token = asset.type === 'token'
  switch (network.family) {
    case 'utxo': {
      // A CashAddr address is written with its prefix, which is the scheme. Other coins adopted BIP21
      // with their network's name as the scheme.
      const scheme = o.address.includes(':') ? '' : `${network.name.toLowerCase()}:`
      return `${scheme}${o.address}${query({ amount: decimal })}`
    }
    case 'evm': {
      const smallest = amount === null ? null : amount.toString()
      const to = (target: string | null) => `ethereum:${String(target)}@${String(network.chain_id)}`
      return token
        ? `${to(asset.contract_address)}/transfer${query({ address: o.address, uint256: smallest })}`
        : `${to(o.address)}${query({ value: smallest })}`
    }
    case 'solana':
      return `solana:${o.address}${query({ amount: decimal, 'spl-token': token ? asset.contract_address : null })}`
    case 'stellar':
      return stellarUri({
        address: o.address,
        tag,
        ...(decimal === null ? {} : { amount: decimal }),
        // Without the passphrase a wallet pays on the public network.
        ...(!hasRealCoins(network.mode) && network.passphrase !== undefined
          ? { passphrase: network.passphrase }
          : {}),
      })
    case 'xrp':
      return xrpUri({ address: o.address, tag, ...(decimal === null ? {} : { amount: decimal }) })
    case 'cardano':
      return token ? null : `web+cardano:${o.address}${query({ amount: decimal })}`
    default:
      return null
  }
}
