import { existsSync } from 'node:fs'
import packageFile from '../../../package.json' with { type: 'json' }
import { AWAY_MS } from '../app/health/role-health.ts'
import {
  embeddedData,
  startEmbeddedPostgres,
  type EmbeddedPostgres,
} from '../../core/database/embedded.ts'
import { compareMigrations } from '../../core/database/migrate.ts'
import { openDatabase, type Database } from '../../core/database/pool.ts'
import { assertRestored } from '../../core/data-dir.ts'
import { ownerUrl, readVariable } from '../../core/settings/settings.ts'
import { migrateDatabase } from '../app/migrate-database.ts'
import { OperatorError } from './command.ts'
import type { Outcome, Run } from './cli/typed.ts'

/** Returns the processes of the platform that were running recently, as `role on host`. */
async function runningIn(database: Database): Promise<string[]> {
  const table = await database.one<{ there: string | null }>(
    `select to_regclass('processes')::text as there`,
  )
  if (!table?.there) return []
  const since = new Date(database.now().getTime() - AWAY_MS)
  const rows = await database.query<{ role: string; host: string }>(
    'select role, host from processes where seen_at > $1 order by role, host',
    [since],
  )
  return rows.map(({ role, host }) => `${role} on ${host}`)
}

async function compare(database: Database): Promise<Outcome> {
  const { pending, beyond, applied } = await compareMigrations(database)
  const running = await runningIn(database)
  const { version } = packageFile
  const can = beyond.length === 0
  const lines = [
    `custody ${version} has ${applied.length + pending.length} migrations; the database has ${applied.length + beyond.length}`,
    ...(can
      ? []
      : [
          `NOT possible: the database was changed by a newer version (${beyond.join(', ')}): start that version, or restore a backup ` +
            'from before',
        ]),
    ...pending.map((name) => `would be applied: ${name}`),
    ...(can && pending.length === 0 ? ['nothing would be applied'] : []),
    ...running.map((each) => `running: ${each}; stop it before the upgrade`),
  ]
  return {
    result: { version, possible: can, pending, beyond, running },
    text: lines,
    exitCode: can ? 0 : 1,
  }
}

/**
 * Applies the migrations, as a start of this version does, so that the platform's processes need not
 * have the URL of the tables' owner.
 * @param urls of the platform's role and of the owner; the latter is null if they are the same
 */
async function apply(urls: { databaseUrl: string; ownerUrl: string | null }): Promise<Outcome> {
  const databaseUrl = readVariable('DATABASE_URL') ?? null
  const databasePooled = readVariable('CUSTODY_DATABASE_POOLER') === 'transaction'
  const network = readVariable('CUSTODY_NETWORK')
  const owner = openDatabase(urls.ownerUrl ?? urls.databaseUrl, { max: 1, pooled: databasePooled })
  const database = openDatabase(urls.databaseUrl, { max: 1, pooled: databasePooled })
  try {
    const { pending, beyond } = await compareMigrations(owner)
    const running = pending.length === 0 || beyond.length > 0 ? [] : await runningIn(owner)
    if (running.length > 0)
      throw new OperatorError(
        `${running.join(', ')} is running: stop every process of the platform before the upgrade`,
      )
    const { applied, excess } = await migrateDatabase(
      { runtime: { openDatabase }, settings: { network, databaseUrl, databasePooled }, ...urls },
      database,
    )
    return {
      result: { applied, excess },
      text: [
        ...(applied.length === 0
          ? ['nothing was applied']
          : applied.map((name) => `applied: ${name}`)),
        ...(excess === null ? [] : [`WARNING: ${excess} (docs/production/database.md)`]),
      ],
    }
  } finally {
    await Promise.all([owner.close(), database.close()])
  }
}

/** Compares the migrations of this version with those of the database, or applies them. */
export const upgrade: Run = async ({ home, values }) => {
  const isApplied = values['apply'] === true
  if ((values['check'] === true) === isApplied)
    throw new OperatorError(
      'either --check or --apply is required: --check only compares, and --apply applies the migrations',
    )
  const external = readVariable('DATABASE_URL') ?? null
  if (external === null) assertRestored(home)
  if (external === null && !existsSync(embeddedData(home)))
    throw new OperatorError(`${home} contains no database: set CUSTODY_HOME, or DATABASE_URL`)
  const server = external === null ? await startEmbeddedPostgres(home) : null
  try {
    if (isApplied)
      return await apply({
        databaseUrl: external ?? (server as EmbeddedPostgres).url,
        ownerUrl: server?.ownerUrl ?? readVariable('DATABASE_MIGRATION_URL') ?? null,
      })
    const database = openDatabase(server?.ownerUrl ?? (ownerUrl() as string), { max: 1 })
    return await compare(database).finally(() => database.close())
  } finally {
    if (server && !server.adopted) await server.stop()
  }
}
