import type { Asset, Network, Registry } from '@custody/chains'
import { ApiError } from '../../core/errors.ts'
import type { Settings } from '../../core/settings/settings.ts'
import type { Networks } from '../../core/engine/networks.ts'

interface Services {
  settings: Pick<Settings, 'allowDeprecated'>
  registry: Registry
  networks: Networks
}

/**
 * Returns the asset of a ticker and its network.
 * @param field request field that contains the ticker
 * @throws ApiError `UNSUPPORTED_ASSET`, which suggests the right ticker if only the case differs
 */
export function findAsset(
  services: Pick<Services, 'registry' | 'networks'>,
  ticker: string,
  field = 'asset',
): { asset: Asset; network: Network } {
  const asset = services.registry.asset(ticker)
  if (asset && services.networks.has(asset.network))
    return { asset, network: services.registry.networkOf(asset) }
  const meant = services.registry.assets.find(
    (each) =>
      each.asset_name.toLowerCase() === ticker.toLowerCase() && services.networks.has(each.network),
  )
  const hint =
    asset && asset.status !== 'active'
      ? whyClosed(asset)
      : meant
        ? `did you mean ${meant.asset_name}? Tickers are case-sensitive`
        : 'see GET /assets'
  throw new ApiError(
    'UNSUPPORTED_ASSET',
    `${field}: ${ticker.slice(0, 64)} is not supported; ${hint}`,
    { field },
  )
}

const whyClosed = ({ status, status_since: since, status_reason: reason }: Asset): string =>
  `it is ${status} since ${since}: ${reason}`

/**
 * Whether wallets and addresses of an asset can be created: for a deprecated asset only if the
 * operator allows it, for a retired one never.
 */
export const isOpen = (
  { settings }: Pick<Services, 'settings'>,
  { asset_name, status }: Asset,
): boolean =>
  status === 'active' || (status === 'deprecated' && settings.allowDeprecated.has(asset_name))

/** Returns why no wallet or address of an asset can be created, or null if they can. */
export function closureOf(services: Pick<Services, 'settings'>, asset: Asset) {
  const { status, status_since: since, status_reason: reason } = asset
  return status === 'active' || isOpen(services, asset) ? null : { status, since, reason }
}

/**
 * Checks that wallets and addresses of an asset can be created.
 * @throws ApiError `ASSET_CLOSED` if they cannot
 */
export function assertOpen(
  services: Pick<Services, 'settings'>,
  asset: Asset,
  field = 'asset',
): void {
  if (isOpen(services, asset)) return
  const message = `${field}: ${asset.asset_name} accepts no new wallets and addresses: ${whyClosed(asset)}. The balance can still be sent`
  throw new ApiError('ASSET_CLOSED', message, { field })
}

/**
 * Like {@link findAsset}, for endpoints that create a wallet or an address.
 * @throws ApiError `UNSUPPORTED_ASSET`, `ASSET_CLOSED`
 */
export function findOpenAsset(
  services: Services,
  ticker: string,
  field = 'asset',
): { asset: Asset; network: Network } {
  const asset = services.registry.asset(ticker)
  if (asset) assertOpen(services, asset, field)
  return findAsset(services, ticker, field)
}

/**
 * Checks the ticker in a filter of a history, because a misspelled one would return an empty list.
 * An asset whose network is not connected still has a history.
 * @throws ApiError `UNSUPPORTED_ASSET`
 */
export function assertKnownAsset(
  services: Pick<Services, 'registry' | 'networks'>,
  ticker: string | undefined,
): void {
  if (ticker !== undefined && !services.registry.asset(ticker)) findAsset(services, ticker)
}

/**
 * Returns the assets that this installation can transact now, without retired ones. `is_active`:
 * wallets and addresses can be created.
 */
export function listAssets(services: Services) {
  return services.registry.assets
    .filter((asset) => services.networks.has(asset.network) && asset.status !== 'retired')
    .map((asset) => ({ ...asset, is_active: isOpen(services, asset) }))
}
