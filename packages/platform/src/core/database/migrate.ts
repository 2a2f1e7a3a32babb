import { readdirSync, readFileSync } from 'node:fs'
import { applyStateSchemas, hasStateSchemas } from './state-schemas.ts'
import { applyFunctions, hasFunctions } from './functions.ts'
import type { Database, Queryable } from './pool.ts'
import { applyTableRights, hasTableRights } from './table-rights.ts'

const LOCK = 7_205_160_001
/** Folder of the numbered files. */
export const MIGRATIONS = new URL('./migrations/', import.meta.url)

/**
 * Returns the migrations that {@link migrate} would apply, those that it would reject because they
 * are of a newer version, and those that are applied already. Reads only.
 */
export async function compareMigrations(
  database: Queryable,
): Promise<{ pending: string[]; beyond: string[]; applied: string[] }> {
  const files = readdirSync(MIGRATIONS)
    .filter((file) => file.endsWith('.sql'))
    .sort()
  const there = await database.one<{ there: string | null }>(
    `select to_regclass('migrations')::text as there`,
  )
  const rows = there?.there
    ? await database.query<{ name: string }>('select name from migrations')
    : []
  const existing = new Set(rows.map(({ name }) => name))
  return {
    pending: files.filter((name) => !existing.has(name)),
    applied: files.filter((name) => existing.has(name)),
    beyond: [...existing].filter((name) => !files.includes(name)).sort(),
  }
}

/**
 * Waits until no other process migrates the database, and blocks other migrations until the end of
 * the transaction.
 */
export const lockMigrations = (tx: Queryable): Promise<unknown> =>
  tx.query('select pg_advisory_xact_lock($1)', [LOCK])

const tablesOfNewerVersion = (beyond: readonly string[]): Error =>
  // The rows of a newer version may have formats that this version does not know.
  new Error(
    `the database was changed by a newer version (${beyond.join(', ')}): start that version, or restore a backup that was made before`,
  )

/** Returns whether {@link migrate} would change nothing. Reads only. */
async function isCurrent(tx: Queryable, role: string | null): Promise<boolean> {
  const { pending, beyond } = await compareMigrations(tx)
  if (beyond.length > 0) throw tablesOfNewerVersion(beyond)
  return (
    pending.length === 0 &&
    (await hasStateSchemas(tx)) &&
    (await hasFunctions(tx)) &&
    (role === null || (await hasTableRights(tx, role)))
  )
}

/**
 * Migrates the database, in one transaction under an advisory lock: applies the numbered files in
 * ./migrations that were not applied yet, each once, then the checks of the rows, the functions, and
 * the rights of the platform's processes. If nothing has to be changed, it only reads, so that a role
 * that does not own the tables can start.
 * @param role role of the platform's processes if it is not the owner of the tables; null: it is
 * @returns the names of the migrations, checks, functions and tables that were applied
 * @throws Error if a newer version has migrated the database
 */
export async function migrate(database: Database, role: string | null = null): Promise<string[]> {
  return database.transaction(async (tx) => {
    // A migration of a large table takes longer than the usual statement timeout, and so may the
    // wait for another process that is migrating.
    await tx.query('set local statement_timeout = 0')
    await lockMigrations(tx)
    if (await isCurrent(tx, role)) return []
    await tx.query(
      'create table if not exists migrations (name text primary key, applied_at timestamptz not null default now())',
    )
    const { pending } = await compareMigrations(tx)
    for (const name of pending) {
      await tx.query(readFileSync(new URL(name, MIGRATIONS), 'utf8'))
      await tx.query('insert into migrations (name) values ($1)', [name])
    }
    return [
      ...pending,
      ...(await applyStateSchemas(tx)),
      ...(await applyFunctions(tx)),
      ...(role === null ? [] : await applyTableRights(tx, role)),
    ]
  })
}
