import type { Database } from '../src/core/database/pool.ts'
import { adminOf } from './test-database.ts'

const statements = new WeakMap<Database, Map<string, string>>()

/**
 * Empties tables and all tables that refer to them, like `truncate … cascade`, but by deleting.
 * This creates no new files for some sixty tables and their indices, and no connection must plan
 * its statements again. Triggers do not run. The platform's role may not do this, so the superuser's
 * connection is used. Later rows may be stored in another order than they
 * were inserted, so do not use this for tests that depend on the order of rows with equal times
 * (orders).
 */
export async function truncateTables(of: Database, ...tables: string[]): Promise<void> {
  const database = adminOf(of)
  const cached = statements.get(database) ?? new Map<string, string>()
  statements.set(database, cached)
  const key = tables.join()
  if (!cached.has(key)) {
    const rows = await database.query<{ name: string }>(
      `with recursive emptied (id) as (
         select unnest($1::text[])::regclass::oid
         union select conrelid from pg_constraint join emptied on confrelid = id where contype = 'f'
       ) select id::regclass::text as name from emptied`,
      [tables],
    )
    cached.set(key, rows.map(({ name }) => `delete from ${name}`).join(';'))
  }
  await database.transaction(async (tx) => {
    await tx.query('set local session_replication_role = replica')
    await tx.query(cached.get(key) as string)
  })
}
