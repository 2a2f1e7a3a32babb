import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createHash } from 'node:crypto'
import { loadRegistry, type Network } from '@custody/chains'
import type { Logger } from 'pino'
import { Devnet, FAMILIES } from '../../../devnet/src/devnet.ts'
import { openDatabase, type Database } from '../../src/core/database/pool.ts'
import { isScanner, isApi, isWorker } from '../../src/server/app/health/role-duties.ts'
import type { Role } from '../../src/core/settings/settings.ts'
import type { Caller } from '../../src/core/http/endpoint.ts'
import { chainsFetch } from '../chains/chains-fetch.ts'
import { PUBLIC_KEY } from './caller-key.ts'
import { InProcessNodes } from '../in-process-nodes.ts'
import { WholeKeys } from '../../../signer/testing/whole-keys.ts'
import { ChainFaults } from './chain-faults.ts'
import type { SeededRandom } from './seeded-random.ts'
import type { Connections } from './connections.ts'
import { Exchange } from './exchange.ts'
import type { SimulatedServer } from './setup-mode.ts'
import { DATABASE_TIMEOUTS } from '../test-database.ts'
import { Instance } from './instance.ts'
import { NodeFaults } from './node-faults.ts'
import { isGovernedSeed, SimulatedPolicy } from './policy/simulated-policy.ts'
import { NO_FAULTS, type FaultRates } from './probabilities.ts'
import { ExternalServices } from './external-services.ts'
import { NETWORKS, type SimulatedNetwork } from './networks.ts'
import { Schedule } from './schedule.ts'
import { WeatherOracle } from './oracle-weather.ts'
import { WeatherReport } from './weather.ts'

const registry = loadRegistry('local')
/** Beginning of the log line about an expired transaction. */
const EXPIRED = 'a transaction expired before it was included in a block'

/** Draws one to three networks. */
function drawPlaces(random: SeededRandom): SimulatedNetwork[] {
  const left = [...NETWORKS]
  const count = 1 + random.below(3)
  const networks = Array.from(
    { length: count },
    () => left.splice(random.below(left.length), 1)[0] as SimulatedNetwork,
  )
  return NETWORKS.filter((place) => networks.includes(place))
}

/** Draws one to three processes with all roles, or any number of processes for each role. */
function drawRoles(random: SeededRandom): Role[] {
  if (random.below(3) < 2) return Array.from({ length: 1 + random.below(3) }, () => 'all')
  const some = (role: Role, count: number) => Array.from({ length: count }, () => role)
  return [
    ...some('api', 1 + random.below(2)),
    ...some('worker', 1 + random.below(2)),
    ...some('scanner', 1 + random.below(3)),
    ...some('all', random.below(2)),
  ]
}

export class SimulatedEnvironment {
  readonly seed: string
  readonly random: SeededRandom
  readonly schedule: Schedule
  readonly networks: { network: Network; place: SimulatedNetwork }[]
  readonly assets: string[]
  readonly keys: WholeKeys
  readonly nodes: InProcessNodes
  readonly callers: Caller[] = []
  readonly instances: Instance[] = []
  /** Number of injected faults, by kind. */
  readonly faults = new Map<string, number>()
  readonly lines: string[] = []
  /** Violations that were found during the run. */
  readonly problems: string[] = []
  rates: FaultRates = NO_FAULTS
  /** False while faults are injected. */
  isWhole = true
  devnet!: Devnet
  /** Returns the database URL by the name under which a process connects. */
  databaseUrl!: (of: string) => string
  /** Connections of the platform's processes. */
  connections!: Connections
  #databaseName = ''
  readonly #databaseServer: SimulatedServer
  /** Length of the schedule's trace that belongs to the run itself. */
  storyLength = Infinity
  /** The oracle's own database connection, which is not part of the simulation. */
  database!: Database
  chainFaults!: ChainFaults
  weatherOracle!: WeatherOracle
  readonly nodeFaults: NodeFaults
  /** Endpoints of the chains, and the state of their nodes. */
  readonly weather: WeatherReport
  readonly externalServices: ExternalServices
  readonly exchange: Exchange
  /** Policy of the workspace; null: it has none. */
  readonly policy: SimulatedPolicy | null
  /** Whether a prepaid account pays platform fees. */
  hasFees = false
  #fetch!: typeof globalThis.fetch
  #giveBack: () => Promise<void> = async () => undefined
  /** Processes that have ended and whose connections are still being closed. */
  readonly #burials = new Set<Promise<void>>()
  /** Roles of the platform's processes. */
  readonly roles: readonly Role[]
  readonly #home = mkdtempSync(join(tmpdir(), 'custody-simulated-'))
  #made = 0

  constructor(databaseServer: SimulatedServer, seed: number, chance: SeededRandom) {
    this.seed = String(seed)
    this.random = chance
    this.schedule = new Schedule(chance, Date.UTC(2030, 0, 1), () => databaseServer.locked())
    const chosen = drawPlaces(chance)
    this.networks = chosen.map((place) => ({
      network: registry.network(place.code) as Network,
      place,
    }))
    this.assets = chosen.flatMap(({ assets }) => assets)
    this.roles = drawRoles(chance)
    this.keys = new WholeKeys(seed)
    const now = () => this.schedule.nowMs
    this.policy = isGovernedSeed(seed) ? new SimulatedPolicy(now) : null
    this.nodes = new InProcessNodes(3, now, this.keys, this.policy?.nodes ?? null)
    this.nodeFaults = new NodeFaults(this, this.nodes)
    this.weather = new WeatherReport(this)
    this.externalServices = new ExternalServices(this)
    this.exchange = new Exchange(this)
    this.#databaseServer = databaseServer
  }

  async open(databaseServer: SimulatedServer): Promise<void> {
    const { name, url, adminUrl, connections, giveBack } = await databaseServer.database()
    this.#databaseName = name
    this.databaseUrl = url
    this.connections = connections
    this.#giveBack = giveBack
    this.database = openDatabase(adminUrl('oracle'), {
      max: 2,
      ...DATABASE_TIMEOUTS,
      pool: connections.poolOf('oracle'),
      onError: () => undefined,
      now: () => this.schedule.nowMs,
    })
    const codes = new Set(this.networks.map(({ network }) => network.code))
    this.devnet = await Devnet.start(this.#home, 0, {
      now: () => this.schedule.nowMs,
      families: FAMILIES.map(
        (family) => (place) => family(place).filter(({ code }) => codes.has(code)),
      ),
    })
    // Ports depend on the machine, and error messages contain them.
    this.devnet.url = 'http://chains.simulated'
    this.#fetch = chainsFetch(this.devnet)
    await this.weather.open(
      this.#home,
      this.networks.map(({ place }) => place),
    )
    this.chainFaults = new ChainFaults(this, this.weather.fetch)
    this.weatherOracle = new WeatherOracle(this, new Instance(this, 'weather', 'api').services)
    const one = async (sql: string, values: unknown[]) =>
      ((await this.database.one<{ id: string }>(sql, values)) as { id: string }).id
    const workspaceId = await one(`insert into workspaces (name) values ('acme') returning id`, [])
    for (const index of [1, 2]) {
      const subAccountId = await one(
        'insert into sub_accounts (workspace_id, name, path_index) values ($1, $2, $3) returning id',
        [workspaceId, `sub-${index}`, index],
      )
      const apiKey = createHash('sha256')
        .update(`${this.seed}/${index}`)
        .digest('hex')
        .replace(/^(.{8})(.{4})(.{4})(.{4})(.{12}).*/, '$1-$2-$3-$4-$5')
      await this.database.query(
        `insert into api_users (api_key, sub_account_id, role, public_key_pem)
          values ($1, $2, 'full', $3)`,
        [apiKey, subAccountId, PUBLIC_KEY],
      )
      this.nodes.enrol({
        api_key: apiKey,
        public_key_pem: PUBLIC_KEY,
        role: 'full',
        workspace: 'acme',
        sub_account: index,
      })
      this.callers.push({
        apiKey,
        role: 'full',
        workspaceId,
        workspace: 'acme',
        subAccountId,
        subAccount: `sub-${index}`,
        subAccountIndex: index,
      })
    }
    await this.policy?.install(this)
  }

  /** Starts another process of the platform. */
  start(role: Role): Instance {
    const instance = new Instance(
      this,
      `${role === 'all' ? 'platform' : role}-${++this.#made}`,
      role,
    )
    this.instances.push(instance)
    // A process may end by itself, at a commit.
    void instance.actor.death.then(() => this.kill(instance))
    instance.run()
    return instance
  }

  /** Stops a process gracefully: it ends once it has finished its pending work. */
  stop(instance: Instance): void {
    void instance.stop().then(() => this.kill(instance))
  }

  /** Returns the processes of a role that have not been stopped. */
  of(role: Role): Instance[] {
    return this.instances.filter((instance) => instance.role === role && !instance.isStopping)
  }

  /** Roles that are needed and that no running process has. */
  get missing(): Role[] {
    const there = this.instances.filter(({ isStopping }) => !isStopping).map(({ role }) => role)
    const duties = { api: isApi, worker: isWorker, scanner: isScanner } as const
    const missing = (Object.keys(duties) as (keyof typeof duties)[]).filter(
      (duty) => !there.some(duties[duty]),
    )
    return missing.length === 3 && !this.roles.includes('api') ? ['all'] : missing
  }

  kill(instance: Instance): Promise<void> {
    const at = this.instances.indexOf(instance)
    if (at < 0) return this.buried()
    this.instances.splice(at, 1)
    this.schedule.bury(instance.actor)
    instance.kill()
    const ending = this.connections.end(instance.actor.name)
    // The process's connections end with it, including those that wait for a lock that another
    // process holds.
    const burial = this.schedule
      .freed(ending, () => this.#databaseServer.cut(this.#databaseName, ending))
      .finally(() => this.#burials.delete(burial))
    this.#burials.add(burial)
    burial.catch(() => undefined)
    return burial
  }

  /** Resolves once all connections of ended processes are closed. */
  async buried(): Promise<void> {
    await Promise.all(this.#burials)
  }

  /**
   * Ends all database connections that are in the middle of a statement or transaction, as a
   * restart of the database server does.
   */
  async cutDatabase(): Promise<void> {
    const ending = this.connections.end(null)
    await this.schedule.freed(ending, () => this.#databaseServer.cut(this.#databaseName, ending))
  }

  noted(kind: string): void {
    this.faults.set(kind, (this.faults.get(kind) ?? 0) + 1)
  }

  log(name: string): Logger {
    const write = (level: string) => (object: object, text?: string) => {
      if (text?.startsWith(EXPIRED)) this.weatherOracle.expired((object as { hash: string }).hash)
      if (level !== 'debug')
        this.lines.push(
          `${name} ${level} ${typeof object === 'string' ? object : `${text ?? ''} ${JSON.stringify(object, (_, value: unknown) => (value instanceof Error ? value.stack : value))}`}`,
        )
    }
    return {
      info: write('info'),
      warn: write('warn'),
      error: write('error'),
      debug: () => undefined,
    } as unknown as Logger
  }

  async control(command: Record<string, unknown>): Promise<Record<string, unknown>> {
    const body = JSON.stringify(command)
    const response = await this.#fetch(`${this.devnet.url}/control`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body,
    })
    const answer = (await response.json()) as Record<string, unknown>
    if (!response.ok) throw new Error(String(answer['error']))
    if (command['command'] === 'mine' || command['command'] === 'reorg')
      await this.weather.record(String(command['network']))
    return answer
  }

  registryAsset(asset: string) {
    return registry.asset(asset)
  }

  async close(): Promise<void> {
    for (let last = this.instances.at(-1); last; last = this.instances.at(-1)) await this.kill(last)
    await this.database.close()
    await this.#giveBack()
    await this.weatherOracle.settled()
    this.weather.heal()
    this.devnet.close()
    this.nodes.close()
    rmSync(this.#home, { recursive: true, force: true })
  }
}
