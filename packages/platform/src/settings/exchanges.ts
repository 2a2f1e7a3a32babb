import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

/** Whether ccxt knows an exchange of this name. Nothing of ccxt is loaded for it. */
export const isExchange = (id: string): boolean =>
  /^[a-z0-9]{2,40}$/.test(id) && existsSync(fileURLToPath(new URL(`./src/${id}.js`, import.meta.resolve('ccxt'))))
