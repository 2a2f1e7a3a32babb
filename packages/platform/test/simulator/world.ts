import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createHash } from 'node:crypto'
import { loadRegistry, type Network } from '@custody/chains'
import type { Logger } from 'pino'
import { Devnet, FAMILIES } from '../../../devnet/src/devnet.ts'
import { startEmbeddedPostgres } from '../../src/database/embedded.ts'
import { openDatabase, type Database } from '../../src/database/pool.ts'
import type { Caller } from '../../src/http/endpoint.ts'
import { chainsFetch } from '../chains-fetch.ts'
import { PUBLIC_KEY } from '../harness.ts'
import { NodeRoom } from '../node-room.ts'
import { NodeUnavailable } from '../../src/signing/nodes.ts'
import { prepareDatabase } from '../prepared-database.ts'
import { WholeKeys } from '../whole-keys.ts'
import type { Chance } from './chance.ts'
import { Instance } from './instance.ts'
import { Actor, Schedule } from './schedule.ts'

/** A network of the simulation: where it pays to, what a wallet gets, and how often a block comes. */
export interface Place { code: string; assets: readonly string[]; to: Record<string, string>; held: string; unit: string; blockMs: number; depthMax: number }

const EVM_TO = '0x00000000000000000000000000000000000000AA'
export const PLACES: readonly Place[] = [
  {
    code: 'ETH', assets: ['ETH', 'USDT_ETH'], to: { ETH: EVM_TO, USDT_ETH: EVM_TO }, held: '50', unit: '0.001', blockMs: 2000, depthMax: 1,
  },
  {
    code: 'BTC', assets: ['BTC'], to: { BTC: 'bcrt1qw508d6qejxtdg4y5r3zarvary0c5xw7kygt080' }, held: '5', unit: '0.0001', blockMs: 5000, depthMax: 2,
  },
  { code: 'XRP', assets: ['XRP'], to: { XRP: 'rHb9CJAWyB4rj91VRWn96DkukG4bwdtyTh' }, held: '500', unit: '0.01', blockMs: 2000, depthMax: 0 },
]

/** How often, in a thousand, each fault comes; drawn for each simulation, so that some have none of a kind and others many. */
export interface Odds { lost: number; refused: number; slow: number; nodeLost: number; nodeAway: number; nodeRefuses: number }

const registry = loadRegistry('local')

/** Ids that the database makes are counted: they decide what comes first among equals, and a seed is to be one story. */
const COUNTED_IDS = `do $$
declare
  each record;
begin
  create schema simulated;
  create sequence simulated.ids;
  create function simulated.gen_random_uuid() returns uuid language sql volatile as
    'select md5(nextval(''simulated.ids'')::text)::uuid';
  for each in select table_name, column_name from information_schema.columns
    where table_schema = 'public' and column_default like '%gen_random_uuid()%'
  loop
    execute format('alter table public.%I alter column %I set default simulated.gen_random_uuid()', each.table_name, each.column_name);
  end loop;
end $$`

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
    for (const setting of ['jit = off', 'autovacuum = off', 'deadlock_timeout = \'20ms\'', 'synchronize_seqscans = off']) {
      await this.#admin.query(`alter system set ${setting}`)
    }
    await this.#admin.query('select pg_reload_conf()')
    const template = openDatabase(this.#postgres.url, { max: 1, onError: () => undefined })
    await template.query(COUNTED_IDS)
    await template.close()
  }

  async database(): Promise<{ url: string; drop(): Promise<void> }> {
    const name = `simulation_${++this.#count}`
    await this.#admin?.query(`create database ${name} template custody strategy file_copy`)
    await this.#admin?.query(`alter database ${name} set search_path = simulated, pg_catalog, public`)
    return {
      url: (this.#postgres as { url: string }).url.replace('/custody?', `/${name}?`),
      drop: async () => void await this.#admin?.query(`drop database if exists ${name} with (force)`),
    }
  }

  async lockedCount(): Promise<number> {
    const row = await this.#admin?.one<{ count: string }>(`select count(*)::text count from pg_stat_activity where wait_event_type = 'Lock'`)
    return Number(row?.count ?? 0)
  }

  async stop(): Promise<void> {
    await this.#admin?.close()
    await this.#postgres?.stop()
    rmSync(this.home, { recursive: true, force: true })
  }
}

export class World {
  readonly seed: string
  readonly chance: Chance
  readonly schedule: Schedule
  readonly networks: { network: Network; place: Place }[]
  readonly assets: string[]
  readonly keys: WholeKeys
  readonly nodes: NodeRoom
  readonly callers: Caller[] = []
  readonly instances: Instance[] = []
  /** What has happened that is out of the ordinary, by kind. */
  readonly faults = new Map<string, number>()
  readonly lines: string[] = []
  odds: Odds = { lost: 0, refused: 0, slow: 0, nodeLost: 0, nodeAway: 0, nodeRefuses: 0 }
  devnet!: Devnet
  databaseUrl = ''
  /** How much of the schedule's trace is the story itself. */
  storyLength = Infinity
  /** Not part of what is simulated: the oracle's own eyes. */
  database!: Database
  #fetch!: typeof globalThis.fetch
  #drop: () => Promise<void> = async () => undefined
  readonly #home = mkdtempSync(join(tmpdir(), 'custody-simulated-'))
  #made = 0
  readonly god = new Actor('world')

  constructor(ground: Ground, seed: number, chance: Chance) {
    this.seed = String(seed)
    this.chance = chance
    this.schedule = new Schedule(chance, Date.UTC(2030, 0, 1), () => ground.lockedCount())
    const places = PLACES.filter(() => chance.below(2) === 1)
    const chosen = places.length > 0 ? places : [PLACES[0] as Place]
    this.networks = chosen.map((place) => ({ network: registry.network(place.code) as Network, place }))
    this.assets = chosen.flatMap(({ assets }) => assets)
    this.keys = new WholeKeys(seed)
    this.nodes = new NodeRoom(3, () => this.schedule.nowMs, this.keys)
  }

  async open(ground: Ground): Promise<void> {
    const { url, drop } = await ground.database()
    this.databaseUrl = url
    this.#drop = drop
    this.database = openDatabase(url, { max: 2, onError: () => undefined, now: () => this.schedule.nowMs })
    this.devnet = await Devnet.start(this.#home, 0, { manual: true, families: FAMILIES })
    this.#fetch = chainsFetch(this.devnet)
    const one = async (sql: string, values: unknown[]) => ((await this.database.one<{ id: string }>(sql, values)) as { id: string }).id
    const workspaceId = await one(`insert into workspaces (name) values ('acme') returning id`, [])
    for (const index of [1, 2]) {
      const subAccountId = await one(
        'insert into sub_accounts (workspace_id, name, path_index) values ($1, $2, $3) returning id', [workspaceId, `sub-${index}`, index])
      const apiKey = createHash('sha256').update(`${this.seed}/${index}`).digest('hex').replace(/^(.{8})(.{4})(.{4})(.{4})(.{12}).*/, '$1-$2-$3-$4-$5')
      this.nodes.enrol({ api_key: apiKey, public_key_pem: PUBLIC_KEY, role: 'full', workspace: 'acme', sub_account: index })
      this.callers.push({
        apiKey, role: 'full', workspaceId, workspace: 'acme', subAccountId, subAccount: `sub-${index}`, subAccountIndex: index,
      })
    }
  }

  /** A further process of the platform. */
  start(): Instance {
    const instance = new Instance(this, `platform-${++this.#made}`)
    this.instances.push(instance)
    // It may end by itself, at a commit.
    void instance.actor.death.then(() => this.kill(instance))
    instance.run(new Set(this.networks.map(({ network }) => network.code)))
    return instance
  }

  async kill(instance: Instance): Promise<void> {
    const at = this.instances.indexOf(instance)
    if (at < 0) return
    this.instances.splice(at, 1)
    this.schedule.bury(instance.actor)
    await instance.kill()
  }

  noted(kind: string): void {
    this.faults.set(kind, (this.faults.get(kind) ?? 0) + 1)
  }

  log(name: string): Logger {
    const write = (level: string) => (object: object, text?: string) => {
      if (level !== 'debug') this.lines.push(`${name} ${level} ${typeof object === 'string' ? object : `${text ?? ''} ${JSON.stringify(object)}`}`)
    }
    return { info: write('info'), warn: write('warn'), error: write('error'), debug: () => undefined } as unknown as Logger
  }

  async control(command: Record<string, unknown>): Promise<Record<string, unknown>> {
    const body = JSON.stringify(command)
    const response = await this.#fetch(`${this.devnet.url}/control`, { method: 'POST', headers: { 'content-type': 'application/json' }, body })
    const answer = await response.json() as Record<string, unknown>
    if (!response.ok) throw new Error(String(answer['error']))
    return answer
  }

  async askChain(input: Parameters<typeof fetch>[0], init: RequestInit | undefined): Promise<Response> {
    const { chance, odds } = this
    if (chance.rarely(odds.refused)) {
      this.noted('a chain was not reached')
      throw new TypeError('fetch failed')
    }
    const { signal: _, ...rest } = init ?? {}
    const response = await this.#fetch(input, rest)
    const { status, headers } = response
    const body = await response.arrayBuffer()
    if (chance.rarely(odds.lost)) {
      this.noted('an answer of a chain was lost')
      throw new TypeError('fetch failed')
    }
    return new Response(body, { status, headers })
  }

  async askNode(node: number, method: string, path: string, body: unknown): Promise<never> {
    const { chance, odds } = this
    if (chance.rarely(odds.nodeAway)) {
      this.noted('a node was not reached')
      throw new NodeUnavailable(node, 'is away')
    }
    const answer = await this.nodes.call(node, method, path, body)
    if (chance.rarely(odds.nodeLost)) {
      this.noted('an answer of a node was lost')
      throw new NodeUnavailable(node, 'no answer')
    }
    return answer as never
  }

  registryAsset(asset: string) {
    return registry.asset(asset)
  }

  async close(): Promise<void> {
    for (let last = this.instances.at(-1); last; last = this.instances.at(-1)) await this.kill(last)
    await this.database.close()
    await this.#drop()
    this.devnet.close()
    this.nodes.close()
    rmSync(this.#home, { recursive: true, force: true })
  }
}
