import type { Fetch } from '@custody/chains'
import { localExchangeUrl } from '../../core/ccxt.ts'
import type { Queryable } from '../../core/database/pool.ts'
import type { Environment } from '../../core/environment.ts'
import { databaseNonces } from './nonces.ts'
import { Venues } from './venues.ts'

/** Exchanges that the local network emulates, with their production protocols. */
const LOCAL = ['kraken', 'binance']

/**
 * Creates the exchanges of an installation.
 * @param devnetUrl base URL of the local chains, whose exchanges replace the real ones and are the
 *   only ones available; null: the real exchanges
 */
export function createExchanges(o: {
  devnetUrl: string | null
  database: Queryable
  environment: Environment
  fetch: Fetch
}): Venues {
  const { devnetUrl, database, environment, fetch } = o
  return new Venues({
    urls:
      devnetUrl === null
        ? {}
        : Object.fromEntries(LOCAL.map((name) => [name, localExchangeUrl(devnetUrl, name)])),
    only: devnetUrl === null ? null : LOCAL,
    environment,
    fetch,
    nonces: databaseNonces(database),
  })
}
