import type { Asset, Network } from '@custody/chains'
import { ApiError } from '../errors.ts'
import type { Services } from '../services.ts'

/** The asset of a ticker and its network. Throws ApiError `UNSUPPORTED_ASSET`, with the ticker meant where only case differs. */
export function findAsset(services: Services, ticker: string): { asset: Asset; network: Network } {
  const asset = services.registry.asset(ticker)
  if (asset && services.networks.has(asset.network)) return { asset, network: services.registry.networkOf(asset) }
  const meant = services.registry.assets.find((each) => each.asset_name.toLowerCase() === ticker.toLowerCase() && services.networks.has(each.network))
  throw new ApiError('UNSUPPORTED_ASSET', `asset: ${ticker} is not supported${meant ? `; did you mean ${meant.asset_name}? Tickers are case-sensitive` : '; see GET /assets'}`, { field: 'asset' })
}

/** Assets that this installation can transact now. */
export function listAssets(services: Services) {
  return services.registry.assets.filter((asset) => services.networks.has(asset.network)).map((asset) => ({ ...asset, is_active: true }))
}
