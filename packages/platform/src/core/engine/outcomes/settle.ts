import { stringifyJson } from '@custody/request-auth'
import type { Queryable } from '../../database/pool.ts'
import { emit } from '../../ledger/post.ts'
import { recordEnd } from './record-end.ts'
import { advance } from '../lease.ts'
import { presentTransaction } from '../present.ts'
import type { Outcome } from '../interfaces/kind.ts'
import type { Environment } from '../../environment.ts'
import type { Registry } from '@custody/chains'
import type { Metrics } from '../../metrics.ts'
import type { TransactionRow } from '../transaction.ts'

interface Services {
  environment: Environment
  registry: Registry
  metrics: Metrics
}

const CANCELLED =
  'it was cancelled; the amount was released, the network fee of the cancellation was spent'
const REVERTED =
  'the chain executed the transaction and reverted it; the amount was released, the network fee was spent'

/**
 * Writes the public end of a transaction that its kind has booked.
 * @param reported whether an event is emitted for the caller
 */
export async function endTransaction(
  services: Services,
  tx: Queryable,
  row: TransactionRow,
  o: Outcome,
  reported: boolean,
): Promise<void> {
  const end = o.succeeded
    ? {
        state: 'CONFIRMED' as const,
        status: 'confirmed' as const,
        confirmed_at: new Date(services.environment.now()),
      }
    : {
        state: o.cancelled ? ('CANCELLED' as const) : ('REVERTED' as const),
        status: 'failed' as const,
        failure_reason: o.cancelled ? CANCELLED : REVERTED,
      }
  await advance(tx, row, {
    ...end,
    ...(row.hash === null ? {} : { hash: row.hash }),
    fee: o.fee,
    confirmations: o.confirmations,
    last_error: null,
  })
  recordEnd(services, row, end.status)
  if (!reported) return
  const shown = presentTransaction(
    {
      ...row,
      confirmed_at: null,
      failure_reason: null,
      ...end,
      fee: o.fee.toString(),
      confirmations: o.confirmations,
    },
    services.registry,
  )
  await emit(
    tx,
    row.workspace_id,
    row.sub_account_id,
    o.succeeded ? 'transaction.confirmed' : 'transaction.failed',
    stringifyJson(shown),
  )
}
