import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setImmediate as turn } from 'node:timers/promises'
import { reasonOf } from '@custody/chains/reason'
import { pino, type Logger } from 'pino'
import type { EmbeddedPostgres } from '../../core/database/embedded.ts'
import { urlForRole } from '../../core/database/embedded-roles.ts'
import { isConnectionError } from '../../core/database/pool.ts'
import { createDataDir, lockDataDir, runsNodes } from '../../core/data-dir.ts'
import type { Role, Settings } from '../../core/settings/settings.ts'
import type { Operate, RunningPlatform } from './assemble.ts'
import { checkHome } from './binding.ts'
import { isWorker } from './health/role-duties.ts'
import { checkDatabase, checkPort, homeProblem } from './preflight.ts'
import { checkSecretsKeyGiven } from './secrets-key.ts'
import { hostRuntime, type Runtime } from './runtime.ts'

export type { RunningPlatform } from './assemble.ts'

/**
 * Maximum number of consecutive starts that fail because the database ended; after that the cause
 * is considered permanent.
 */
const STARTS_MAX = 5

/** Starts everything that the settings require, in the order of dependencies. */
export async function startPlatform(
  settings: Settings,
  operate: Operate,
  runtime: Runtime = hostRuntime(settings.logFormat),
): Promise<RunningPlatform> {
  const log = pino(
    {
      level: settings.logLevel,
      redact: ['*.token', '*.aml_token', '*.private_key', 'request.token'],
    },
    runtime.log,
  )
  for (let attempt = 1; ; attempt++) {
    const undo: (() => Promise<void> | void)[] = []
    try {
      return await start(settings, runtime, log, undo, operate)
    } catch (error) {
      for (const step of undo.reverse()) await Promise.resolve(step()).catch(() => undefined)
      if ((error as NodeJS.ErrnoException).path?.startsWith(settings.home))
        throw homeProblem(error, settings.home)
      // A database server that this process runs itself is restarted, even if it ended during the
      // start.
      const isOurs = settings.role === 'all' && settings.databaseUrl === null
      if (!isOurs || !isConnectionError(error) || attempt === STARTS_MAX) throw error
      log.warn(
        { err: reasonOf(error) },
        'the database server ended while the platform was starting; the start is retried',
      )
    }
  }
}

/**
 * Starts the servers on this machine and loads the platform's modules while they start. This module
 * imports little, so that the servers are started early.
 */
async function start(
  settings: Settings,
  runtime: Runtime,
  log: Logger,
  undo: (() => Promise<void> | void)[],
  operate: Operate,
): Promise<RunningPlatform> {
  const { role } = settings
  const all = role === 'all'
  // A worker owns the operator socket, of which a data folder has one; processes of other roles may
  // use the same folder.
  if (isWorker(role)) undo.push(lockDataDir(settings.home))
  else if (settings.databaseUrl !== null) createDataDir(settings.home)
  else if (!existsSync(settings.home)) {
    throw new Error(
      `CUSTODY_ROLE=${role}: the home ${settings.home} does not exist; start the platform on it first, or set DATABASE_URL`,
    )
  }
  checkHome(settings.home, settings.network)
  checkSecretsKeyGiven(settings)
  await checkPort(settings)
  if (settings.databaseUrl !== null)
    await checkDatabase('DATABASE_URL', settings.databaseUrl, settings.databasePooled)
  if (settings.migrationUrl !== null)
    await checkDatabase('DATABASE_MIGRATION_URL', settings.migrationUrl, settings.databasePooled)
  const runtimeFile = join(settings.home, 'runtime.json')
  const running: { postgres?: EmbeddedPostgres } = {}
  // The database is stopped after the signer nodes and chains, because a caller that waits for the
  // platform's end waits until the lock file of the database is gone.
  undo.push(() => running.postgres?.stop())
  const starting = [
    all && settings.databaseUrl === null
      ? runtime
          .startPostgres(settings.home, (what) => log.warn(what), {
            walArchive: settings.walArchive,
          })
          .then((started) => (running.postgres = started))
      : null,
    all && settings.localChains === null && runsNodes(settings.network)
      ? runtime.startLocal(settings.home, settings.network, log).then((started) => {
          undo.push(() => started.stop())
          return started
        })
      : null,
    // Loading modules blocks this process, so the other servers are started first.
    turn().then(() => import('./assemble.ts')),
  ] as const
  // If one server fails, the others must have started before they can be stopped.
  await Promise.allSettled(starting)
  const [postgres, local, { assemble }] = await Promise.all(starting)
  const databaseUrl = settings.databaseUrl ?? postgres?.url ?? runningDatabase(runtimeFile, role)
  // The URL of the embedded database contains no secret; other users cannot access its socket.
  if (postgres)
    writeFileSync(runtimeFile, JSON.stringify({ database_url: databaseUrl }), { mode: 0o600 })
  return assemble({
    settings,
    runtime,
    log,
    undo,
    operate,
    databaseUrl,
    ownerUrl: settings.migrationUrl ?? postgres?.ownerUrl ?? null,
    isOurs: postgres !== null,
    local,
  })
}

/** Returns the URL of the embedded database of the platform that runs on the same data folder. */
function runningDatabase(runtimeFile: string, role: Role): string {
  if (!existsSync(runtimeFile)) {
    throw new Error(
      `CUSTODY_ROLE=${role}: no platform with an embedded database was started on this home; start it first, or set DATABASE_URL`,
    )
  }
  const { database_url: url } = JSON.parse(readFileSync(runtimeFile, 'utf8')) as {
    database_url: string
  }
  return urlForRole(url, role)
}
