import { existsSync } from 'node:fs'
import packageFile from '../../../package.json' with { type: 'json' }
import { AWAY_MS } from '../app/health/role-health.ts'
import { embeddedData, startEmbeddedPostgres } from '../../core/database/embedded.ts'
import { compareMigrations } from '../../core/database/migrate.ts'
import { openDatabase, type Database } from '../../core/database/pool.ts'
import { assertRestored } from '../../core/data-dir.ts'
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

/** Compares the migrations of this version with those of the database. Reads only. */
export const upgrade: Run = async ({ home, values }) => {
  if (values['check'] !== true)
    throw new OperatorError(
      '--check is required: this command only checks, because the new version performs the upgrade when it starts',
    )
  const url = process.env['DATABASE_URL']
  if (!url) assertRestored(home)
  if (!url && !existsSync(embeddedData(home)))
    throw new OperatorError(`${home} contains no database: set CUSTODY_HOME, or DATABASE_URL`)
  const server = url ? null : await startEmbeddedPostgres(home)
  const database = openDatabase(url || (server?.url ?? ''), { max: 1 })
  try {
    return await compare(database)
  } finally {
    await database.close()
    if (server && !server.adopted) await server.stop()
  }
}
