import { closeSync, existsSync, mkdtempSync, openSync, readSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startEmbeddedPostgres } from '../../src/database/embedded.ts'
import { openDatabase, type Database } from '../../src/database/pool.ts'
import { replaceColumnDefaults } from '../column-defaults.ts'
import { prepareDatabase } from '../prepared-database.ts'
import { INITIAL_STATE } from './initial-state.ts'
import { Connections } from './connections.ts'
import { LEDGER_WATCH } from './ledger-watch.ts'

/**
 * Ids and times that the database makes are counted: they decide what comes first among equals, and
 * a seed is to be one story.
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

/**
 * Waiting for the disk proves nothing here, and no statement is planned twice. Rows are read
 * through an index, because their physical position depends on the machine.
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
  // The log tells when a backend that waits for a lock has checked for a deadlock; see LockLog.
  'log_lock_waits = on',
  `log_timezone = 'UTC'`,
  `log_line_prefix = '%m [%p] '`,
  'log_min_error_statement = panic',
  'log_error_verbosity = terse',
]

/**
 * Longer than an ended connection takes to go, and a server to start, also on a machine that has
 * much else to do.
 */
const START_MS_MAX = 600_000
const CUT_MS_MAX = 300_000
/** Simulations that one database sees. */
const PLAYED_MAX = 25
/** How often is asked whether a connection has ended. */
const ENDED_POLL_MS = 2
/** Turns of this process in which it sees that sockets have ended. */
const CUT_SEEN_TURNS = 8

/**
 * What a connection of the simulation may take: as long as it must, since this machine's clock is
 * no part of the story.
 */
const PATIENCE = 'statement_timeout=0&idle_in_transaction_session_timeout=0'

/**
 * An answer of the database is waited for so long as it takes: this machine's clock is no part of
 * the story.
 */
export const DATABASE_TIMEOUTS = { answerMs: 3_600_000, commitMs: 3_600_000, soonMs: 3_600_000 }

/**
 * Selects the processes that wait for a lock, and those that block them. It reads the table of
 * locks and not the processes' own state, because a process that releases a lock writes the next
 * owner into that table.
 */
const WAITING = `select pid, pg_blocking_pids(pid) blockers, floor(extract(epoch from since) * 1000)::float8 since_ms from (select pid, min(waitstart) since from pg_locks
  where not granted and locktype in ('relation', 'tuple', 'transactionid', 'virtualxid', 'advisory', 'object') group by pid) waiting
  order by since, pid`

interface Waiter {
  pid: number
  blockers: number[]
  since_ms: number | null
}

/**
 * Connections that wait for locks of others, by their servers' process ids, the one that has waited
 * longest first. `isKnot`: some wait for each other, which the database will end. `areChecked`:
 * each has checked for a deadlock, which a backend does once per wait. So where another closes a
 * cycle later, the last one finds the deadlock and fails.
 */
export interface Locked {
  pids: number[]
  isKnot: boolean
  areChecked: boolean
}

/** A simulation's database, with nothing in it but what an installation begins with. */
export interface SimulatedDatabase {
  name: string
  /** `of`: the name by which a connection is known. */
  url(of: string): string
  connections: Connections
  /** It may be the next simulation's, as it was at first. */
  giveBack(): Promise<void>
}

/** A database server for many simulations. Each simulation has exclusive use of one database. */
export class SimulatedServer {
  readonly home = mkdtempSync(join(tmpdir(), 'custody-simulation-'))
  #postgres: Awaited<ReturnType<typeof startEmbeddedPostgres>> | null = null
  #admin: Database | null = null
  #count = 0
  readonly #kept: SimulatedDatabase[] = []
  #lockLog: LockLog | null = null

  async start(): Promise<void> {
    await prepareDatabase(this.home)
    this.#postgres = await startEmbeddedPostgres(this.home, () => undefined, {
      startTimeoutMs: START_MS_MAX,
    })
    this.#admin = openDatabase(this.#postgres.url.replace('/custody?', '/postgres?'), {
      max: 2,
      onError: () => undefined,
    })
    for (const setting of SETTINGS) await this.#admin.query(`alter system set ${setting}`)
    await this.#admin.query('select pg_reload_conf()')
    this.#lockLog = new LockLog(join(this.home, 'postgres.log'))
    const template = openDatabase(this.#postgres.url, { max: 1, onError: () => undefined })
    for (const statement of [COUNTED_IDS, DEFAULTS, INDEXES]) await template.query(statement)
    await template.query(LEDGER_WATCH)
    await template.query(INITIAL_STATE)
    await template.close()
  }

  /**
   * What connections have learned of tables and plans is most of what a storm asks of the server,
   * so a database is emptied and kept with them, until what is left of its rows takes longer to
   * pass by.
   */
  async database(): Promise<SimulatedDatabase> {
    const known = this.#kept.pop()
    if (known) return known
    const admin = this.#admin as Database
    const name = `simulation_${++this.#count}`
    await admin.query(`create database ${name} template custody strategy file_copy`)
    await admin.query(`alter database ${name} set search_path = simulated, pg_catalog, public`)
    const url = (of: string) =>
      `${(this.#postgres as { url: string }).url.replace('/custody?', `/${name}?`)}&application_name=${of}&${PATIENCE}`
    const connections = new Connections()
    const cleaner = openDatabase(url('cleaner'), {
      ...DATABASE_TIMEOUTS,
      pool: connections.poolOf('cleaner'),
      onError: () => undefined,
    })
    let played = 0
    const database: SimulatedDatabase = {
      name,
      url,
      connections,
      giveBack: async () => {
        if (++played < PLAYED_MAX) {
          await cleaner.query('select simulated.begin_again()')
          this.#kept.push(database)
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
   * A process that waits for a lock is ended before the process that holds it. Otherwise the
   * waiting process could get the lock and continue or not, depending on the speed of the machine.
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
      // Not by the server's own waiting, which looks every tenth of a second. A socket closes with
      // its process, which leaves the server's list a moment before.
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
    await Promise.all(this.#kept.map(({ connections }) => connections.close()))
    await this.#admin?.close()
    this.#lockLog?.close()
    await this.#postgres?.stop()
    rmSync(this.home, { recursive: true, force: true })
  }
}

const blockersOf = (waiters: readonly Waiter[]) =>
  new Map(waiters.map(({ pid, blockers }) => [pid, blockers]))

const CHECKED =
  /^(\S+ \S+) UTC \[(\d+)\] LOG: {2}process \d+ (?:still waiting|avoided deadlock|detected deadlock)/

/**
 * The server's log, in which each backend writes a line when its wait for a lock has lasted
 * `deadlock_timeout` and it has checked for a deadlock.
 */
class LockLog {
  readonly #file: number
  readonly #buffer = Buffer.alloc(65_536)
  #rest = ''
  /** Time of the last check of each backend, in milliseconds since the Unix epoch. */
  readonly #checkedMs = new Map<number, number>()

  constructor(path: string) {
    this.#file = openSync(path, 'r')
  }

  /**
   * @param sinceMs when the wait began, rounded down: lines of earlier waits are not later than
   *   that
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
        const match = CHECKED.exec(line)
        if (match)
          this.#checkedMs.set(
            Number(match[2]),
            Date.parse(`${(match[1] as string).replace(' ', 'T')}Z`),
          )
      }
    }
  }

  close(): void {
    closeSync(this.#file)
  }
}

/** Whether anybody waits, by way of others, for itself. */
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
