import { z } from 'zod'
import { LIST_MAX } from '../../core/bounds.ts'
import { withTimeout } from '../../core/engine/with-timeout.ts'
import { endpoint } from '../../core/http/endpoint.ts'
import { accountShape, findAccount, idParam, presentAccount } from './account.ts'
import { balanceShape, presentBalances } from './balances.ts'
import { reconcileAccount } from './reconcile.ts'
import type { Environment } from '../../core/environment.ts'
import type { Database } from '../../core/database/pool.ts'
import type { Logger } from 'pino'
import type { DatabaseHold } from '../../core/engine/database-hold.ts'
import type { Aml } from '../../custody/aml/aml.ts'
import type { Prices } from '../../custody/prices/prices.ts'
import type { Venues } from './venues.ts'

interface Services {
  environment: Environment
  database: Database
  log: Logger
  hold: DatabaseHold
  aml: Aml
  prices: Prices
  exchanges: Venues
}

/** Age in milliseconds up to which stored balances are returned without a new read. */
const FRESH_MS = 5000

/**
 * Returns one account with its balances: read from the exchange if it responds soon, otherwise the
 * stored ones with their age.
 */
export const readAccount = endpoint({
  id: 'readExchangeAccount',
  tag: 'Exchange accounts',
  description: 'Returns one account with its balances at the exchange.',
  errors: ['NOT_FOUND', 'EXCHANGE_KEY_REFUSED', 'EXCHANGE_UNAVAILABLE', 'EXCHANGE_UNSUPPORTED'],
  method: 'GET',
  path: '/dac/v1/exchange-accounts/{id}',
  summary: 'Read an exchange account',
  access: 'read',
  params: idParam,
  response: accountShape
    .extend({
      balances: z.array(balanceShape).max(LIST_MAX),
      balances_at: z.string(),
      balances_age_ms: z.int().min(0).meta({ description: 'Age of the balances, in milliseconds' }),
    })
    .meta({ id: 'ExchangeAccountWithBalances' }),
  async handler({ caller, params }, services: Services) {
    let row = await findAccount(services.database, caller, params.id)
    const isOld = services.environment.now() - row.balances_at.getTime() > FRESH_MS
    if (isOld && services.hold.because === null) {
      await withTimeout(services.environment, reconcileAccount(services, row), undefined)
      row = await findAccount(services.database, caller, params.id)
    }
    return {
      body: {
        ...presentAccount(row),
        balances: await presentBalances(services, row),
        balances_at: row.balances_at.toISOString(),
        balances_age_ms: Math.max(0, services.environment.now() - row.balances_at.getTime()),
      },
    }
  },
})
