import { hasLocalChains } from '@custody/chains/mode'
import { ChainError, loadRegistry } from '@custody/chains'
import { reasonOf } from '@custody/chains/reason'
import type { Logger } from 'pino'
import { Notifier } from '../../core/ledger/notifier.ts'
import { checkoutPages } from '../../commerce/checkout/pages.ts'
import { consolePages } from '../../console-api/console/pages.ts'
import { logEvent, logAuditEntry } from '../../core/ledger/log-events.ts'
import { openApiWebhooks } from '../../events/events/openapi.ts'
import { publishLoop } from '../../events/events/publish.ts'
import type { Database } from '../../core/database/pool.ts'
import { HeldNetworks } from '../../custody/deposits/hold-networks.ts'
import { buildServer } from '../../core/http/server.ts'
import { unpricedCoins } from '../../custody/prices/coverage.ts'
import { referencePages } from '../reference/pages.ts'
import { reservesPages } from '../reserves/pages.ts'
import { compareLoop, holdUntilCompared, skipWhileHeld } from '../recovery/compare-records.ts'
import type { Settings } from '../../core/settings/settings.ts'
import { SignerNodes } from '../../core/signing/nodes.ts'
import { runLoops, type Loop } from '../../core/engine/loops/loop.ts'
import { LoopHealth } from '../../core/engine/loops/health.ts'
import { heartbeatLoop } from './health/role-health.ts'
import { isScanner, isApi, isWorker } from './health/role-duties.ts'
import { loopsOf } from './loops.ts'
import { checkSecretsKey } from './secrets-key.ts'
import { devnetUrlOf, type LocalServers } from './local/local.ts'
import { bindDatabase, bindHome, checkNodesNetwork } from './binding.ts'
import { identityFolder } from '../../core/data-dir.ts'
import { endpoints as api } from './endpoints.ts'
import { panelFor } from './panel.ts'
import { auditWritesTo } from '../../console-api/people/audit-writes.ts'
import { distributorOf } from '../../events/webhooks/distribute.ts'
import { registerCollectors } from './health/collect-metrics.ts'
import type { Application } from './application.ts'
import { createApplication, type Notifiers } from './create-application.ts'
import type { Runtime } from './runtime.ts'
import { listenProblem } from './preflight.ts'
import { migrateDatabase } from './migrate-database.ts'

export interface RunningPlatform {
  port: number
  services: Application
  /** Stops in order: pending work is completed. */
  stop(): Promise<void>
  /**
   * Closes the platform's ports and connections immediately without waiting for anything, as if the
   * process were killed.
   */
  abandon(): Promise<void>
}

/** Starts the operator interface. Called only in a process that runs workers. */
export type Operate = (services: Application) => Promise<{ close(): Promise<void> | void }>

/** Options with which a platform is started. */
export interface StartOptions {
  settings: Settings
  runtime: Runtime
  log: Logger
  /** Steps to run in reverse order if the start fails, and at the end. */
  undo: (() => Promise<void> | void)[]
  operate: Operate
  databaseUrl: string
  /** URL for the role that owns the tables; null: the role of `databaseUrl` does, or need not. */
  ownerUrl: string | null
  /** Whether this process runs the database server itself. */
  isOurs: boolean
  /**
   * Signer nodes and local chains that this process has started and that may not be ready yet; null
   * if they are run elsewhere.
   */
  local: LocalServers | null
}

/**
 * Creates the platform from its parts and listens for requests. Steps that only need the database
 * come first, because signer nodes and chains may still be starting.
 * @throws Error; the caller must then run the steps in `undo`
 */
export async function assemble(options: StartOptions): Promise<RunningPlatform> {
  const { settings, runtime, log, undo, operate, isOurs, local } = options
  const { environment } = runtime
  const isLocal = hasLocalChains(settings.network)
  const notifiers = {
    outbox: new Notifier(environment),
    work: new Notifier(environment),
    moved: new Notifier(environment),
  }
  const database = openDatabase(options, notifiers)
  undo.push(() => database.close())
  const { applied, excess } = await migrateDatabase(options, database)
  const last = applied.findLast((name) => name.endsWith('.sql'))
  if (applied.length > 0) log.info({ applied: applied.length, last }, 'database migrated')
  if (excess !== null) log.warn({ excess }, 'the database role of the platform has too many rights')
  const registry = loadRegistry(settings.network)
  const devnetUrl = isLocal
    ? (settings.localChains ?? local?.devnetUrl ?? (await devnetUrlOf(settings.home)))
    : null
  const signers = new SignerNodes(identityFolder(settings.home), Date.now, () => environment.now())
  undo.push(() => signers.close())
  const parts = { database, registry, signers, devnetUrl, notifiers }
  const services = await createApplication({ ...options, ...parts })
  undo.push(() => services.webhooks.sender.close())
  registerCollectors(services)
  const server = await createServer(services)
  await local?.ready
  const controller = new AbortController()
  undo.push(() => controller.abort())
  const priced = services.prices.start(controller.signal)
  await checkNodesNetwork(signers, settings.network)
  if (!isLocal) await probeEndpoints(services)
  await bindInstallation(services, isOurs)
  await Promise.all([holdUntilCompared(services), priced])
  const unpriced = unpricedCoins(services)
  if (unpriced.length > 0)
    log.error({ coins: unpriced }, 'no price source has a current price of these coins')
  const { loops, held } = await startLoops(services, controller.signal, isOurs)
  if (isWorker(settings.role)) {
    const operator = await operate(services)
    undo.push(() => operator.close())
  }
  const port = await listen(services, server)
  return {
    port,
    services,
    async stop() {
      await server.close()
      controller.abort()
      await loops
      if (isScanner(settings.role))
        await held
          .release()
          .catch((error: unknown) =>
            log.warn(
              { err: reasonOf(error) },
              'the scan leases of this process could not be released; they expire on their own',
            ),
          )
      for (const step of undo.reverse()) await step()
    },
    async abandon() {
      controller.abort()
      server.server.closeAllConnections()
      server.server.close()
      await Promise.all(undo.map((step) => step()))
    },
  }
}

/** Opens the database. Its committed events wake the loops and are logged. */
function openDatabase(
  { settings, runtime, log, databaseUrl }: StartOptions,
  { outbox, work, moved }: Notifiers,
): Database {
  return runtime.openDatabase(databaseUrl, {
    pooled: settings.databaseUrl !== null && settings.databasePooled,
    now: runtime.environment.now,
    onError: (error, what) => log.warn({ err: error.message }, what),
    onEvent: (event) => {
      outbox.ring()
      work.ring()
      if (event.type.startsWith('deposit.')) moved.ring()
      logEvent(log, event)
    },
    onAudit: (entry) => logAuditEntry(log, entry),
  })
}

type Server = Awaited<ReturnType<typeof buildServer>>

/** Creates the HTTP server; a process without the API has no endpoints. */
async function createServer(services: Application): Promise<Server> {
  const { log, settings } = services
  if (!isApi(settings.role)) return buildServer(services, [])
  return buildServer(services, api, {
    pages: [
      ...checkoutPages(log),
      ...consolePages(log),
      ...referencePages(log),
      ...reservesPages(log),
    ],
    webhooks: openApiWebhooks,
    others: panelFor(services),
    auditWrite: auditWritesTo(services.database),
  })
}

/**
 * Binds the database and the data folder to the network. The binding is permanent, so it is made
 * only after everything else that this start uses was found to belong to the network.
 * @param isOurs whether only this data folder uses the database
 * @throws Error if they belong to another network, or the secrets key is another one
 */
async function bindInstallation(services: Application, isOurs: boolean): Promise<void> {
  const { database, settings, aml } = services
  await bindDatabase(database, settings.network)
  bindHome(settings.home, settings.network)
  await checkSecretsKey(database, aml.secrets, settings.secretsKey)
  // If only this data folder uses the database, the mark of an unfinished adoption was left by a
  // killed process and can be removed.
  if (isOurs)
    await database.query(
      'update installation set adopting_until = null where adopting_until is not null',
    )
}

/**
 * Starts the loops of this process after its first heartbeat.
 * @param isOurs whether only this data folder uses the database
 * @returns `loops`: resolves when all loops have ended; `held`: the networks that this process scans
 */
async function startLoops(
  services: Application,
  signal: AbortSignal,
  isOurs: boolean,
): Promise<{ loops: Promise<unknown>; held: HeldNetworks }> {
  const publishing = skipWhileHeld(services, publishLoop(services, distributorOf(services)))
  // Only this data folder's workers use the database, so leases of a killed run can be released
  // immediately.
  if (isOurs) await freeLeases(services.database)
  const id = services.environment.uuid()
  const held = new HeldNetworks(
    services,
    id,
    services.networks.all().map(({ network }) => network.code),
  )
  const health = new LoopHealth()
  const heartbeat = heartbeatLoop(services, id, health)
  await heartbeat.run(signal)
  const lasting: Loop[] = [
    heartbeat,
    compareLoop(services),
    publishing,
    ...loopsOf(services, held).map((loop) => skipWhileHeld(services, loop)),
  ]
  const loops = Promise.all([
    runLoops(services, lasting, signal, health),
    services.feed.run(signal),
  ])
  return { loops, held }
}

/**
 * Listens for requests and returns the port.
 * @throws Error if the address cannot be used
 */
async function listen(services: Application, server: Server): Promise<number> {
  const { settings } = services
  const address = await server
    .listen({ port: settings.port, host: settings.host })
    .catch((error: unknown) => {
      throw listenProblem(error, settings)
    })
  const port = Number(new URL(address).port)
  // With port 0 the system chose a free port, so the URL is known only now.
  if (settings.publicUrl === null) services.checkout.base = `http://${settings.host}:${port}`
  return port
}

/**
 * Releases everything that a killed run of this data folder had leased. Leased rows always have a
 * due time, so the index of due rows finds them.
 */
async function freeLeases(database: Database): Promise<void> {
  for (const table of ['transactions', 'orders', 'exchange_transfers']) {
    await database.query(
      `update ${table} set lease_until = null, lease_token = null where next_run_at is not null
        and lease_token is not null`,
    )
  }
  await database.query(
    'update network_scans set lease_until = null, holder = null, held_until = null',
  )
  await database.query('update rescans set token = null where token is not null')
  await database.query(
    'update exchange_accounts set lease_until = null where lease_until is not null',
  )
  await database.query('update exchange_nonces set holder = null where holder is not null')
  await database.query(
    'update webhook_deliveries set next_at = $1, lease_token = null where lease_token is not null',
    [database.now()],
  )
}

/**
 * Checks that each endpoint serves the configured chain; an endpoint of another chain must never be
 * used. An unreachable endpoint is only logged.
 */
async function probeEndpoints(services: Application): Promise<void> {
  await Promise.all(
    services.networks.all().map(async ({ network, client }) => {
      try {
        await client.probe()
      } catch (error) {
        if (error instanceof ChainError && error.code === 'WRONG_NETWORK') throw error
        services.log.warn(
          { network: network.code, err: reasonOf(error) },
          'no endpoint of a network can be reached; transfers on the network wait',
        )
      }
    }),
  )
}
