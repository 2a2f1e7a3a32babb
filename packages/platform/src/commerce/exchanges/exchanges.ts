import { byMode } from '@custody/chains/mode'
import type { Fetch } from '@custody/chains'
import { localExchangeUrl } from '../../core/ccxt.ts'
import type { Queryable } from '../../core/database/pool.ts'
import type { Environment } from '../../core/environment.ts'
import type { Settings } from '../../core/settings/settings.ts'
import { databaseNonces } from './nonces.ts'
import { Venues } from './venues.ts'

/** Exchanges that the local network emulates, with their production protocols. */
const LOCAL = ['kraken', 'binance']

/**
 * Creates the exchanges of an installation.
 * @param devnetUrl base URL of the local chains, whose exchanges replace the real ones and are the
 *   only ones available; null: the real exchanges, except in a rehearsal, to whose addresses a real
 *   exchange would send real coins
 */
export function createExchanges(o: {
  settings: Pick<Settings, 'network'>
  devnetUrl: string | null
  database: Queryable
  environment: Environment
  fetch: Fetch
}): Venues {
  const { settings, devnetUrl, database, environment, fetch } = o
  return new Venues({
    urls:
      devnetUrl === null
        ? {}
        : Object.fromEntries(LOCAL.map((name) => [name, localExchangeUrl(devnetUrl, name)])),
    only: byMode(settings.network, { local: LOCAL, regtest: [], mainnet: null }),
    environment,
    fetch,
    nonces: databaseNonces(database),
  })
}
