import type { Loop } from '../../core/engine/loops/loop.ts'
import type { Settings } from '../../core/settings/settings.ts'
import type { Environment } from '../../core/environment.ts'
import type { Database } from '../../core/database/pool.ts'
import type { Registry } from '@custody/chains'
import type { Logger } from 'pino'
import type { Aml } from '../../custody/aml/aml.ts'
import type { Venues } from '../exchanges/venues.ts'
import { leasedLoop } from '../exchanges/work.ts'
import type { Notifier } from '../../core/ledger/notifier.ts'
import { stepTransfer } from './step.ts'
import { TRANSFERS } from './transfer.ts'

interface Services {
  settings: Pick<Settings, 'pollMs'>
  environment: Environment
  database: Database
  registry: Registry
  log: Logger
  aml: Aml
  exchanges: Venues
  exchangeTransfers: ExchangeTransfers
}

/** Services of transfers between wallets and exchanges. */
export interface ExchangeTransfers {
  /** Notified when a transfer of this process is due. */
  due: Notifier
}

/** Creates the loop that executes the due steps of transfers to and from exchanges. */
export const exchangeTransferLoop = (services: Services): Loop =>
  leasedLoop(services, TRANSFERS, {
    name: 'exchange transfers',
    due: services.exchangeTransfers.due,
    step: (row) => stepTransfer(services, row),
  })
