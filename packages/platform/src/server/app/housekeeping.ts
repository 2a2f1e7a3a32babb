import type { Database } from '../../core/database/pool.ts'
import { forgetEvents } from '../../events/events/forget.ts'
import { deleteOldRefusals } from '../../core/http/idempotent-decision.ts'
import { forgetSignIns } from '../../console-api/people/forget.ts'
import type { Loop } from '../../core/engine/loops/loop.ts'

interface Services {
  database: Database
}

/** Maximum number of changes that are added to the counts in one statement. */
const FOLDED_MAX = 20_000

/**
 * Creates the loop that adds recent changes of long lists to their stored counts, so that few rows
 * have to be counted individually.
 */
export function foldLoop({ database }: Services): Loop {
  return {
    name: 'list counts',
    everyMs: 2000,
    due: 'exists (select 1 from list_deltas)',
    async run() {
      const row = await database.one<{ folded: number }>('select fold_list_counts($1) folded', [
        FOLDED_MAX,
      ])
      return row?.folded === FOLDED_MAX
    },
  }
}

/**
 * Creates the loop that deletes expired nonces, rate windows, quotes, refusals of idempotency keys,
 * sign-in records and old events.
 */
export function housekeepingLoop(services: Services): Loop {
  return {
    name: 'housekeeping',
    everyMs: 30_000,
    async run() {
      const now = services.database.now()
      await services.database.query(
        `delete from request_nonces where ctid in (select ctid from request_nonces
          where expires_at < $1 limit 50000)`,
        [now],
      )
      await services.database.query(
        `delete from rate_windows where window_start < $1::timestamptz - interval '5 minutes'`,
        [now],
      )
      await services.database.query(
        `delete from conversions where order_id is null
          and expires_at < $1::timestamptz - interval '1 day'`,
        [now],
      )
      await deleteOldRefusals(services.database)
      await forgetSignIns(services)
      await forgetEvents(services)
      return false
    },
  }
}
