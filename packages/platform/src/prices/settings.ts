import type { Fetch, Registry } from '@custody/chains'
import type { Environment } from '../environment.ts'
import { coinGecko } from './coingecko.ts'
import { localExchangeUrl } from '../ccxt.ts'
import type { PriceSettings } from '../settings/settings.ts'
import { exchange } from './exchange.ts'
import type { PriceSource } from './source.ts'

/** What an installation sets for prices. */
export interface PricesInstallation {
  coinGeckoUrl: string
  coinGeckoKey: { header: string; value: string } | null
  coinGeckoIds: Record<string, string>
  /** Exchanges by ccxt's names, with a base URL where it is not their own. */
  exchanges: { id: string; url: string | null }[]
  everyMs: number
}

const PUBLIC_URL = 'https://api.coingecko.com/api/v3'
const PRO_URL = 'https://pro-api.coingecko.com/api/v3'
const LOCAL_EVERY_MS = 5000
const EVERY_MS = 20_000

/**
 * What prices are read with.
 * @param devnetUrl base of the local chains, whose faces stand in for the sources; null: the
 *   sources themselves
 * @param registry whose coins have prices
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
    // The registry's names of coins, which the setting corrects.
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

/** The sources of an installation. */
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
