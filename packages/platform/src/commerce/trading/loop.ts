import type { Loop } from '../../core/engine/loops/loop.ts'
import type { Settings } from '../../core/settings/settings.ts'
import type { Environment } from '../../core/environment.ts'
import type { Database } from '../../core/database/pool.ts'
import type { Metrics } from '../../core/metrics.ts'
import type { Logger } from 'pino'
import type { Aml } from '../../custody/aml/aml.ts'
import type { Venues } from '../exchanges/venues.ts'
import { leasedLoop, workOn as work } from '../exchanges/work.ts'
import type { Notifier } from '../../core/ledger/notifier.ts'
import { ORDERS } from './lease.ts'
import type { OrderRow } from './order.ts'
import { stepOrder } from './step.ts'

interface Services {
  settings: Pick<Settings, 'pollMs'>
  environment: Environment
  database: Database
  metrics: Metrics
  log: Logger
  aml: Aml
  exchanges: Venues
  trading: Trading
}

/** Services of orders. */
export interface Trading {
  /** Notified when an order of this process is due. */
  due: Notifier
}

/** Creates the loop that executes the steps of due orders. */
export const orderLoop = (services: Services): Loop =>
  leasedLoop(services, ORDERS, {
    name: 'orders',
    due: services.trading.due,
    step: (row) => stepOrder(services, row),
  })

/** Executes one step of a leased order. */
export const workOn = (services: Services, row: OrderRow): Promise<void> =>
  work(services, ORDERS, row, (leased) => stepOrder(services, leased))
