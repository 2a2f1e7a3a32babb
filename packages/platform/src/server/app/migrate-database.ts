import { migrate } from '../../core/database/migrate.ts'
import type { Database, openDatabase } from '../../core/database/pool.ts'
import { excessOf, roleFacts } from '../../core/database/table-rights.ts'
import type { Settings } from '../../core/settings/settings.ts'
import { checkDatabaseNetwork } from './binding.ts'

interface Options {
  settings: Pick<Settings, 'network' | 'databaseUrl' | 'databasePooled'>
  runtime: { openDatabase: typeof openDatabase }
  databaseUrl: string
  ownerUrl: string | null
}

interface Migrated {
  applied: string[]
  /** Always null for the embedded database, whose roles the platform sets up itself. */
  excess: string | null
}

/**
 * Timeout of migrations in milliseconds. Changing a large database takes minutes, and committing
 * may take long too.
 */
const MIGRATED_MS = 3_600_000
/** SQLSTATE of a statement that the role may not run. */
const FORBIDDEN = '42501'

/** Identifies a database of a running server, and the role of the connection. */
const WHERE = `select current_user::text "role", concat_ws(' ', d.oid, pg_postmaster_start_time()) place
  from pg_database d where d.datname = current_database()`

/**
 * Returns the role of the platform's processes, to which the owner grants their rights; null if it
 * is the owner itself.
 * @throws Error if the two connections lead to different databases
 */
async function processRole(database: Database, owner: Database): Promise<string | null> {
  const [app, own] = (await Promise.all(
    [database, owner].map((each) => each.one<{ role: string; place: string }>(WHERE)),
  )) as { role: string; place: string }[]
  if (app?.place !== own?.place)
    throw new Error(
      'DATABASE_MIGRATION_URL: leads to another database than DATABASE_URL: correct host, port and name',
    )
  return app?.role === own?.role ? null : (app?.role ?? null)
}

/**
 * Checks that the database belongs to the configured network, and runs the migrations on a separate
 * connection with a long timeout: as the owner of the tables, or with the role of the processes if
 * no other is configured.
 * @param database connection of the platform's processes
 * @returns what was applied, and what the role of the processes can do that it need not do
 * @throws Error that names the setting if the role may not apply the pending migrations
 */
export async function migrateDatabase(
  { runtime, databaseUrl, ownerUrl, settings }: Options,
  database: Database,
): Promise<Migrated> {
  const owner = runtime.openDatabase(ownerUrl ?? databaseUrl, {
    max: 1,
    pooled: settings.databaseUrl !== null && settings.databasePooled,
    answerMs: MIGRATED_MS,
    commitMs: MIGRATED_MS,
  })
  try {
    const role = ownerUrl === null ? null : await processRole(database, owner)
    await checkDatabaseNetwork(owner, settings.network)
    const applied = await migrate(owner, role)
    const facts = settings.databaseUrl === null ? null : await roleFacts(database)
    return { applied, excess: facts === null ? null : excessOf(facts) }
  } catch (error) {
    if ((error as { code?: unknown }).code !== FORBIDDEN) throw error
    throw new Error(
      ownerUrl === null
        ? 'DATABASE_MIGRATION_URL: is required for this start, because the database must be migrated and the user of DATABASE_URL does not own its tables (docs/production/database.md)'
        : 'DATABASE_MIGRATION_URL: this user may not change the tables: make it their owner (docs/production/database.md)',
      { cause: error },
    )
  } finally {
    await owner.close()
  }
}
