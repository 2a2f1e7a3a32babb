import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import type { Fetch, Registry } from '@custody/chains'
import type { Environment } from '../environment.ts'
import { coinGecko } from './coingecko.ts'
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
const LOCAL_EVERY_S = 1
const EVERY_S = 20

/** CoinGecko's names of every coin: the registry's, which the setting corrects. */
function ids(registry: Registry): Record<string, string> {
  const known = Object.fromEntries(Object.values(registry.coins).map((coin) => [coin.ticker, coin.coingecko_id]))
  const pairs = (process.env['CUSTODY_COINGECKO_IDS'] || '').split(',').filter((pair) => pair.trim() !== '')
  const corrections = pairs.map((pair) => {
    const [, coin = '', id = ''] = /^\s*([^\s=]+)\s*=\s*([a-z0-9][a-z0-9._-]*)\s*$/.exec(pair) ?? []
    if (coin === '') throw new Error(`CUSTODY_COINGECKO_IDS: "${pair}" is not COIN=id`)
    if (!Object.hasOwn(known, coin)) throw new Error(
      `CUSTODY_COINGECKO_IDS: there is no coin ${coin}: one of ${Object.keys(known).join(', ')}`
    )
    return [coin, id] as const
  })
  return { ...known, ...Object.fromEntries(corrections) }
}

function exchanges(devnetUrl: string | null): PricesInstallation['exchanges'] {
  const text = process.env['CUSTODY_PRICE_EXCHANGES'] ?? 'kraken'
  const names = text.split(',').map((name) => name.trim()).filter((name) => name !== '')
  for (const id of names) {
    if (!/^[a-z0-9]{2,40}$/.test(id) || !existsSync(fileURLToPath(new URL(`./src/${id}.js`, import.meta.resolve('ccxt'))))) throw new Error(`CUSTODY_PRICE_EXCHANGES: ccxt knows no exchange "${id}"`)
    if (devnetUrl !== null && id !== 'kraken') throw new Error(`CUSTODY_PRICE_EXCHANGES: the local chains come with kraken alone, not "${id}"`)
  }
  return [...new Set(names)].map((id) => ({ id, url: devnetUrl === null ? null : `${devnetUrl}/prices/${id}` }))
}

/**
 * Reads the installation's settings from the environment.
 * @param devnetUrl base of the local chains, whose faces stand in for the sources; null: the sources themselves
 * @param registry whose coins have prices
 * @throws Error with a sentence that names the setting
 */
export function readPricesInstallation(devnetUrl: string | null, registry: Registry): PricesInstallation {
  const plan = process.env['CUSTODY_COINGECKO_PLAN'] || 'demo'
  if (plan !== 'demo' && plan !== 'pro') throw new Error(`CUSTODY_COINGECKO_PLAN=${plan}: must be demo or pro`)
  const key = process.env['CUSTODY_COINGECKO_KEY'] || null
  if (plan === 'pro' && key === null) throw new Error('CUSTODY_COINGECKO_PLAN=pro: needs CUSTODY_COINGECKO_KEY')
  const url = process.env['CUSTODY_COINGECKO_URL'] || (devnetUrl !== null ? `${devnetUrl}/prices/coingecko` : plan === 'pro' ? PRO_URL : PUBLIC_URL)
  if (!/^https?:\/\/[^\s]+$/.test(url)) throw new Error('CUSTODY_COINGECKO_URL: must be an http(s) URL')
  const seconds = Number(process.env['CUSTODY_PRICE_REFRESH_S'] || (devnetUrl === null ? EVERY_S : LOCAL_EVERY_S))
  if (!Number.isInteger(seconds) || seconds < 1 || seconds > 50) throw new Error('CUSTODY_PRICE_REFRESH_S: must be an integer from 1 to 50')
  return {
    coinGeckoUrl: url.replace(/\/+$/, ''), coinGeckoIds: ids(registry),
    coinGeckoKey: key === null ? null : { header: `x-cg-${plan}-api-key`, value: key },
    exchanges: exchanges(devnetUrl), everyMs: seconds * 1000,
  }
}

/** The sources of an installation. */
export function priceSources(installation: PricesInstallation, environment: Environment, fetch: Fetch): PriceSource[] {
  return [
    coinGecko({ url: installation.coinGeckoUrl, key: installation.coinGeckoKey, ids: installation.coinGeckoIds, fetch }),
    ...installation.exchanges.map(({ id, url }) => exchange({ id, url, environment, fetch })),
  ]
}
