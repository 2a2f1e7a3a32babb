import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startEmbeddedPostgres } from '../../src/database/embedded.ts'
import { openDatabase, type Database } from '../../src/database/pool.ts'
import { prepareDatabase } from '../prepared-database.ts'

/** Ids and times that the database makes are counted: they decide what comes first among equals, and a seed is to be one story. */
const COUNTED_IDS = `do $$
declare
  each record;
begin
  create schema simulated;
  create sequence simulated.ids;
  create function simulated.gen_random_uuid() returns uuid language sql volatile as
    'select md5(nextval(''simulated.ids'')::text)::uuid';
  create function simulated.now() returns timestamptz language sql volatile as
    'select timestamptz ''2030-01-01 00:00:00+00'' + nextval(''simulated.ids'') * interval ''1 millisecond''';
  for each in select table_name, column_name, case when column_default like '%uuid%' then 'gen_random_uuid' else 'now' end maker
    from information_schema.columns
    where table_schema = 'public' and (column_default like '%gen_random_uuid()%' or column_default like '%now()%')
  loop
    execute format('alter table public.%I alter column %I set default simulated.%I()', each.table_name, each.column_name, each.maker);
  end loop;
  -- What is due at one time comes by its id, and not by where it happens to lie.
  for each in select indexname, indexdef from pg_indexes where schemaname = 'public' and indexdef like '%(next_run_at)%' loop
    execute format('drop index public.%I', each.indexname);
    execute replace(each.indexdef, '(next_run_at)', '(next_run_at, id)');
  end loop;
end $$`

/** Waiting for the disk proves nothing here, and nobody plans twice. Rows come by an index: where they lie is a matter of this machine. */
const SETTINGS = [
  'jit = off', 'autovacuum = off', `deadlock_timeout = '4ms'`, 'synchronize_seqscans = off', 'synchronous_commit = off',
  'max_parallel_workers_per_gather = 0', 'plan_cache_mode = force_generic_plan', 'fsync = off', 'full_page_writes = off',
  'enable_seqscan = off', 'enable_bitmapscan = off', 'enable_hashjoin = off', 'enable_mergejoin = off',
]

/** Longer than an ended connection takes to go, and a server to start, also on a machine that has much else to do. */
const START_MS_MAX = 600_000
const CUT_MS_MAX = 300_000
/** How often is asked whether a connection has ended. */
const ENDED_POLL_MS = 2
/** Turns of this process in which it sees that sockets have ended. */
const CUT_SEEN_TURNS = 8

/** What a connection of the simulation may take: as long as it must, since this machine's clock is no part of the story. */
const PATIENCE = 'statement_timeout=0&idle_in_transaction_session_timeout=0'

/** An answer of the database is waited for so long as it takes: this machine's clock is no part of the story. */
export const DATABASE_PATIENCE = { answerMs: 3_600_000, commitMs: 3_600_000 }

/**
 * Who waits for a lock, and for whom. Of the table of locks, not of what each says that it does: whoever lets a lock go writes there who
 * has it next.
 */
const WAITING = `select pid, pg_blocking_pids(pid) blockers from (select distinct pid from pg_locks
  where not granted and locktype in ('relation', 'tuple', 'transactionid', 'virtualxid', 'advisory', 'object')) waiting`

/** Connections that wait for locks of others. `isKnot`: some wait for each other, which the database will end. */
export interface Locked { count: number; isKnot: boolean }

/** A database server for many simulations; each has a database of its own. */
export class Ground {
  readonly home = mkdtempSync(join(tmpdir(), 'custody-simulation-'))
  #postgres: Awaited<ReturnType<typeof startEmbeddedPostgres>> | null = null
  #admin: Database | null = null
  #count = 0

  async start(): Promise<void> {
    await prepareDatabase(this.home)
    this.#postgres = await startEmbeddedPostgres(this.home, () => undefined, { startTimeoutMs: START_MS_MAX })
    this.#admin = openDatabase(this.#postgres.url.replace('/custody?', '/postgres?'), { max: 2, onError: () => undefined })
    for (const setting of SETTINGS) await this.#admin.query(`alter system set ${setting}`)
    await this.#admin.query('select pg_reload_conf()')
    const template = openDatabase(this.#postgres.url, { max: 1, onError: () => undefined })
    await template.query(COUNTED_IDS)
    await template.close()
  }

  /** A database of its own. `url` takes the name by which its connections are known. */
  async database(): Promise<{ name: string; url(of: string): string; drop(): Promise<void> }> {
    const name = `simulation_${++this.#count}`
    await this.#admin?.query(`create database ${name} template custody strategy file_copy`)
    await this.#admin?.query(`alter database ${name} set search_path = simulated, pg_catalog, public`)
    return {
      name,
      url: (of) => `${(this.#postgres as { url: string }).url.replace('/custody?', `/${name}?`)}&application_name=${of}&${PATIENCE}`,
      drop: async () => {
        await this.#ended(name)
        await this.#admin?.query(`drop database if exists ${name}`)
      },
    }
  }

  async locked(): Promise<Locked> {
    const waiting = await this.#waiting()
    return { count: waiting.size, isKnot: isKnot(waiting) }
  }

  /**
   * Ends all connections to a database, as a restart of the server does, or those of one name, as where their process is gone;
   * resolves once everybody has seen it.
   */
  async cut(name: string, of: string | null = null): Promise<void> {
    await this.#ended(name, of)
    for (let turn = 0; turn < CUT_SEEN_TURNS; turn++) await new Promise((resolve) => setImmediate(resolve))
  }

  /**
   * Whoever waits for a lock ends before whom it waits for: else it may have the lock of one that has just ended, and go on, or not, as
   * this machine likes.
   */
  async #ended(name: string, of: string | null = null): Promise<void> {
    const end = performance.now() + CUT_MS_MAX
    const ours = 'from pg_stat_activity where datname = $1 and ($2::text is null or application_name = $2)'
    for (;;) {
      const pids = (await this.#admin?.query<{ pid: number }>(`select pid ${ours}`, [name, of]) ?? []).map(({ pid }) => pid)
      if (pids.length === 0) return
      const waiting = await this.#waiting()
      const last = pids.filter((pid) => waiting.has(pid) && ![...waiting.values()].some((blockers) => blockers.includes(pid)))
      const ending = last.length > 0 ? last : pids
      await this.#admin?.query('select pg_terminate_backend(pid) from unnest($1::integer[]) pid', [ending])
      // Not by the server's own waiting, which looks every tenth of a second. A socket closes with its process, which leaves the
      // server's list a moment before.
      const isThere = async () => await this.#admin?.one(`select 1 ${ours} and pid = any($3)`, [name, of, ending]) !== undefined
        || ending.some((pid) => existsSync(`/proc/${pid}`))
      while (await isThere()) {
        if (performance.now() > end) throw new Error(`a connection to ${name} does not end`)
        await new Promise((resolve) => setTimeout(resolve, ENDED_POLL_MS))
      }
    }
  }

  /** Of whom waits for a lock: for whom. */
  async #waiting(): Promise<Map<number, number[]>> {
    const waiting = await this.#admin?.query<{ pid: number; blockers: number[] }>(WAITING) ?? []
    return new Map(waiting.map(({ pid, blockers }) => [pid, blockers]))
  }

  async stop(): Promise<void> {
    await this.#admin?.close()
    await this.#postgres?.stop()
    rmSync(this.home, { recursive: true, force: true })
  }
}

/** Whether anybody waits, by way of others, for itself. */
function isKnot(waiting: ReadonlyMap<number, readonly number[]>): boolean {
  const reaches = (from: number, to: number, seen: Set<number>): boolean => (waiting.get(from) ?? []).some((next) => {
    if (next === to) return true
    if (seen.has(next)) return false
    seen.add(next)
    return reaches(next, to, seen)
  })
  return [...waiting.keys()].some((pid) => reaches(pid, pid, new Set()))
}
