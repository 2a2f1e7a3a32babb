import type { Fetch, Registry } from '@custody/chains'
import type { Environment } from '../../core/environment.ts'
import { coinGecko } from './coingecko.ts'
import { localExchangeUrl } from '../../core/ccxt.ts'
import type { PriceSettings } from '../../core/settings/settings.ts'
import { exchange } from './exchange.ts'
import type { PriceSource } from './source.ts'

/** An installation's price settings. */
export interface PricesInstallation {
  coinGeckoUrl: string
  coinGeckoKey: { header: string; value: string } | null
  coinGeckoIds: Record<string, string>
  /** Exchanges by ccxt's names, with a base URL if it differs from the exchange's own. */
  exchanges: { id: string; url: string | null }[]
  everyMs: number
}

const PUBLIC_URL = 'https://api.coingecko.com/api/v3'
const PRO_URL = 'https://pro-api.coingecko.com/api/v3'
const LOCAL_EVERY_MS = 5000
const EVERY_MS = 20_000

/**
 * Returns the settings with which prices are read.
 * @param devnetUrl base URL of the local chains, whose price source emulators are used; null: the
 *   real sources
 * @param registry registry whose coins have prices
 */
export function pricesInstallation(
  settings: PriceSettings,
  devnetUrl: string | null,
  registry: Registry,
): PricesInstallation {
  const { coinGeckoPlan: plan, coinGeckoKey: key } = settings
  return {
    coinGeckoUrl:
      settings.coinGeckoUrl ??
      (devnetUrl !== null
        ? `${devnetUrl}/prices/coingecko`
        : plan === 'pro'
          ? PRO_URL
          : PUBLIC_URL),
    coinGeckoKey: key === null ? null : { header: `x-cg-${plan}-api-key`, value: key },
    // The registry's coin ids, which the setting can override.
    coinGeckoIds: {
      ...Object.fromEntries(
        Object.values(registry.coins).map((coin) => [coin.ticker, coin.coingecko_id]),
      ),
      ...settings.coinGeckoIds,
    },
    exchanges: settings.exchanges.map((id) => ({
      id,
      url: devnetUrl === null ? null : localExchangeUrl(devnetUrl, id),
    })),
    everyMs: settings.everyMs ?? (devnetUrl === null ? EVERY_MS : LOCAL_EVERY_MS),
  }
}

/** Returns the price sources of an installation. */
export function priceSources(
  installation: PricesInstallation,
  environment: Environment,
  fetch: Fetch,
): PriceSource[] {
  return [
    coinGecko({
      url: installation.coinGeckoUrl,
      key: installation.coinGeckoKey,
      ids: installation.coinGeckoIds,
      fetch,
    }),
    ...installation.exchanges.map(({ id, url }) => exchange({ id, url, environment, fetch })),
  ]
}
