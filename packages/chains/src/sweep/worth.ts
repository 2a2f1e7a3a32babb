import { parseAmount } from '../amount.ts'
import type { Registry } from '../registry.ts'
import type { Asset } from '../types.ts'

/** Decimals of the prices in `usd_range`. */
const RANGE_DECIMALS = 12

/**
 * Whether a sweep would cost more than it can move, at the highest price of its coin and the lowest price of
 * the network's coin that the registry considers possible. Nodes and platform use it, so that a platform
 * without prices, or with false ones, cannot burn network fees on crumbs.
 * @param amount that the sweep moves, in smallest units of the asset
 * @param fee maximum fee, in smallest units of the network's coin
 */
export function isBeyondWorth(
  registry: Pick<Registry, 'asset' | 'coins'>,
  asset: Asset,
  amount: bigint,
  fee: bigint,
): boolean {
  const native = registry.asset(asset.fee_asset)!
  // Both values are in USD, with the decimals of both assets.
  const most = amount * boundOf(registry, asset, 1) * 10n ** BigInt(native.decimals)
  const least = fee * boundOf(registry, native, 0) * 10n ** BigInt(asset.decimals)
  return asset.type === 'native' ? amount < fee : most < least
}

const boundOf = ({ coins }: Pick<Registry, 'coins'>, { ticker }: Asset, at: 0 | 1): bigint =>
  parseAmount(coins[ticker]!.usd_range[at], RANGE_DECIMALS)
