import type { Database } from '../../core/database/pool.ts'
import { FORGOTTEN_AFTER_MS } from './failures.ts'

interface Services {
  database: Database
}

/** Time in milliseconds after which ended sessions are deleted. The audit log refers to them. */
const SESSIONS_KEPT_MS = 90 * 86_400_000
const BATCH = 10_000

/** Deletes unfinished steps, old failures, and sessions that ended long ago. */
export async function forgetSignIns({ database }: Services): Promise<void> {
  const now = database.now()
  const before = (ms: number) => new Date(now.getTime() - ms)
  await database.query(
    `delete from sign_in_steps where ctid in (select ctid from sign_in_steps where expires_at < $1
      limit $2)`,
    [now, BATCH],
  )
  await database.query(
    `delete from sign_in_failures where ctid in (
       select ctid from sign_in_failures where last_at < $1
         and (locked_until is null or locked_until < $2) limit $3)`,
    [before(FORGOTTEN_AFTER_MS), now, BATCH],
  )
  await database.query(
    'delete from sessions where ctid in (select ctid from sessions where expires_at < $1 limit $2)',
    [before(SESSIONS_KEPT_MS), BATCH],
  )
}
