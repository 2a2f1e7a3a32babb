import { loadRegistry, type Curve, type Network } from '@custody/chains'
import type { FastifyInstance } from 'fastify'
import type { Logger } from 'pino'
import { connectAll } from '../../src/server/app/connect.ts'
import { openDatabase, type Database } from '../../src/core/database/pool.ts'
import { isScanner, isApi } from '../../src/server/app/health/role-duties.ts'
import { loopsOf } from '../../src/server/app/loops.ts'
import { heartbeatLoop } from '../../src/server/app/health/role-health.ts'
import { WorkspacePolicies } from '../../src/custody/approvals/workspace-policies.ts'
import { changeApprovalsOf } from '../../src/custody/policies/changes/change-approvals.ts'
import { HeldNetworks } from '../../src/custody/deposits/hold-networks.ts'
import { runLoops } from '../../src/core/engine/loops/loop.ts'
import { Networks } from '../../src/core/engine/networks.ts'
import type { Application } from '../../src/server/app/application.ts'
import type { Environment } from '../../src/core/environment.ts'
import { publishLoop } from '../../src/events/events/publish.ts'
import { Callers as KnownCallers } from '../../src/core/http/authentication/callers.ts'
import { buildServer } from '../../src/core/http/server.ts'
import { createMetrics } from '../../src/core/metrics.ts'
import type { Role } from '../../src/core/settings/settings.ts'
import { readTiers } from '../../src/core/settings/tiers.ts'
import { Secrets } from '../../src/core/secrets.ts'
import { distributorOf } from '../../src/events/webhooks/distribute.ts'
import { LoadMonitor } from '../../src/core/load-monitor.ts'
import { Receipts } from '../../src/core/signing/receipts.ts'
import { EgressPolicy } from '../../src/events/webhooks/egress-policy.ts'
import { databaseNonces } from '../../src/commerce/exchanges/nonces.ts'
import { Venues } from '../../src/commerce/exchanges/venues.ts'
import type { SignerNodes } from '../../src/core/signing/nodes.ts'
import { Notifier } from '../../src/core/ledger/notifier.ts'
import { fixtureServices } from '../chains/chain-fixture.ts'
import type { InProcessNodes } from '../in-process-nodes.ts'
import type { WholeKeys } from '../../../signer/testing/whole-keys.ts'
import type { ChainFaults } from './chain-faults.ts'
import { bytesOf } from './seeded-random.ts'
import type { Connections } from './connections.ts'
import { ENDPOINTS } from './requests.ts'
import { EXCHANGE_URL, type Exchange } from './exchange.ts'
import { digest, gatedDatabase, type LastCommit } from './gated-database.ts'
import { DATABASE_TIMEOUTS } from '../test-database.ts'
import { watched } from './ledger-watch.ts'
import type { NodeFaults } from './node-faults.ts'
import type { ExternalServices } from './external-services.ts'
import { Actor, type Schedule } from './schedule.ts'
import type { WeatherReport } from './weather.ts'

const registry = loadRegistry('local')
/** Factor by which the instance's loops poll less often than in a platform. */
const RARER = 12
/** Minimum interval in milliseconds of loops. Short intervals of a platform are not needed here. */
const EVERY_MS_MIN = 6000
/**
 * Time-out in milliseconds of this machine's clock, which is not part of the simulated time. The
 * exchange itself decides when a request times out.
 */
const EXCHANGE_TIMEOUT_MS = 3_600_000
/**
 * Minimum pause in milliseconds. A worker that waits for a slow response otherwise looks for more
 * work all the time.
 */
const PAUSE_MS_MIN = 1000

/** Load monitor that ignores the load of this machine, which is not part of the simulation. */
class Unhurried extends LoadMonitor {
  override get isHigh(): boolean {
    return this.isBurst
  }
}

/** The parts of the simulation environment that an instance uses. */
interface InstanceEnvironment {
  readonly seed: string
  readonly schedule: Schedule
  readonly networks: readonly { network: Network }[]
  readonly keys: WholeKeys
  readonly nodes: InProcessNodes
  readonly problems: string[]
  readonly hasFees: boolean
  /** Null: the workspace has no policy. */
  readonly policy: object | null
  readonly devnet: { readonly url: string }
  readonly databaseUrl: (of: string) => string
  readonly connections: Connections
  readonly chainFaults: ChainFaults
  readonly weather: Pick<WeatherReport, 'endpoints'>
  readonly nodeFaults: NodeFaults
  readonly externalServices: ExternalServices
  readonly exchange: Exchange
  log(name: string): Logger
  /** Sends a command to the local chains. */
  control(command: Record<string, unknown>): Promise<Record<string, unknown>>
}

/**
 * A process of the platform. Depending on its role it answers callers, processes transfers, scans
 * the chains, or all of these.
 */
export class Instance {
  readonly actor: Actor
  readonly role: Role
  readonly services: Application
  readonly #database: Database
  readonly #stop = new AbortController()
  readonly #work: Notifier
  #server: Promise<FastifyInstance> | null = null
  #held: HeldNetworks | null = null
  #loops: Promise<void> = Promise.resolve()
  /** Number of requests in progress. */
  requestCount = 0
  isStopping = false
  /** If set, the process ends at its next commit, in this way. */
  lastCommit: LastCommit | null = null

  constructor(world: InstanceEnvironment, name: string, role: Role) {
    const { schedule } = world
    this.role = role
    this.actor = new Actor(name)
    const actor = this.actor
    const bytes = bytesOf(`${world.seed}/${name}`)
    const environment: Environment = {
      now: () => schedule.nowMs,
      uuid: () =>
        Buffer.from(bytes(16))
          .toString('hex')
          .replace(/(.{8})(.{3}).(.{3}).(.{3})(.{12}).*/, '$1-$2a-4$3-8$4-$5')
          .slice(0, 36),
      bytes,
      sleep: (ms, signal) => schedule.sleep(actor, Math.max(ms, PAUSE_MS_MIN), signal),
      checkpoint: () => undefined,
    }
    this.#work = new Notifier(environment)
    this.#database = openDatabase(world.databaseUrl(name), {
      ...DATABASE_TIMEOUTS,
      pool: world.connections.poolOf(name),
      now: environment.now,
      onError: () => undefined,
      max: 30,
      onEvent: () => this.#work.ring(),
    })
    const database = gatedDatabase(
      watched(this.#database, (problem) => world.problems.push(problem)),
      actor,
      schedule,
      () => this.lastCommit,
    )
    const signers = {
      ...world.nodes.signers,
      call: (node: number, method: string, path: string, body: unknown) =>
        schedule.pauseAt(actor, `node ${node} ${path} ${digest([body])}`, () =>
          world.nodeFaults.ask(node, method, path, body),
        ),
    } as unknown as SignerNodes
    const log = world.log(name)
    const pressure = new Unhurried(environment.now)
    this.services = fixtureServices(
      {
        environment,
        database,
        log,
        signers,
        pressure,
        receipts: new Receipts({ signers, environment, database, log, pressure }),
        metrics: createMetrics(),
        outbox: new Notifier(environment),
        work: this.#work,
        keys: { get: async (_workspace: string, curve: Curve) => ({ at: world.keys.at[curve] }) },
        settings: {
          network: 'local',
          role,
          pollMs: 500,
          prepaidTiers: readTiers(world.hasFees ? 'FREE:0:10:0.50:0' : 'FREE:0:0:0:0'),
          feeBumpAfterMs: 0,
          auditEveryMs: 0,
          sweep: {},
          rateLimit: 10_000,
          rateScope: 'key',
          trustProxy: 0,
          authLegacy: false,
        },
        prices: {
          price: () =>
            world.hasFees
              ? { price: 50_000n * 10n ** 12n, at: schedule.nowMs, sources: [], stale: false }
              : null,
        },
        aml: {
          providers: { CHAINALYSIS: world.externalServices.provider(actor) },
          sanctions: { has: () => false },
          secrets: new Secrets(new Uint8Array(32), environment),
        },
        callers: new KnownCallers(database, environment),
        policyChanges: changeApprovalsOf({ database, registry, signers }),
        ...(world.policy ? { policies: new WorkspacePolicies({ environment, signers }) } : {}),
        feed: { ring: () => undefined },
        trading: { due: new Notifier(environment) },
        exchangeTransfers: { due: new Notifier(environment) },
        exchanges: new Venues({
          urls: { kraken: EXCHANGE_URL },
          only: ['kraken'],
          environment,
          paced: false,
          nonces: databaseNonces(database),
          timeoutMs: EXCHANGE_TIMEOUT_MS,
          fetch: (async (input, init) =>
            world.exchange.handle(actor, String(input), init)) as typeof globalThis.fetch,
        }),
        webhooks: {
          reach: new EgressPolicy(['127.0.0.0/8'], (() => undefined) as never),
          due: new Notifier(environment),
          key: async () => ({ privateKey: null }),
          sender: {
            post: (url: string, headers: Record<string, string>, body: string) =>
              world.externalServices.post(actor, url, headers, body),
            close: () => undefined,
          },
        },
        devnet: (command: Record<string, unknown>) =>
          schedule.pauseAt(actor, `devnet ${String(command['command'])}`, () =>
            world.control(command),
          ),
      },
      {},
    )
    const fetch = (async (input, init) => {
      const path = String(input).replace(/^https?:\/\//, '')
      const body = String(init?.body ?? '')
      const requestDigest = digest([body.replace(/"id":\d+,?/g, '')])
      const answer = await schedule.pauseAt(
        actor,
        `chain ${path} ${/"method":"(\w+)"/.exec(body)?.[1] ?? ''} ${requestDigest}`,
        () => world.chainFaults.ask(input, init),
      )
      const delayMs = world.chainFaults.delay()
      if (delayMs > 0) await schedule.sleep(actor, delayMs)
      return answer
    }) as typeof globalThis.fetch
    const connected = connectAll({ ...this.services }, world.weather.endpoints, fetch)
    Object.assign(this.services, { networks: new Networks(connected) })
  }

  /** Runs the loops of the process's role until the process dies or stops. */
  run(): void {
    const { services } = this
    const id = services.environment.uuid()
    this.#held = new HeldNetworks(
      services,
      id,
      services.networks.all().map(({ network }) => network.code),
    )
    const loops = [
      heartbeatLoop(services, id),
      publishLoop(services, distributorOf(services)),
      ...loopsOf(services, this.#held),
    ]
    // The loops run less often than in a platform, because idle queries are most of the cost of a
    // seed.
    const rarer = loops.map((loop) => ({
      ...loop,
      everyMs: Math.max(loop.everyMs * RARER, EVERY_MS_MIN),
    }))
    this.#loops = runLoops(services, rarer, this.#stop.signal).catch(() => undefined)
  }

  /** Stops gracefully: pending work is finished, and leases are released. */
  async stop(): Promise<void> {
    this.isStopping = true
    this.#stop.abort()
    await this.#loops
    while (this.requestCount > 0) await this.services.environment.sleep(PAUSE_MS_MIN)
    if (isScanner(this.role)) await this.#held?.release().catch(() => undefined)
  }

  /** Whether the process accepts requests of callers. */
  get isServing(): boolean {
    return isApi(this.role) && !this.isStopping
  }

  /** HTTP server of the process. */
  get server(): Promise<FastifyInstance> {
    this.#server ??= buildServer(this.services, ENDPOINTS)
    return this.#server
  }

  /**
   * Kills the process: from this moment on it neither sends nor receives anything. Its connections
   * end by `SimulatedServer.cut`; pending results never arrive.
   */
  kill(): void {
    this.actor.die()
    this.#database.close().catch(() => undefined)
  }
}
