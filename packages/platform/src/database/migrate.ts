import { readdirSync, readFileSync } from 'node:fs'
import { applyStateSchemas } from './state-schemas.ts'
import { applyFunctions } from './functions.ts'
import type { Database, Queryable } from './pool.ts'

const LOCK = 7_205_160_001
/** Folder of the numbered files. */
export const MIGRATIONS = new URL('./migrations/', import.meta.url)
/** The last migrations before the squash, for databases that were last started without them. */
const EARLIER = new URL('./earlier/', import.meta.url)

/**
 * The migrations before they were squashed. Together they created the same tables as {@link
 * SQUASHED}.
 */
export const BEFORE_SQUASH: readonly string[] = [
  '001_core',
  '002_ledger',
  '003_transactions',
  '004_work',
  '005_coinbase',
  '005_tags',
  '006_aml',
  '006_aml_freezes',
  '008_cardano',
  '009_replacements',
  '010_gas_tanks',
  '011_prepaid_fee',
  '013_staking',
  '014_auto_forwarding',
  '016_tank_energy',
  '017_deposit_identity',
  '018_deposit_senders',
  '019_recovery',
  '021_voids',
  '024_forward_fees',
  '025_shown',
  '025_suspense',
  '026_api',
  '028_installation',
].map((name) => `${name}.sql`)

export const SQUASHED: readonly string[] = [
  '001_workspaces',
  '002_wallets',
  '003_ledger',
  '004_transactions',
  '005_deposits',
  '006_gas_tanks',
  '007_aml',
  '008_prepaid_fee',
  '009_staking',
  '010_auto_forwarding',
  '011_recovery',
].map((name) => `${name}.sql`)

/**
 * Applies the missing last migrations to a database from before the squash, and then records the
 * squashed migrations, which create the same tables.
 */
async function recogniseSquashed(tx: Queryable, existing: Set<string>): Promise<void> {
  if (!BEFORE_SQUASH.some((name) => existing.has(name))) return
  const missing = BEFORE_SQUASH.filter((name) => !existing.has(name))
  const stored = readdirSync(EARLIER)
  const lost = missing.filter((name) => !stored.includes(name)).join(', ')
  if (lost !== '') {
    throw new Error(
      `the database was created by an early development version and cannot be migrated: it lacks ${lost}`,
    )
  }
  for (const name of missing) await tx.query(readFileSync(new URL(name, EARLIER), 'utf8'))
  await tx.query('delete from migrations where name = any($1)', [BEFORE_SQUASH])
  await tx.query('insert into migrations (name) select unnest($1::text[])', [SQUASHED])
  for (const name of BEFORE_SQUASH) existing.delete(name)
  for (const name of SQUASHED) existing.add(name)
}

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
  // A database from before the squash counts as one with the squashed migrations.
  const isEarlier = BEFORE_SQUASH.some((name) => existing.has(name))
  const isApplied = (name: string): boolean =>
    existing.has(name) || (isEarlier && SQUASHED.includes(name))
  return {
    pending: files.filter((name) => !isApplied(name)),
    applied: files.filter(isApplied),
    beyond: [...existing]
      .filter((name) => !files.includes(name) && !BEFORE_SQUASH.includes(name))
      .sort(),
  }
}

/**
 * Waits until no other process migrates the database, and blocks other migrations until the end of
 * the transaction.
 */
export const lockMigrations = (tx: Queryable): Promise<unknown> =>
  tx.query('select pg_advisory_xact_lock($1)', [LOCK])

/**
 * Migrates the database, in one transaction under an advisory lock: applies the numbered files in
 * ./migrations that were not applied yet, each once, then the checks of the rows, and the
 * functions.
 * @returns the names of what was applied
 * @throws Error if a newer version has migrated the database
 */
export async function migrate(database: Database): Promise<string[]> {
  return database.transaction(async (tx) => {
    // A migration of a large table takes longer than the usual statement timeout, and so may the
    // wait for another process that is migrating.
    await tx.query('set local statement_timeout = 0')
    await lockMigrations(tx)
    await tx.query(
      'create table if not exists migrations (name text primary key, applied_at timestamptz not null default now())',
    )
    const existing = new Set(
      (await tx.query<{ name: string }>('select name from migrations')).map((row) => row.name),
    )
    await recogniseSquashed(tx, existing)
    const files = readdirSync(MIGRATIONS)
      .filter((file) => file.endsWith('.sql'))
      .sort()
    const beyond = [...existing]
      .filter((name) => !files.includes(name))
      .sort()
      .join(', ')
    // Its rows may have formats that are not known to this version.
    if (beyond !== '') {
      throw new Error(
        `the database was changed by a newer version (${beyond}): start that version, or restore a backup that was made before`,
      )
    }
    const applied: string[] = []
    for (const name of files) {
      if (existing.has(name)) continue
      await tx.query(readFileSync(new URL(name, MIGRATIONS), 'utf8'))
      await tx.query('insert into migrations (name) values ($1)', [name])
      applied.push(name)
    }
    return [...applied, ...(await applyStateSchemas(tx)), ...(await applyFunctions(tx))]
  })
}
