import type { Kind } from '../../core/engine/interfaces/kind.ts'
import type { Environment } from '../../core/environment.ts'
import type { Database } from '../../core/database/pool.ts'
import type { Registry } from '@custody/chains'
import type { Networks } from '../../core/engine/networks.ts'
import type { Logger } from 'pino'
import type { Forwards, Invoices } from '../../core/engine/interfaces/listeners.ts'
import type { Aml } from '../aml/aml.ts'
import { awaitDepositUnfreezing, screenDeposit } from './screening.ts'

interface Services {
  environment: Environment
  database: Database
  registry: Registry
  networks: Networks
  log: Logger
  forwards: Forwards
  invoices: Invoices
  aml: Aml
}

/**
 * A deposit of coins from outside. The scanner finds and confirms it; at its depth it is screened
 * and credited.
 */
export const depositKind = (services: Services): Kind<'DEPOSIT'> => ({
  steps: {
    SCREENING: (row) => screenDeposit(services, row),
    FROZEN: (row) => awaitDepositUnfreezing(services, row),
  },
})
