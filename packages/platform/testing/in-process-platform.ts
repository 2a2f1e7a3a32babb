import { lookup } from 'node:dns'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { startEmbeddedPostgres, type EmbeddedPostgres } from '../src/core/database/embedded.ts'
import { openDatabase, type Database, type Queryable } from '../src/core/database/pool.ts'
import { systemEnvironment } from '../src/core/environment.ts'
import { startPlatform, type RunningPlatform } from '../src/server/app/platform.ts'
import type { Runtime } from '../src/server/app/runtime.ts'
import type { Devnet } from '../../devnet/src/devnet.ts'
import { DATABASE_TIMEOUTS, type TestDatabase } from './test-database.ts'
import { chainsFetch } from './chains/chains-fetch.ts'
import { startOperatorServer } from '../src/server/operator/server.ts'
import { readSettings } from '../src/core/settings/settings.ts'

/**
 * Controls the data that a platform receives from outside: none while it is stopped or once it is
 * dead.
 */
class FaultInjector {
  isDead = false
  #running: Promise<void> = Promise.resolve()
  #resume: () => void = () => undefined

  stop(): void {
    this.#running = new Promise((resolve) => (this.#resume = resolve))
  }

  resume(): void {
    this.#resume()
  }

  /** Resolves immediately, when the platform is resumed, or never if it is dead. */
  async pauseIfStopped(): Promise<void> {
    await this.#running
    if (this.isDead) await new Promise(() => undefined)
  }

  /**
   * Wraps a call to an outside service. A dead platform does not make the call, and never gets its
   * result.
   */
  wrap<Arguments extends unknown[], Result>(
    call: (...args: Arguments) => Promise<Result>,
  ): (...args: Arguments) => Promise<Result> {
    return async (...args) => {
      await this.pauseIfStopped()
      try {
        return await call(...args)
      } finally {
        await this.pauseIfStopped()
      }
    }
  }
}

/**
 * Thrown if the process ends within a database transaction; the server rolls the transaction back.
 */
class EndedWithin extends Error {}

/** Returns a database whose calls the fault injector stops. */
function faultyDatabase(database: Database, faults: FaultInjector): Database {
  const within = (tx: Queryable): Queryable => {
    const query: Queryable['query'] = async (text, values) => {
      if (faults.isDead) throw new EndedWithin()
      return tx.query(text, values)
    }
    return { ...tx, query, one: async (text, values) => (await query(text, values))[0] as never }
  }
  const query = faults.wrap(database.query) as Database['query']
  return {
    ...database,
    query,
    one: async (text, values) => (await query(text, values))[0] as never,
    transaction: faults.wrap((work: (tx: Queryable) => Promise<unknown>) =>
      database.transaction((tx) => work(within(tx))),
    ) as never,
  }
}

/**
 * A platform in this process, as `npm start` runs it in a separate one: the same start, HTTP port,
 * operator's socket, database server and loops. Killing it is cheap: from that moment on it neither
 * sends nor receives anything.
 */
export class InProcessPlatform {
  readonly #home: string
  readonly #chains: Devnet
  readonly #hear: (text: string) => void
  readonly #now: () => number
  readonly #created: TestDatabase | null
  #postgres: EmbeddedPostgres | null = null
  #running: RunningPlatform | null = null
  #faults = new FaultInjector()
  #ended: Promise<void> = Promise.resolve()
  /** Name of the commit at which the platform dies. */
  dieAt: string | null = null

  /**
   * Creates a platform that is not started yet.
   * @param now the platform's clock, in milliseconds since 1970
   * @param created database on a running server; null: the platform starts its own server
   */
  constructor(
    home: string,
    chains: Devnet,
    hear: (text: string) => void,
    now: () => number,
    created: TestDatabase | null,
  ) {
    this.#home = home
    this.#chains = chains
    this.#hear = hear
    this.#now = now
    this.#created = created
  }

  /**
   * Starts the platform.
   * @returns its base URL
   */
  async start(env: Record<string, string>): Promise<string> {
    if (this.#created === null) this.#postgres ??= await startEmbeddedPostgres(this.#home)
    const { url, ownerUrl, adminUrl } = this.#postgres ?? (this.#created as TestDatabase)
    const pid = this.#postgres?.pid ?? (() => null)
    const faults = new FaultInjector()
    this.#faults = faults
    const real = systemEnvironment()
    const running = Promise.withResolvers<RunningPlatform>()
    const ended = Promise.withResolvers<void>()
    this.#ended = ended.promise
    this.#die = () => {
      faults.isDead = true
      faults.resume()
      void running.promise.then((platform) => platform.abandon()).then(ended.resolve, ended.reject)
    }
    const runtime: Runtime = {
      environment: {
        ...real,
        now: this.#now,
        sleep: faults.wrap(real.sleep),
        checkpoint: (name) => {
          if (name === this.dieAt && !faults.isDead) this.#die()
          if (faults.isDead) throw new EndedWithin()
        },
      },
      fetch: faults.wrap(chainsFetch(this.#chains)),
      resolve: lookup,
      openDatabase: (address, options) =>
        faultyDatabase(openDatabase(address, { ...DATABASE_TIMEOUTS, ...options }), faults),
      startPostgres: async () => ({
        url,
        ownerUrl,
        adminUrl,
        adopted: true,
        pid,
        stop: async () => undefined,
      }),
      startLocal: async () => ({
        devnetUrl: this.#chains.url,
        ready: Promise.resolve(),
        stop: async () => undefined,
      }),
      log: { write: this.#hear },
    }
    // Most tests never change a price, and reading all prices each second causes a sixth of an idle
    // platform's load.
    const settings = readSettings({
      CUSTODY_HOME: this.#home,
      PORT: '0',
      CUSTODY_LOG_LEVEL: 'warn',
      CUSTODY_PRICE_REFRESH_S: '10',
      ...env,
    })
    try {
      this.#running = await startPlatform(settings, startOperatorServer, runtime)
    } catch (error) {
      // The platform has released everything, and there is no process to kill.
      faults.isDead = true
      ended.resolve()
      throw error
    }
    running.resolve(this.#running)
    const base = `http://${settings.host}:${this.#running.port}`
    writeFileSync(join(this.#home, 'url'), base)
    return base
  }

  #die: () => void = () => undefined

  /** Resolves once the platform is dead and has released everything. */
  get ended(): Promise<void> {
    return this.#ended
  }

  kill(): Promise<void> {
    if (!this.#faults.isDead) this.#die()
    return this.#ended
  }

  /** Stops the platform gracefully, and its own database server with it. */
  async stop(): Promise<void> {
    if (!this.#faults.isDead) await this.#running?.stop()
    this.#faults.isDead = true
    await this.#postgres?.stop()
    this.#postgres = null
  }

  /** Runs a function while the platform sends and receives nothing. */
  async asleep<T>(run: () => Promise<T>): Promise<T> {
    this.#faults.stop()
    try {
      return await run()
    } finally {
      this.#faults.resume()
    }
  }

  /**
   * Runs a function while no node answers. The nodes answer the pending requests afterwards, unless
   * the requests have timed out by then.
   */
  async withoutNodes<T>(run: () => Promise<T>): Promise<T> {
    const { signers } = (this.#running as RunningPlatform).services
    const awake = Promise.withResolvers<void>()
    const { call } = signers
    signers.call = async (...args) => {
      await awake.promise
      return call.apply(signers, args) as never
    }
    try {
      return await run()
    } finally {
      signers.call = call
      awake.resolve()
    }
  }

  /** Ends the platform and its own database server. */
  async remove(): Promise<void> {
    if (!this.#faults.isDead) await this.kill()
    await this.stop()
  }
}
