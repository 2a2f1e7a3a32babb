import { type Curve } from '@custody/chains'
import { connectAll } from '../../src/app/connect.ts'
import { localEndpoints } from '../../src/app/local.ts'
import { openDatabase, type Database, type Queryable } from '../../src/database/pool.ts'
import { scanLoop } from '../../src/deposits/scanner.ts'
import type { Loop } from '../../src/engine/loop.ts'
import { runLoops } from '../../src/engine/loop.ts'
import { Networks } from '../../src/engine/networks.ts'
import { transactionLoop } from '../../src/engine/run.ts'
import type { Services } from '../../src/engine/services.ts'
import type { Environment } from '../../src/environment.ts'
import { fillTanksLoop } from '../../src/gas-tanks/ensure-tank.ts'
import { createMetrics } from '../../src/metrics.ts'
import { readTiers } from '../../src/settings/tiers.ts'
import { requeueSweepsLoop } from '../../src/deposits/sweeps.ts'
import { turnOfDayLoop } from '../../src/prepaid-fee/turn-of-day.ts'
import type { SignerNodes } from '../../src/signing/nodes.ts'
import { Bell } from '../../src/ledger/bell.ts'
import { stageServices } from '../chain-stage.ts'
import { bytesOf } from './chance.ts'
import type { World } from './world.ts'
import { Actor } from './schedule.ts'

/** A process of the platform has ended in the middle of something. */
class Ended extends Error {}

/** What becomes of a commit under which its process ends. */
export type LastCommit = 'unsent' | 'unheard'

/**
 * A database of which each statement, each begin and each commit is a thing of its own that happens. Where its process is about
 * to die at the next commit, `lastCommit` says how.
 */
function gatedDatabase(database: Database, actor: Actor, { schedule }: World, dying: () => LastCommit | null): Database {
  const short = (text: string) => text.replace(/\s+/g, ' ').slice(0, 60)
  const query = <T>(text: string, values?: readonly unknown[]) =>
    schedule.gate(actor, short(text), () => database.query<T>(text, values))
  return {
    ...database,
    query,
    one: async (text, values) => (await query(text, values))[0] as never,
    async transaction<T>(work: (tx: Queryable) => Promise<T>): Promise<T> {
      // The driver runs `body` again where the database asks for it; each begin, and each end, is awaited by the schedule.
      let begun = Promise.withResolvers<void>()
      let whole: Promise<T> = Promise.reject(new Error('not begun'))
      whole.catch(() => undefined)
      const ended = () => Promise.race([whole.then(() => undefined, () => undefined), begun.promise])
      const body = async (tx: Queryable): Promise<T> => {
        begun.resolve()
        begun = Promise.withResolvers<void>()
        const inner = <R>(text: string, values?: readonly unknown[]) =>
          schedule.gate(actor, `  ${short(text)}`, () => tx.query<R>(text, values))
        let end: { value: T } | { error: unknown }
        try {
          end = { value: await orDead(actor, work({ ...tx, query: inner, one: async (text, values) => (await inner(text, values))[0] as never })) }
        } catch (error) {
          if (error instanceof Ended) throw error
          end = { error }
        }
        const finish = Promise.withResolvers<void>()
        void schedule.gate(actor, 'value' in end ? '  commit' : '  rollback', async () => {
          if ('value' in end && dying() === 'unsent') {
            actor.die()
            finish.reject(new Ended())
          } else finish.resolve()
          await ended()
          if ('value' in end && dying() === 'unheard') actor.die()
        })
        await orDead(actor, finish.promise)
        if ('error' in end) throw end.error
        return end.value
      }
      const outcome = Promise.withResolvers<T>()
      void schedule.gate(actor, 'begin', async () => {
        whole = database.transaction(body)
        whole.then(outcome.resolve, outcome.reject)
        await ended()
      })
      const value = await outcome.promise
      if (actor.isDead) return new Promise(() => undefined)
      return value
    },
  }
}

/** Of what the dead were doing nothing is heard, but their connection ends. */
const orDead = <T>(actor: Actor, work: Promise<T>): Promise<T> => Promise.race([work, actor.death.then(() => { throw new Ended() })])

/** An instance of the platform: it answers callers and does the work, as one process does. */
export class Instance {
  readonly actor: Actor
  readonly services: Services
  readonly #database: Database
  readonly #stop = new AbortController()
  readonly #work: Bell
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
      sleep: (ms, signal) => schedule.sleep(actor, ms, signal),
      checkpoint: () => undefined,
    }
    this.#work = new Bell(environment)
    this.#database = openDatabase(world.databaseUrl, {
      now: environment.now, onError: () => undefined, max: 30, onEvent: () => this.#work.ring(),
    })
    const database = gatedDatabase(this.#database, actor, world, () => this.lastCommit)
    const signers = {
      ...world.nodes.signers,
      call: (node: number, method: string, path: string, body: unknown) =>
        schedule.gate(actor, `node ${node} ${path}`, () => world.askNode(node, method, path, body)),
    } as unknown as SignerNodes
    const log = world.log(name)
    this.services = stageServices({
      environment, database, log, signers, metrics: createMetrics(), outbox: new Bell(environment), work: this.#work,
      keys: { get: async (_workspace: string, curve: Curve) => ({ at: world.keys.at[curve] }) },
      settings: { network: 'local', pollMs: 1000, prepaidTiers: readTiers('FREE:0:0:0:0'), feeBumpAfterMs: 0 },
      prices: { price: () => null },
      aml: { providers: {}, sanctions: { has: () => false } },
      devnet: (command: Record<string, unknown>) => schedule.gate(actor, `devnet ${String(command["command"])}`, () => world.control(command)),
    }, {})
    const networks = world.networks.map(({ network }) => network)
    const fetch = ((input, init) => schedule.gate(actor, `chain ${String(input).replace(/^https?:\/\/[^/]*/, '')}`, () => world.askChain(input, init))) as typeof globalThis.fetch
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
    ]
    void runLoops(this.services, loops, this.#stop.signal).catch(() => undefined)
  }

  /** From one moment on it neither asks nor hears anything. Its connections are gone when this resolves. */
  async kill(): Promise<void> {
    this.actor.die()
    await this.#database.close()
  }
}
