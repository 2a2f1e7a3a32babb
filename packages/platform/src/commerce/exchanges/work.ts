import { reasonOf } from '@custody/chains/reason'
import type { Loop } from '../../core/engine/loops/loop.ts'
import type { Settings } from '../../core/settings/settings.ts'
import type { Environment } from '../../core/environment.ts'
import type { Database } from '../../core/database/pool.ts'
import type { Logger } from 'pino'
import type { Notifier } from '../../core/ledger/notifier.ts'
import { claim, hasDue, type Leased, type LeasedTable } from './lease.ts'

interface Services {
  settings: Pick<Settings, 'pollMs'>
  environment: Environment
  database: Database
  log: Logger
}

const AT_ONCE = 16
/**
 * Maximum number of concurrent steps of one account, so that a slow exchange does not block the
 * others.
 */
const OF_AN_ACCOUNT = 4
const ERROR_WAIT_MS = 10_000

/** One step of a row that this worker has leased. */
export type StepOf<Row> = (row: Row) => Promise<void>

/**
 * Creates a loop that works on due rows, several concurrently, but few of one account.
 * @param due notified when a row becomes due in this process
 */
export function leasedLoop<Row extends Leased>(
  services: Services,
  table: LeasedTable<Row>,
  { name, due, step }: { name: string; due: Notifier; step: StepOf<Row> },
): Loop {
  const busy = new Map<string, number>()
  const running = new Set<Promise<void>>()
  const start = (row: Row): void => {
    busy.set(row.account_id, (busy.get(row.account_id) ?? 0) + 1)
    const work = workOn(services, table, row, step).finally(() => {
      busy.set(row.account_id, (busy.get(row.account_id) ?? 1) - 1)
      running.delete(work)
      due.ring()
    })
    running.add(work)
  }
  return {
    name,
    everyMs: services.settings.pollMs,
    due: hasDue(table),
    notifier: due,
    async run(signal) {
      const full = [...busy]
        .filter(([, count]) => count >= OF_AN_ACCOUNT)
        .map(([account]) => account)
      const row = running.size < AT_ONCE ? await claim(services, table, full) : undefined
      if (row) start(row)
      // If no row can be started, the loop waits for the steps in progress, so that they have ended
      // when it ends.
      else if (running.size > 0) await due.wait(services.settings.pollMs, signal)
      if (signal.aborted) await Promise.all(running)
      return row !== undefined || running.size > 0
    },
  }
}

/** Runs one step. A failure of one row does not delay others. */
export async function workOn<Row extends Leased>(
  services: Pick<Services, 'environment' | 'database' | 'log'>,
  { name }: LeasedTable<Row>,
  row: Row,
  step: StepOf<Row>,
): Promise<void> {
  try {
    await step(row)
  } catch (error) {
    services.log.warn(
      { [name]: row.id, err: reasonOf(error) },
      'a processing step of an order or exchange transfer failed; it is retried',
    )
    await services.database
      .query(
        `update ${name} set lease_until = null, lease_token = null, next_run_at = $3
       where workspace_id = $4 and id = $1 and lease_token = $2`,
        [
          row.id,
          row.lease_token,
          new Date(services.environment.now() + ERROR_WAIT_MS),
          row.workspace_id,
        ],
      )
      .catch(() => undefined)
  }
}
