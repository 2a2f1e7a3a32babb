import { mkdtempSync, rmSync } from 'node:fs'
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
end $$`

/** Waiting for the disk proves nothing here, and nobody plans twice. */
const SETTINGS = [
  'jit = off', 'autovacuum = off', `deadlock_timeout = '4ms'`, 'synchronize_seqscans = off', 'synchronous_commit = off',
  'max_parallel_workers_per_gather = 0', 'plan_cache_mode = force_generic_plan', 'fsync = off', 'full_page_writes = off',
]

/** Longer than an ended connection takes to go. */
const CUT_MS_MAX = 5000
/** How often is asked whether a connection has ended. */
const ENDED_POLL_MS = 2
/** A socket that has ended is seen by this process within it. */
const CUT_SEEN_MS = 20

/** A database server for many simulations; each has a database of its own. */
export class Ground {
  readonly home = mkdtempSync(join(tmpdir(), 'custody-simulation-'))
  #postgres: Awaited<ReturnType<typeof startEmbeddedPostgres>> | null = null
  #admin: Database | null = null
  #count = 0

  async start(): Promise<void> {
    await prepareDatabase(this.home)
    this.#postgres = await startEmbeddedPostgres(this.home)
    this.#admin = openDatabase(this.#postgres.url.replace('/custody?', '/postgres?'), { max: 2, onError: () => undefined })
    for (const setting of SETTINGS) await this.#admin.query(`alter system set ${setting}`)
    await this.#admin.query('select pg_reload_conf()')
    const template = openDatabase(this.#postgres.url, { max: 1, onError: () => undefined })
    await template.query(COUNTED_IDS)
    await template.close()
  }

  async database(): Promise<{ name: string; url: string; drop(): Promise<void> }> {
    const name = `simulation_${++this.#count}`
    await this.#admin?.query(`create database ${name} template custody strategy file_copy`)
    await this.#admin?.query(`alter database ${name} set search_path = simulated, pg_catalog, public`)
    return {
      name,
      url: (this.#postgres as { url: string }).url.replace('/custody?', `/${name}?`),
      drop: async () => {
        await this.#ended(name)
        await this.#admin?.query(`drop database if exists ${name}`)
      },
    }
  }

  /**
   * How many connections wait for a lock that another holds. Of the table of locks, not of what each says that it does: whoever
   * lets a lock go writes there who has it next.
   */
  async lockedCount(): Promise<number> {
    const row = await this.#admin?.one<{ count: string }>('select count(distinct pid)::text count from pg_locks where not granted')
    return Number(row?.count ?? 0)
  }

  /** Ends all connections to a database, as a restart of the server does; resolves once everybody has seen it. */
  async cut(name: string): Promise<void> {
    await this.#ended(name)
    await new Promise((resolve) => setTimeout(resolve, CUT_SEEN_MS))
  }

  async #ended(name: string): Promise<void> {
    // Not by the server's own waiting, which looks every tenth of a second, one connection after the other.
    await this.#admin?.query('select pg_terminate_backend(pid) from pg_stat_activity where datname = $1', [name])
    const end = performance.now() + CUT_MS_MAX
    while (await this.#admin?.one('select 1 from pg_stat_activity where datname = $1', [name])) {
      if (performance.now() > end) throw new Error(`a connection to ${name} does not end`)
      await new Promise((resolve) => setTimeout(resolve, ENDED_POLL_MS))
    }
  }

  async stop(): Promise<void> {
    await this.#admin?.close()
    await this.#postgres?.stop()
    rmSync(this.home, { recursive: true, force: true })
  }
}
