import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

/**
 * Where the local chains' port stands in for an exchange: ccxt's `urls.api` begin there as they do at the exchange's own
 * host (docs/local-exchange.md).
 */
export const localExchangeUrl = (devnetUrl: string, id: string): string => `${devnetUrl}/exchanges/${id}`

/** Whether ccxt knows an exchange of this name. Nothing of ccxt is loaded for it. */
export const isExchange = (id: string): boolean =>
  /^[a-z0-9]{2,40}$/.test(id) && existsSync(fileURLToPath(new URL(`./src/${id}.js`, import.meta.resolve('ccxt'))))
