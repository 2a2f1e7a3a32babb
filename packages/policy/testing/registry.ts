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

/**
 * Seven assets with their decimals on the networks. An address is a word of letters and digits. Two
 * Cardano addresses have the same payment key if they differ only in their prefix `base` or `ent`.
 */
export const registry: PolicyRegistry = {
  asset: (name) => ASSETS.get(name),
  hasNetwork: (code) => ASSETS.has(code),
  canonicalAddress: (_network, address) =>
    /^[A-Za-z0-9]{1,100}$/.test(address) ? address : undefined,
  paymentKey: (network, address) =>
    network === 'ADA' ? address.replace(/^(?:base|ent)/, '') : address,
}
