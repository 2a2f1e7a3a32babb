import type { Asset, Registry } from '@custody/chains'

/**
 * The coin whose price an asset has: USDT on every network is USDT, the native coin of a second
 * layer is ETH.
 */
export const coinOf = (asset: Asset): string => asset.ticker

/** Every coin of the registry, once. */
export function coinsOf(registry: Registry): string[] {
  return [...new Set(registry.assets.map(coinOf))]
}
