import type { Database } from '../../core/database/pool.ts'
import { KEPT_DAYS } from './log.ts'

interface Services {
  database: Database
}

const BATCH = 5000

/**
 * Deletes published events that are older than the retention time, and deliveries of the same age.
 * Writes nothing if there are none.
 */
export async function forgetEvents(services: Services): Promise<void> {
  const { database } = services
  await database.query(
    `delete from events where (workspace_id, id) in (
       select workspace_id, id from events
         where created_at < $1::timestamptz - $2 * interval '1 day' and position is not null
       order by created_at limit $3
     )`,
    [database.now(), KEPT_DAYS, BATCH],
  )
  await database.query(
    `delete from webhook_deliveries where (workspace_id, id) in (
       select workspace_id, id from webhook_deliveries
         where created_at < $1::timestamptz - $2 * interval '1 day' and lease_token is null
       order by created_at limit $3
     )`,
    [database.now(), KEPT_DAYS, BATCH],
  )
}
