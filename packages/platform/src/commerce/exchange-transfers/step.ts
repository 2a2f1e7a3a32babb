import { reasonOf } from '@custody/chains/reason'
import type { Environment } from '../../core/environment.ts'
import type { Database } from '../../core/database/pool.ts'
import type { Registry } from '@custody/chains'
import type { Logger } from 'pino'
import type { Aml } from '../../custody/aml/aml.ts'
import type { Venues } from '../exchanges/venues.ts'
import { venueOf, type AccountRow } from '../exchanges/account.ts'
import { advance, LeaseLost } from '../exchanges/lease.ts'
import { noteRefused } from '../exchanges/reconcile.ts'
import { VenueError } from '../exchanges/venue.ts'
import { bringOut } from './from-exchange.ts'
import { bringIn } from './to-exchange.ts'
import { TRANSFERS, type ExchangeTransferRow } from './transfer.ts'
import { pause, type Step } from './wait.ts'

interface Services {
  environment: Environment
  database: Database
  registry: Registry
  log: Logger
  aml: Aml
  exchanges: Venues
}

const REFUSED_WAIT_MS = 30_000

/** Executes one step of a leased transfer. */
export async function stepTransfer(services: Services, row: ExchangeTransferRow): Promise<void> {
  try {
    const account = (await services.database.one<AccountRow>(
      'select * from exchange_accounts where id = $1',
      [row.account_id],
    )) as AccountRow
    const step: Step = { services, row, account, venue: await venueOf(services, account) }
    await (row.direction === 'to_exchange' ? bringIn(step) : bringOut(step))
  } catch (error) {
    if (error instanceof LeaseLost) return
    if (!(error instanceof VenueError)) throw error
    if (error.kind === 'refused') await noteRefused(services, row.account_id, error)
    const again = error.kind === 'refused' ? REFUSED_WAIT_MS : pause(row.attempts)
    await services.database
      .transaction((tx) =>
        advance(tx, TRANSFERS, row, { last_error: reasonOf(error).slice(0, 200), again }),
      )
      .catch((lost: unknown) => {
        if (!(lost instanceof LeaseLost)) throw lost
      })
  }
}
