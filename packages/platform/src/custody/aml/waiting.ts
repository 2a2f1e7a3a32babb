import { emit } from '../../core/ledger/post.ts'
import type { Environment } from '../../core/environment.ts'
import type { Database } from '../../core/database/pool.ts'
import type { Logger } from 'pino'
import type { TransactionRow } from '../../core/engine/transaction.ts'
import { advance } from '../../core/engine/lease.ts'
import type { ScreeningWaits } from './screen.ts'

interface Services {
  environment: Environment
  database: Database
  log: Logger
}

const RETRY_MIN_MS = 1000
const RETRY_MAX_MS = 5 * 60_000
/**
 * Time in milliseconds after which the operator is alerted. The transaction is still retried and
 * never passes without screening.
 */
const PATIENCE_MS = 6 * 60 * 60_000

/** Returns the time in milliseconds after which a failed attempt is repeated. */
const backoffMs = (attempts: number): number =>
  Math.min(RETRY_MAX_MS, RETRY_MIN_MS * 2 ** Math.min(20, Math.max(0, attempts - 1)))

/**
 * Keeps a transaction for which the provider gave no clear response in its state and schedules a
 * retry; after six hours an alert is emitted.
 */
export async function waitForProvider(
  services: Services,
  row: TransactionRow,
  cause: ScreeningWaits,
): Promise<void> {
  const now = services.environment.now()
  const since = Number(row.plan.screening_since ?? now)
  const alert = now - since >= PATIENCE_MS && row.plan.screening_alerted === undefined
  if (row.attempts === 1) {
    services.log.warn(
      { transaction: row.id, provider: cause.provider, err: cause.message },
      'a transaction is waiting for its screening',
    )
  }
  if (alert) {
    services.log.error(
      {
        alert: 'aml.screening_overdue',
        transaction: row.id,
        provider: cause.provider,
        since: new Date(since).toISOString(),
        err: cause.message,
      },
      'a transaction has waited six hours for its screening; it stays on hold',
    )
  }
  await services.database.transaction(async (tx) => {
    if (alert) {
      await emit(
        tx,
        row.workspace_id,
        row.sub_account_id,
        'aml.screening_overdue',
        JSON.stringify({
          transaction_id: row.id,
          provider: cause.provider,
          since: new Date(since).toISOString(),
          reason: cause.message,
        }),
      )
    }
    await advance(tx, row, {
      waits: 'SCREENING',
      last_error: `${cause.provider}: ${cause.message}`.slice(0, 500),
      run_in_ms: cause.retryAfterMs ?? backoffMs(row.attempts),
      plan: { screening_since: String(since), ...(alert ? { screening_alerted: '1' } : {}) },
    })
  })
}

/** Plan fields that are removed when screening is completed. */
export const NO_WAIT = { screening_since: null, screening_alerted: null } as const
