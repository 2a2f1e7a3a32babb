import type { Environment } from '../../core/environment.ts'
import type { Database } from '../../core/database/pool.ts'
import type { Registry } from '@custody/chains'
import type { Logger } from 'pino'
import type { AccountRow } from '../exchanges/account.ts'
import { advance, type Change } from '../exchanges/lease.ts'
import type { Venue } from '../exchanges/venue.ts'
import { TRANSFERS, type ExchangeTransferRow } from './transfer.ts'

interface Services {
  environment: Environment
  database: Database
  registry: Registry
  log: Logger
}

/**
 * First delay in milliseconds until a transfer is queried again. It doubles each time, up to the
 * maximum.
 */
const FIRST_LOOK_MS = 1000
const LOOK_MS_MAX = 60_000
/** Time in milliseconds of waiting after which an alert is raised, once. */
const OVERDUE_MS = 3_600_000

/** Returns the delay after this number of attempts, in milliseconds. */
export const pause = (attempts: number): number =>
  Math.min(LOOK_MS_MAX, FIRST_LOOK_MS * 2 ** Math.min(Math.max(0, attempts - 1), 10))

/** Arguments of a step: the leased row, its account, and its exchange. */
export interface Step {
  services: Services
  row: ExchangeTransferRow
  account: AccountRow
  venue: Venue
}

/**
 * Schedules the next check of a step that waits for another party, such as the exchange; after an
 * hour an alert is raised.
 */
export async function waitOn(
  services: Pick<Services, 'environment' | 'database' | 'log'>,
  row: ExchangeTransferRow,
  change: Omit<Change<ExchangeTransferRow>, 'again'> = {},
): Promise<void> {
  const now = services.environment.now()
  const isOverdue = row.overdue_at === null && now - row.created_at.getTime() > OVERDUE_MS
  // The delay starts again from the minimum after a change of state.
  const attempts = change.state !== undefined && change.state !== row.state ? 1 : row.attempts
  const again = pause(attempts)
  await services.database.transaction((tx) =>
    advance(tx, TRANSFERS, row, {
      ...change,
      ...(isOverdue ? { overdue_at: new Date(now) } : {}),
      again,
    }),
  )
  if (isOverdue) {
    services.log.error(
      {
        transfer: row.id,
        exchange: row.exchange,
        direction: row.direction,
        asset: row.asset,
        state: row.state,
      },
      'a transfer between wallet and exchange takes longer than an hour: check it at the exchange',
    )
  }
}
