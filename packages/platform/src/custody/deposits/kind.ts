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
  states: [
    { state: 'CONFIRMING', next: ['SCREENING', 'CREDITED', 'SUSPENSE', 'REORGED'] },
    {
      state: 'SCREENING',
      run: (row) => screenDeposit(services, row),
      next: ['FROZEN', 'CREDITED', 'SUSPENSE', 'REORGED'],
    },
    {
      state: 'FROZEN',
      run: (row) => awaitDepositUnfreezing(services, row),
      next: ['SCREENING', 'REORGED'],
    },
    // Until it is assigned to a wallet.
    { state: 'SUSPENSE', next: ['CREDITED', 'REORGED'] },
    { state: 'CREDITED', next: ['SWEPT', 'REORGED'] },
    { state: 'SWEPT', next: ['REORGED'] },
    { state: 'REORGED', next: ['CONFIRMING'] },
  ],
})
