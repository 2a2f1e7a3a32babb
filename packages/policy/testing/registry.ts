import type { PolicyAsset, PolicyRegistry } from '../src/registry.ts'

const native = (network: string, decimals: number): [string, PolicyAsset] => [
  network,
  { decimals, network, contract: null, fee_asset: network, wallet_pays_fee: true },
]

/** As in the registry of real networks, with which a test compares each entry. */
export const ASSETS: ReadonlyMap<string, PolicyAsset> = new Map<string, PolicyAsset>([
  native('BTC', 8),
  native('SOL', 9),
  native('XRP', 6),
  native('ADA', 6),
  native('XLM', 7),
  [
    'ETH',
    { decimals: 18, network: 'ETH', contract: null, fee_asset: 'ETH', wallet_pays_fee: false },
  ],
  [
    'USDT_ETH',
    {
      decimals: 6,
      network: 'ETH',
      contract: '0xdAC17F958D2ee523a2206206994597C13D831ec7',
      fee_asset: 'ETH',
      wallet_pays_fee: false,
    },
  ],
  [
    'USDC_SOL',
    {
      decimals: 6,
      network: 'SOL',
      contract: 'EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGGkZwyTDt1v',
      fee_asset: 'SOL',
      wallet_pays_fee: true,
    },
  ],
])

function splitMuxed(address: string): { address: string; tag: string } | null {
  const found = /^M(\d)x(.+)$/.exec(address)
  return found && { tag: found[1] as string, address: found[2] as string }
}

/**
 * Eight assets with their decimals on the networks. An address is a word of letters and digits. Two
 * Cardano addresses have the same payment key if they differ only in their prefix `base` or `ent`.
 * `M7x` + an account of Stellar is its address with the tag 7. Tags are digits, on XRP and Stellar.
 */
export const registry: PolicyRegistry = {
  asset: (name) => ASSETS.get(name),
  hasNetwork: (code) => ASSETS.has(code),
  canonicalAddress: (_network, address) =>
    /^[A-Za-z0-9]{1,100}$/.test(address) ? address : undefined,
  canonicalTag: (network, address, tag) =>
    ['XRP', 'XLM'].includes(network) &&
    splitMuxed(address) === null &&
    /^(?:0|[1-9]\d{0,9})$/.test(tag)
      ? tag
      : undefined,
  splitAddress: (network, address) => (network === 'XLM' ? splitMuxed(address) : null),
  paymentKey(network, address) {
    if (network === 'ADA') return address.replace(/^(?:base|ent)/, '')
    return (network === 'XLM' && splitMuxed(address)?.address) || address
  },
}
