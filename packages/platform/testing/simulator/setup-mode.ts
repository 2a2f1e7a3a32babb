import { closeSync, existsSync, mkdtempSync, openSync, readSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startEmbeddedPostgres, type EmbeddedPostgres } from '../../src/core/database/embedded.ts'
import { APP } from '../../src/core/database/embedded-roles.ts'
import { openDatabase, type Database } from '../../src/core/database/pool.ts'
import { replaceColumnDefaults } from '../column-defaults.ts'
import { prepareDatabase } from '../prepared-database.ts'
import { INITIAL_STATE } from './initial-state.ts'
import { Connections } from './connections.ts'
import { LEDGER_WATCH } from './ledger-watch.ts'
import { STATE_WATCH } from './state-watch.ts'
import { DATABASE_TIMEOUTS } from '../test-database.ts'

/**
 * Makes the ids and times that the database generates sequential: they determine the order of
 * otherwise equal rows, and a seed must be reproducible.
 */
const COUNTED_IDS = `
  create schema simulated;
  create sequence simulated.ids;
  create function simulated.gen_random_uuid() returns uuid language sql volatile as
    'select md5(nextval(''simulated.ids'')::text)::uuid';
  create function simulated.now() returns timestamptz language sql volatile as
    'select timestamptz ''2030-01-01 00:00:00+00'' + nextval(''simulated.ids'') * interval ''1 millisecond'''`

const DEFAULTS = replaceColumnDefaults({
  now: 'simulated.now()',
  gen_random_uuid: 'simulated.gen_random_uuid()',
})

const INDEXES = `do $$
declare
  each record;
begin
  -- What is due at one time comes by its id, and not by where it happens to lie.
  for each in select indexname, indexdef from pg_indexes where schemaname = 'public' and indexdef like '%(next_run_at)%' loop
    execute format('drop index public.%I', each.indexname);
    execute replace(each.indexdef, '(next_run_at)', '(next_run_at, id)');
  end loop;
end $$`

/** The platform's processes run column defaults and triggers that use this schema. */
const RIGHTS = `
  grant usage on schema simulated to ${APP};
  grant select, insert, update, delete on all tables in schema simulated to ${APP};
  grant usage, select on all sequences in schema simulated to ${APP}`

/**
 * Database settings: commits do not wait for the disk, which would test nothing here, and each
 * statement is planned once. Rows are read through an index, because their physical position
 * depends on the machine.
 */
const SETTINGS = [
  'jit = off',
  'autovacuum = off',
  `deadlock_timeout = '4ms'`,
  'synchronize_seqscans = off',
  'synchronous_commit = off',
  'max_parallel_workers_per_gather = 0',
  'plan_cache_mode = force_generic_plan',
  'fsync = off',
  'full_page_writes = off',
  'enable_seqscan = off',
  'enable_bitmapscan = off',
  'enable_hashjoin = off',
  'enable_mergejoin = off',
  // The server logs when a backend that waits for a lock has checked for a deadlock; see LockLog.
  'log_lock_waits = on',
  `log_timezone = 'UTC'`,
  `log_line_prefix = '%m [%p] '`,
  'log_min_error_statement = panic',
  'log_error_verbosity = terse',
]

/**
 * Time-out in milliseconds for starting the server and for closing an ended connection, long enough
 * for a busy machine.
 */
const START_MS_MAX = 600_000
const CUT_MS_MAX = 300_000
/** Number of simulations for which one database is used. */
const PLAYED_MAX = 25
/** Polling interval in milliseconds to find out whether a connection has ended. */
const ENDED_POLL_MS = 2
/** Event-loop turns after which this process has noticed closed sockets. */
const CUT_SEEN_TURNS = 8

/**
 * Connection options without time-outs, because this machine's clock is not part of the simulation.
 */
const PATIENCE = 'statement_timeout=0&idle_in_transaction_session_timeout=0'

/**
 * Selects the processes that wait for a lock, and those that block them. It reads the table of
 * locks and not the processes' own state, because a process that releases a lock writes the next
 * owner into that table.
 */
const WAITING = `select pid, pg_blocking_pids(pid) blockers,
  floor(extract(epoch from since) * 1000)::float8 since_ms from (select pid, min(waitstart) since
  from pg_locks
  where not granted and locktype in ('relation', 'tuple', 'transactionid', 'virtualxid', 'advisory',
    'object') group by pid) waiting
  order by since, pid`

interface Waiter {
  pid: number
  blockers: number[]
  since_ms: number | null
}

/**
 * State of the connections that wait for locks of others: the process ids of their servers, longest
 * wait first. `isKnot`: some wait for each other, which the database will end. `areChecked`: each
 * has checked for a deadlock, which a backend does once per wait. If another connection closes a
 * cycle later, that connection finds the deadlock and fails.
 */
export interface Locked {
  pids: number[]
  isKnot: boolean
  areChecked: boolean
}

/** A simulation's database, which contains only the initial data of an installation. */
export interface SimulatedDatabase {
  name: string
  /**
   * Returns the URL of the database.
   * @param of name under which the connection is known
   */
  url(of: string): string
  /** Like `url`, for the superuser. */
  adminUrl(of: string): string
  connections: Connections
  /** Resets the database to its initial state for the next simulation, or drops it. */
  giveBack(): Promise<void>
}

/** A database server for many simulations. Each simulation has exclusive use of one database. */
export class SimulatedServer {
  readonly home = mkdtempSync(join(tmpdir(), 'custody-simulation-'))
  #postgres: EmbeddedPostgres | null = null
  #admin: Database | null = null
  #count = 0
  readonly #reusable: SimulatedDatabase[] = []
  #lockLog: LockLog | null = null

  async start(): Promise<void> {
    await prepareDatabase(this.home)
    this.#postgres = await startEmbeddedPostgres(this.home, () => undefined, {
      startTimeoutMs: START_MS_MAX,
    })
    this.#admin = openDatabase(this.#postgres.adminUrl.replace('/custody?', '/postgres?'), {
      max: 2,
      onError: () => undefined,
    })
    for (const setting of SETTINGS) await this.#admin.query(`alter system set ${setting}`)
    await this.#admin.query('select pg_reload_conf()')
    this.#lockLog = new LockLog(join(this.home, 'postgres.log'))
    const template = openDatabase(this.#postgres.adminUrl, { max: 1, onError: () => undefined })
    for (const statement of [COUNTED_IDS, DEFAULTS, INDEXES]) await template.query(statement)
    await template.query(LEDGER_WATCH)
    await template.query(STATE_WATCH)
    await template.query(INITIAL_STATE)
    await template.query(RIGHTS)
    await template.close()
  }

  /**
   * Returns a database in its initial state. Loading the metadata and plans of tables in
   * connections is most of the server's work, so a database and its connections are reused. It is
   * dropped when skipping its dead rows would take longer.
   */
  async database(): Promise<SimulatedDatabase> {
    const reusable = this.#reusable.pop()
    if (reusable) return reusable
    const admin = this.#admin as Database
    const name = `simulation_${++this.#count}`
    await admin.query(`create database ${name} template custody strategy file_copy`)
    await admin.query(`alter database ${name} set search_path = simulated, pg_catalog, public`)
    const { url: appUrl, adminUrl } = this.#postgres as EmbeddedPostgres
    const of = (base: string, connection: string) =>
      `${base.replace('/custody?', `/${name}?`)}&application_name=${connection}&${PATIENCE}`
    const url = (connection: string) => of(appUrl, connection)
    const connections = new Connections()
    const cleaner = openDatabase(of(adminUrl, 'cleaner'), {
      ...DATABASE_TIMEOUTS,
      pool: connections.poolOf('cleaner'),
      onError: () => undefined,
    })
    let played = 0
    const database: SimulatedDatabase = {
      name,
      url,
      adminUrl: (connection) => of(adminUrl, connection),
      connections,
      giveBack: async () => {
        if (++played < PLAYED_MAX) {
          await cleaner.query('select simulated.begin_again()')
          this.#reusable.push(database)
        } else {
          await connections.close()
          await admin.query(`drop database ${name} with (force)`)
        }
      },
    }
    return database
  }

  async locked(): Promise<Locked> {
    const waiters = await this.#waiters()
    const log = this.#lockLog as LockLog
    return {
      pids: waiters.map(({ pid }) => pid),
      isKnot: isKnot(blockersOf(waiters)),
      areChecked: waiters.every(
        ({ pid, since_ms: sinceMs }) => sinceMs !== null && log.hasChecked(pid, sinceMs),
      ),
    }
  }

  /**
   * Ends connections to a database by their servers' process ids, as if their processes had ended
   * or the server had restarted. Resolves once all other connections have seen it.
   */
  async cut(name: string, of: readonly number[]): Promise<void> {
    await this.#ended(name, of)
    for (let turn = 0; turn < CUT_SEEN_TURNS; turn++)
      await new Promise((resolve) => setImmediate(resolve))
  }

  /**
   * Ends processes: one that waits for a lock is ended before the process that holds it. Otherwise
   * the waiting process could get the lock and continue or not, depending on the speed of the
   * machine.
   */
  async #ended(name: string, of: readonly number[]): Promise<void> {
    if (of.length === 0) return
    const end = performance.now() + CUT_MS_MAX
    const ours = 'from pg_stat_activity where datname = $1 and pid = any($2)'
    for (;;) {
      const pids = (
        (await this.#admin?.query<{ pid: number }>(`select pid ${ours}`, [name, of])) ?? []
      ).map(({ pid }) => pid)
      if (pids.length === 0) return
      const waiting = blockersOf(await this.#waiters())
      const last = pids.filter(
        (pid) =>
          waiting.has(pid) && ![...waiting.values()].some((blockers) => blockers.includes(pid)),
      )
      const ending = last.length > 0 ? last : pids
      await this.#admin?.query('select pg_terminate_backend(pid) from unnest($1::integer[]) pid', [
        ending,
      ])
      // Polls instead of using the server's own wait, which checks every tenth of a second. The
      // socket closes when the process ends, shortly after the process has left the server's list.
      const isThere = async () =>
        (await this.#admin?.one(`select 1 ${ours} and pid = any($3)`, [name, of, ending])) !==
          undefined || ending.some((pid) => existsSync(`/proc/${pid}`))
      while (await isThere()) {
        if (performance.now() > end) throw new Error(`a connection to ${name} does not end`)
        await new Promise((resolve) => setTimeout(resolve, ENDED_POLL_MS))
      }
    }
  }

  async #waiters(): Promise<Waiter[]> {
    return (await this.#admin?.query<Waiter>(WAITING, [])) ?? []
  }

  async stop(): Promise<void> {
    await Promise.all(this.#reusable.map(({ connections }) => connections.close()))
    await this.#admin?.close()
    this.#lockLog?.close()
    await this.#postgres?.stop()
    rmSync(this.home, { recursive: true, force: true })
  }
}

const blockersOf = (waiters: readonly Waiter[]) =>
  new Map(waiters.map(({ pid, blockers }) => [pid, blockers]))

const LOCK_EVENT =
  /^(\S+ \S+) UTC \[(\d+)\] LOG: {2}process \d+ (still waiting|avoided deadlock|detected deadlock|acquired)/

/**
 * The server's log, in which each backend writes a line when its wait for a lock has lasted
 * `deadlock_timeout` and it has checked for a deadlock, and another line when such a wait ends.
 */
export class LockLog {
  readonly #file: number
  readonly #buffer = Buffer.alloc(65_536)
  #rest = ''
  /**
   * Time at which each backend checked for a deadlock during its last wait, in milliseconds since
   * the Unix epoch; absent once that wait has ended.
   */
  readonly #checkedMs = new Map<number, number>()

  constructor(path: string) {
    this.#file = openSync(path, 'r')
  }

  /**
   * Returns whether a backend has checked for a deadlock since its wait began. A backend that has
   * just begun to wait is listed with the time of its earlier wait for a moment; the line about the
   * end of that wait tells the two apart. A backend that was stopped during its check would hold the
   * locks of the lock table until it continues.
   * @param sinceMs start of the wait, rounded down; older log lines are ignored
   */
  hasChecked(pid: number, sinceMs: number): boolean {
    this.#read()
    return (this.#checkedMs.get(pid) ?? 0) > sinceMs
  }

  #read(): void {
    for (let length = 0; (length = readSync(this.#file, this.#buffer)) > 0;) {
      const lines = (this.#rest + this.#buffer.toString('latin1', 0, length)).split('\n')
      this.#rest = lines.pop() as string
      for (const line of lines) {
        const [, time = '', pid, event] = LOCK_EVENT.exec(line) ?? []
        if (event === 'acquired' || event === 'detected deadlock')
          this.#checkedMs.delete(Number(pid))
        else if (event !== undefined)
          this.#checkedMs.set(Number(pid), Date.parse(`${time.replace(' ', 'T')}Z`))
      }
    }
  }

  close(): void {
    closeSync(this.#file)
  }
}

/** Returns whether a process waits for itself, directly or through other processes. */
function isKnot(waiting: ReadonlyMap<number, readonly number[]>): boolean {
  const reaches = (from: number, to: number, seen: Set<number>): boolean =>
    (waiting.get(from) ?? []).some((next) => {
      if (next === to) return true
      if (seen.has(next)) return false
      seen.add(next)
      return reaches(next, to, seen)
    })
  return [...waiting.keys()].some((pid) => reaches(pid, pid, new Set()))
}
