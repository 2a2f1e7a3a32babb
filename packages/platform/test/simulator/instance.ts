import { type Curve } from '@custody/chains'
import type { FastifyInstance } from 'fastify'
import { connectAll } from '../../src/app/connect.ts'
import { localEndpoints } from '../../src/app/local.ts'
import { openDatabase, type Database } from '../../src/database/pool.ts'
import { autoForwardingLoop } from '../../src/auto-forwarding/loop.ts'
import { scanLoop } from '../../src/deposits/scanner.ts'
import type { Loop } from '../../src/engine/loop.ts'
import { runLoops } from '../../src/engine/loop.ts'
import { Networks } from '../../src/engine/networks.ts'
import { transactionLoop } from '../../src/engine/run.ts'
import type { Services } from '../../src/engine/services.ts'
import type { Environment } from '../../src/environment.ts'
import { foldLoop } from '../../src/app/housekeeping.ts'
import { publishLoop } from '../../src/events/publish.ts'
import { fillTanksLoop } from '../../src/gas-tanks/ensure-tank.ts'
import { Callers as KnownCallers } from '../../src/http/callers.ts'
import { buildServer } from '../../src/http/server.ts'
import { invoiceLoop } from '../../src/invoices/loop.ts'
import { createMetrics } from '../../src/metrics.ts'
import { readTiers } from '../../src/settings/tiers.ts'
import { requeueSweepsLoop } from '../../src/deposits/sweeps.ts'
import { turnOfDayLoop } from '../../src/prepaid-fee/turn-of-day.ts'
import { Secrets } from '../../src/secrets.ts'
import { watchReleasableLoop } from '../../src/staking/watch-releasable.ts'
import { deliverLoop } from '../../src/webhooks/deliver.ts'
import { distributor } from '../../src/webhooks/distribute.ts'
import { Reach } from '../../src/webhooks/reach.ts'
import type { SignerNodes } from '../../src/signing/nodes.ts'
import { Bell } from '../../src/ledger/bell.ts'
import { stageServices } from '../chain-stage.ts'
import { bytesOf } from './chance.ts'
import { ENDPOINTS } from './requests.ts'
import { gatedDatabase, type LastCommit } from './gated-database.ts'
import type { World } from './world.ts'
import { Actor } from './schedule.ts'

/** How many times as seldom as in a platform its loops look for something to do. */
const RARER = 12
/** No pause is shorter: a worker that waits for a slow answer looks for more to do all the while. */
const PAUSE_MS_MIN = 1000

/** An instance of the platform: it answers callers and does the work, as one process does. */
export class Instance {
  readonly actor: Actor
  readonly services: Services
  readonly #database: Database
  readonly #stop = new AbortController()
  readonly #work: Bell
  #server: Promise<FastifyInstance> | null = null
  /** It ends at its next commit, in this way. */
  lastCommit: LastCommit | null = null

  constructor(world: World, name: string) {
    const { schedule } = world
    this.actor = new Actor(name)
    const actor = this.actor
    const bytes = bytesOf(`${world.seed}/${name}`)
    const environment: Environment = {
      now: () => schedule.nowMs,
      uuid: () => Buffer.from(bytes(16)).toString('hex').replace(/(.{8})(.{3}).(.{3}).(.{3})(.{12}).*/, '$1-$2a-4$3-8$4-$5').slice(0, 36),
      bytes,
      sleep: (ms, signal) => schedule.sleep(actor, Math.max(ms, PAUSE_MS_MIN), signal),
      checkpoint: () => undefined,
    }
    this.#work = new Bell(environment)
    this.#database = openDatabase(world.databaseUrl, {
      now: environment.now, onError: () => undefined, max: 30, onEvent: () => this.#work.ring(),
    })
    const database = gatedDatabase(this.#database, actor, schedule, () => this.lastCommit)
    const signers = {
      ...world.nodes.signers,
      call: (node: number, method: string, path: string, body: unknown) =>
        schedule.gate(actor, `node ${node} ${path}`, () => world.nodeFaults.ask(node, method, path, body)),
    } as unknown as SignerNodes
    const log = world.log(name)
    this.services = stageServices({
      environment, database, log, signers, metrics: createMetrics(), outbox: new Bell(environment), work: this.#work,
      keys: { get: async (_workspace: string, curve: Curve) => ({ at: world.keys.at[curve] }) },
      settings: {
        network: 'local', pollMs: 500, prepaidTiers: readTiers('FREE:0:0:0:0'), feeBumpAfterMs: 0, sweep: {}, rateLimit: 10_000, rateScope: 'key',
        trustProxy: 0, authLegacy: false,
      },
      prices: { price: () => null },
      aml: {
        providers: { CHAINALYSIS: world.outside.provider(actor) }, sanctions: { has: () => false },
        secrets: new Secrets(new Uint8Array(32), environment),
      },
      callers: new KnownCallers(database, environment),
      feed: { ring: () => undefined },
      webhooks: {
        reach: new Reach(['127.0.0.0/8'], (() => undefined) as never), due: new Bell(environment), key: async () => ({ privateKey: null }),
        sender: {
          post: (url: string, headers: Record<string, string>, body: string) => world.outside.post(actor, url, headers, body), close: () => undefined,
        },
      },
      devnet: (command: Record<string, unknown>) => schedule.gate(actor, `devnet ${String(command["command"])}`, () => world.control(command)),
    }, {})
    const networks = world.networks.map(({ network }) => network)
    const fetch = (async (input, init) => {
      const answer = await schedule.gate(actor, `chain ${String(input).replace(/^https?:\/\/[^/]*/, '')} ${/"method":"(\w+)"/.exec(String(init?.body))?.[1] ?? ''}`, () => world.chainFaults.ask(input, init))
      const delayMs = world.chainFaults.delay()
      if (delayMs > 0) await schedule.sleep(actor, delayMs)
      return answer
    }) as typeof globalThis.fetch
    const connected = connectAll({ ...this.services }, localEndpoints(world.devnet.url, networks), fetch)
    Object.assign(this.services, { networks: new Networks(connected) })
  }

  /** The loops of a worker, on the networks of the simulation. They go on until the instance dies or the simulation ends. */
  run(started: Set<string>): void {
    const loops: Loop[] = [
      transactionLoop(this.services),
      ...this.services.networks.all().map((chain) => scanLoop(this.services, chain, async () => started)),
      fillTanksLoop(this.services),
      requeueSweepsLoop(this.services),
      turnOfDayLoop(this.services),
      foldLoop(this.services),
      autoForwardingLoop(this.services),
      invoiceLoop(this.services),
      watchReleasableLoop(this.services),
      publishLoop(this.services, distributor),
      deliverLoop(this.services),
    ]
    // Less often than a platform asks: what happens is what counts here, and idle questions are most of what a seed costs.
    const rarer = loops.map((loop) => ({ ...loop, everyMs: loop.everyMs * RARER }))
    void runLoops(this.services, rarer, this.#stop.signal).catch(() => undefined)
  }

  /** Its face to callers. */
  get server(): Promise<FastifyInstance> {
    this.#server ??= buildServer(this.services, ENDPOINTS)
    return this.#server
  }

  /** From one moment on it neither asks nor hears anything. Its connections are gone when this resolves. */
  async kill(): Promise<void> {
    this.actor.die()
    await this.#database.close()
  }
}
