import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setImmediate as turn } from 'node:timers/promises'
import { reasonOf } from '@custody/chains/reason'
import { pino, type Logger } from 'pino'
import type { EmbeddedPostgres } from '../database/embedded.ts'
import { isConnectionError } from '../database/pool.ts'
import { makeHome, takeHome } from '../home.ts'
import type { Role, Settings } from '../settings/settings.ts'
import type { Operate, RunningPlatform } from './assemble.ts'
import { checkHome } from './binding.ts'
import { works } from './duties.ts'
import { checkDatabase, checkPort, homeProblem } from './preflight.ts'
import { checkSecretsKeyGiven } from './secrets-key.ts'
import { thisMachine, type World } from './world.ts'

export type { RunningPlatform } from './assemble.ts'

/** A database that dies beneath so many starts in a row has a reason that will not go away. */
const STARTS_MAX = 5

/** Starts everything that the settings ask for, in the order in which it is needed. */
export async function startPlatform(
  settings: Settings,
  operate: Operate,
  world: World = thisMachine(),
): Promise<RunningPlatform> {
  const log = pino(
    {
      level: settings.logLevel,
      redact: ['*.token', '*.aml_token', '*.private_key', 'request.token'],
    },
    world.log,
  )
  for (let attempt = 1; ; attempt++) {
    const undo: (() => Promise<void> | void)[] = []
    try {
      return await start(settings, world, log, undo, operate)
    } catch (error) {
      for (const step of undo.reverse()) await Promise.resolve(step()).catch(() => undefined)
      if ((error as NodeJS.ErrnoException).path?.startsWith(settings.home))
        throw homeProblem(error, settings.home)
      // Our own server is started again by us, also where it dies beneath a start.
      const isOurs = settings.role === 'all' && settings.databaseUrl === null
      if (!isOurs || !isConnectionError(error) || attempt === STARTS_MAX) throw error
      log.warn(
        { err: reasonOf(error) },
        'the database ended during the start; the start is repeated',
      )
    }
  }
}

/**
 * Sets the servers of this machine on their way, and reads what the platform is made of while they
 * start: this module and what it imports is little, so that they begin early.
 */
async function start(
  settings: Settings,
  world: World,
  log: Logger,
  undo: (() => Promise<void> | void)[],
  operate: Operate,
): Promise<RunningPlatform> {
  const { role } = settings
  const all = role === 'all'
  // A worker has the operator's socket, of which a home has one; others may stand beside it.
  if (works(role)) undo.push(takeHome(settings.home))
  else if (settings.databaseUrl !== null) makeHome(settings.home)
  else if (!existsSync(settings.home)) {
    throw new Error(
      `CUSTODY_ROLE=${role}: the home ${settings.home} does not exist; start the platform on it first, or set DATABASE_URL`,
    )
  }
  checkHome(settings.home, settings.network)
  checkSecretsKeyGiven(settings)
  await checkPort(settings)
  if (settings.databaseUrl !== null)
    await checkDatabase(settings.databaseUrl, settings.databasePooled)
  const runtimeFile = join(settings.home, 'runtime.json')
  const running: { postgres?: EmbeddedPostgres } = {}
  // Nodes and chains, which are there sooner, are stopped before it: whoever waits for the end
  // waits for its lock file.
  undo.push(() => running.postgres?.stop())
  const starting = [
    all && settings.databaseUrl === null
      ? world
          .startPostgres(settings.home, (what) => log.warn(what), {
            walArchive: settings.walArchive,
          })
          .then((started) => (running.postgres = started))
      : null,
    all && settings.network === 'local' && settings.localChains === null
      ? world.startLocal(settings.home, log).then((started) => {
          undo.push(() => started.stop())
          return started
        })
      : null,
    // Reading modules keeps this process from anything else: first the others are started.
    turn().then(() => import('./assemble.ts')),
  ] as const
  // What is still on its way when another fails could not be undone.
  await Promise.allSettled(starting)
  const [postgres, local, { assemble }] = await Promise.all(starting)
  const databaseUrl = settings.databaseUrl ?? postgres?.url ?? runningDatabase(runtimeFile, role)
  // The embedded URL holds no secret: its socket is closed to other users.
  if (postgres)
    writeFileSync(runtimeFile, JSON.stringify({ database_url: databaseUrl }), { mode: 0o600 })
  return assemble({
    settings,
    world,
    log,
    undo,
    operate,
    databaseUrl,
    isOurs: postgres !== null,
    local,
  })
}

/** The embedded database of the platform that this process stands beside. */
function runningDatabase(runtimeFile: string, role: Role): string {
  if (!existsSync(runtimeFile)) {
    throw new Error(
      `CUSTODY_ROLE=${role}: no platform with an embedded database was started on this home; start it first, or set DATABASE_URL`,
    )
  }
  return (JSON.parse(readFileSync(runtimeFile, 'utf8')) as { database_url: string }).database_url
}
