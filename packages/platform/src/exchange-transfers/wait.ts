import type { Services } from '../engine/services.ts'
import type { AccountRow } from '../exchanges/account.ts'
import { advance, type Change } from '../exchanges/lease.ts'
import type { Venue } from '../exchanges/venue.ts'
import { TRANSFERS, type ExchangeTransferRow } from './transfer.ts'

/** How soon one is looked at again: twice as long each time, up to the most. */
const FIRST_LOOK_MS = 1000
const LOOK_MS_MAX = 60_000
/** What waits for so long is told of, once. */
const OVERDUE_MS = 3_600_000

/** Milliseconds until one that was looked at so often is looked at again. */
export const pause = (attempts: number): number =>
  Math.min(LOOK_MS_MAX, FIRST_LOOK_MS * 2 ** Math.min(Math.max(0, attempts - 1), 10))

/** What a step is given: the leased row, its account, and its venue. */
export interface Step {
  services: Services
  row: ExchangeTransferRow
  account: AccountRow
  venue: Venue
}

/** Waits for what others do; after an hour somebody is told. */
export async function waitOn(
  services: Services,
  row: ExchangeTransferRow,
  change: Omit<Change<ExchangeTransferRow>, 'again'> = {},
): Promise<void> {
  const now = services.environment.now()
  const isOverdue = row.overdue_at === null && now - row.created_at.getTime() > OVERDUE_MS
  // What has moved is looked at soon again.
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
