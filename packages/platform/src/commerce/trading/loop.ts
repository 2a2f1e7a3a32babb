import type { Loop } from '../../core/engine/loops/loop.ts'
import type { Services } from '../../core/engine/services.ts'
import { leasedLoop, workOn as work } from '../exchanges/work.ts'
import type { Notifier } from '../../core/ledger/notifier.ts'
import { ORDERS } from './lease.ts'
import type { OrderRow } from './order.ts'
import { stepOrder } from './step.ts'

/** Services of orders. */
interface Trading {
  /** Notified when an order of this process is due. */
  due: Notifier
}

declare module '../../core/engine/services.ts' {
  interface Services {
    trading: Trading
  }
}

/** Creates the loop that executes the steps of due orders. */
export const orderLoop = (services: Services): Loop =>
  leasedLoop(services, ORDERS, { name: 'orders', due: services.trading.due, step: stepOrder })

/** Executes one step of a leased order. */
export const workOn = (services: Services, row: OrderRow): Promise<void> =>
  work(services, ORDERS, row, stepOrder)
