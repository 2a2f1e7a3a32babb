import type { Asset, Network } from '@custody/chains'
import { ApiError } from '../errors.ts'
import type { Services } from '../engine/services.ts'

/**
 * The asset of a ticker and its network.
 * @param field where the caller named it
 * @throws ApiError `UNSUPPORTED_ASSET`, with the ticker meant where only case differs
 */
export function findAsset(services: Services, ticker: string, field = 'asset'): { asset: Asset; network: Network } {
  const asset = services.registry.asset(ticker)
  if (asset && services.networks.has(asset.network)) return { asset, network: services.registry.networkOf(asset) }
  const meant = services.registry.assets.find(
    (each) => each.asset_name.toLowerCase() === ticker.toLowerCase() && services.networks.has(each.network)
  )
  const hint = meant ? `did you mean ${meant.asset_name}? Tickers are case-sensitive` : 'see GET /assets'
  throw new ApiError('UNSUPPORTED_ASSET', `${field}: ${ticker.slice(0, 64)} is not supported; ${hint}`, { field })
}

/**
 * For filters of histories: a misspelt ticker would look like an empty one; one whose network is away now has a history all the same.
 * @throws ApiError `UNSUPPORTED_ASSET`
 */
export function assertKnownAsset(services: Services, ticker: string | undefined): void {
  if (ticker !== undefined && !services.registry.asset(ticker)) findAsset(services, ticker)
}

/** Assets that this installation can transact now. */
export function listAssets(services: Services) {
  return services.registry.assets.filter((asset) => services.networks.has(asset.network)).map((asset) => ({ ...asset, is_active: true }))
}
