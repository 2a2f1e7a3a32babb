import type { Route } from '../funding/types.ts'

/** Kraken's names of the networks, and of the assets on them. */
const NETWORKS: Record<string, { name: string; standard?: string; own?: string }> = {
  BTC: { name: 'Bitcoin' },
  LTC: { name: 'Litecoin' },
  DASH: { name: 'Dash' },
  DOGE: { name: 'Dogecoin' },
  BCH: { name: 'Bitcoin Cash' },
  ETH: { name: 'Ethereum', standard: 'ERC20', own: 'Ether (Hex)' },
  BSC: { name: 'BNB Smart Chain' },
  POL: { name: 'Polygon' },
  BASE: { name: 'Base' },
  ARB: { name: 'Arbitrum One' },
  AVAX: { name: 'Avalanche C-Chain' },
  OP_ETH: { name: 'Optimism' },
  CRO: { name: 'Cronos' },
  TRX: { name: 'Tron', standard: 'TRC20' },
  XRP: { name: 'Ripple', own: 'Ripple XRP' },
  XLM: { name: 'Stellar', own: 'Stellar XLM' },
  ADA: { name: 'Cardano', own: 'ADA' },
  SOL: { name: 'Solana', standard: 'SPL' },
}
const COINS: Record<string, string> = { USDT: 'Tether USD', USDC: 'USDC' }

export const networkName = (network: string): string => NETWORKS[network]?.name ?? network

/**
 * Returns names such as "Bitcoin", "Tether USD (TRC20)", "USDC - Polygon (Unified)". The ones that
 * ccxt requests by default have the names that it expects.
 */
export function methodOf({ coin, network, asset }: Route): string {
  const { name, standard, own } = NETWORKS[network] ?? { name: network }
  // The network's own coin has the name of the asset.
  if (asset === network && (coin === network || own !== undefined)) return own ?? name
  if (asset === 'USDC_ETH') return 'USDC'
  return standard !== undefined
    ? `${COINS[coin] ?? coin} (${standard})`
    : `${coin} - ${name} (Unified)`
}
