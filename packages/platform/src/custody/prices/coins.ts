import type { Asset, Registry } from '@custody/chains'

/**
 * Returns the coin whose price an asset has: USDT on every network is USDT, and the native coin of
 * a layer 2 network is ETH.
 */
export const coinOf = (asset: Asset): string => asset.ticker

/** Returns every coin of the registry once. */
export function coinsOf(registry: Registry): string[] {
  return [...new Set(registry.assets.map(coinOf))]
}
