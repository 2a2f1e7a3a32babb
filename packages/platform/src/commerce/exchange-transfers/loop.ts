import type { Loop } from '../../core/engine/loops/loop.ts'
import type { Services } from '../../core/engine/services.ts'
import { leasedLoop } from '../exchanges/work.ts'
import type { Notifier } from '../../core/ledger/notifier.ts'
import { stepTransfer } from './step.ts'
import { TRANSFERS } from './transfer.ts'

/** Services of transfers between wallets and exchanges. */
interface ExchangeTransfers {
  /** Notified when a transfer of this process is due. */
  due: Notifier
}

declare module '../../core/engine/services.ts' {
  interface Services {
    exchangeTransfers: ExchangeTransfers
  }
}

/** Creates the loop that executes the due steps of transfers to and from exchanges. */
export const exchangeTransferLoop = (services: Services): Loop =>
  leasedLoop(services, TRANSFERS, {
    name: 'exchange transfers',
    due: services.exchangeTransfers.due,
    step: stepTransfer,
  })
