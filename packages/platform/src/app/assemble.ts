import { ChainError, loadRegistry } from '@custody/chains'
import { reasonOf } from '@custody/chains/reason'
import type { Logger } from 'pino'
import { createAml } from '../aml/aml.ts'
import { amlInstallation } from '../aml/settings.ts'
import { forwards } from '../auto-forwarding/forwards.ts'
import { Notifier } from '../ledger/notifier.ts'
import { Feed } from '../ledger/feed.ts'
import { checkoutPages } from '../checkout/pages.ts'
import { consolePages } from '../console/pages.ts'
import { logEvent, logAuditEntry } from '../ledger/log-events.ts'
import { openApiWebhooks } from '../events/openapi.ts'
import { eventPollMs, publishLoop } from '../events/publish.ts'
import { migrate } from '../database/migrate.ts'
import type { Database } from '../database/pool.ts'
import { HeldNetworks } from '../deposits/hold-networks.ts'
import { AddressBook } from '../addresses/book.ts'
import { tanks } from '../gas-tanks/tanks.ts'
import { Callers } from '../http/callers.ts'
import { buildServer } from '../http/server.ts'
import { createMetrics } from '../metrics.ts'
import { createExchanges } from '../exchanges/exchanges.ts'
import { DatabaseHold } from '../engine/database-hold.ts'
import { Networks } from '../engine/networks.ts'
import { checkUrl } from '../webhooks/webhook.ts'
import { coinsOf } from '../prices/coins.ts'
import { unpricedCoins } from '../prices/coverage.ts'
import { Prices } from '../prices/prices.ts'
import { referencePages } from '../reference/pages.ts'
import { reservesPages } from '../reserves/pages.ts'
import { priceSources, pricesInstallation } from '../prices/settings.ts'
import { compareLoop, holdUntilCompared, skipWhileHeld } from '../recovery/compare-records.ts'
import type { Services } from '../engine/services.ts'
import { KnownWallets } from '../assets/find-wallet.ts'
import { LoadMonitor } from '../load-monitor.ts'
import { Receipts } from '../signing/receipts.ts'
import { Withdrawals } from '../transactions/write-withdrawal.ts'
import { Secrets } from '../secrets.ts'
import type { Settings } from '../settings/settings.ts'
import { WorkspaceKeys } from '../signing/keys.ts'
import { SignerNodes } from '../signing/nodes.ts'
import { runLoops, type Loop } from '../engine/loop.ts'
import { LoopHealth } from '../engine/loop-health.ts'
import { heartbeatLoop } from './role-health.ts'
import { isScanner, isApi, isWorker } from './role-duties.ts'
import { loopsOf } from './loops.ts'
import { readiness } from './readiness.ts'
import { checkSecretsKey } from './secrets-key.ts'
import { devnetControl, devnetUrlOf, localEndpoints, type LocalServers } from './local.ts'
import { bindDatabase, bindHome, checkDatabaseNetwork, checkNodesNetwork } from './binding.ts'
import { identityFolder, shortageOf } from '../data-dir.ts'
import { endpoints as api } from './endpoints.ts'
import { panel } from './panel.ts'
import { createPeople } from '../people/people.ts'
import { auditWrite } from '../people/audit-writes.ts'
import { distributor } from '../webhooks/distribute.ts'
import { createWebhooks } from '../webhooks/webhooks.ts'
import { connectAll } from './connect.ts'
import { reportUnreadable } from './report-unreadable.ts'
import { invoices } from '../invoices/loop.ts'
import { KINDS } from './kinds.ts'
import { registerCollectors } from './collect-metrics.ts'
import type { Runtime } from './runtime.ts'
import { listenProblem } from './preflight.ts'

export interface RunningPlatform {
  port: number
  services: Services
  /** Stops in order: pending work is completed. */
  stop(): Promise<void>
  /**
   * Closes its ports and connections immediately without waiting for anything, like a killed
   * process.
   */
  abandon(): Promise<void>
}

/** Starts the operator interface, in a process that has the workers. */
export type Operate = (services: Services) => Promise<{ close(): Promise<void> | void }>

/** What a platform is started with. */
export interface Ground {
  settings: Settings
  world: Runtime
  log: Logger
  /** Steps to run in reverse order if the start fails, and at the end. */
  undo: (() => Promise<void> | void)[]
  operate: Operate
  databaseUrl: string
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
export async function assemble({
  settings,
  world,
  log,
  undo,
  operate,
  databaseUrl,
  isOurs,
  local,
}: Ground): Promise<RunningPlatform> {
  const { environment, fetch } = world
  const { role } = settings
  const isLocal = settings.network === 'local'
  const outbox = new Notifier(environment)
  const work = new Notifier(environment)
  const moved = new Notifier(environment)
  const database = world.openDatabase(databaseUrl, {
    pooled: settings.databaseUrl !== null && settings.databasePooled,
    now: environment.now,
    onError: (error, what) => log.warn({ err: error.message }, what),
    onEvent: (event) => {
      outbox.ring()
      work.ring()
      if (event.type.startsWith('deposit.')) moved.ring()
      logEvent(log, event)
    },
    onAudit: (entry) => logAuditEntry(log, entry),
  })
  undo.push(() => database.close())
  await checkDatabaseNetwork(database, settings.network)
  const applied = await broughtUpToDate(world, databaseUrl, settings)
  if (applied.length > 0) log.info({ applied }, 'database migrated')
  const registry = loadRegistry(settings.network)
  const devnetUrl = isLocal
    ? (settings.localChains ?? local?.devnetUrl ?? (await devnetUrlOf(settings.home)))
    : null
  const endpoints = devnetUrl ? localEndpoints(devnetUrl, registry.networks) : settings.endpoints
  const signers = new SignerNodes(identityFolder(settings.home))
  undo.push(() => signers.close())
  const prices = pricesInstallation(settings.prices, devnetUrl, registry)
  const keys = new WorkspaceKeys(database, signers, settings.network)
  const addresses = new AddressBook(() => services)
  const pressure = new LoadMonitor(environment.now)
  const aml = createAml({
    home: settings.home,
    installation: amlInstallation(settings.aml, devnetUrl),
    environment,
    fetch,
    log,
    secrets: await Secrets.open(settings.home, settings.secretsKey, environment),
  })
  const metrics = createMetrics()
  metrics.watchProcess()
  const services: Services = {
    settings,
    environment,
    database,
    registry,
    log,
    signers,
    keys,
    addresses,
    tanks,
    forwards,
    invoices,
    kinds: KINDS,
    hold: new DatabaseHold(shortageOf(settings.home, environment.now)),
    outbox,
    work,
    pressure,
    receipts: new Receipts({ signers, environment, database, log, pressure }),
    knownWallets: new KnownWallets(database),
    withdrawals: new Withdrawals(database),
    feed: new Feed({ database, environment, log, pollMs: eventPollMs({ settings }) }),
    reconciling: { job: null },
    checkout: {
      base: settings.publicUrl ?? `http://${settings.host}:${settings.port}`,
      checkWebhook: (url, field) => checkUrl(services, url, field),
      moved,
    },
    networks: new Networks(
      connectAll(
        {
          registry,
          database,
          environment,
          keys,
          addresses,
          report: reportUnreadable(log, metrics),
        },
        endpoints,
        fetch,
        { metrics, log },
      ),
    ),
    callers: new Callers(database, environment),
    aml,
    people: createPeople({
      database,
      environment,
      secrets: aml.secrets,
      rateLimit: settings.rateLimit,
    }),
    prices: new Prices({
      sources: priceSources(prices, environment, fetch),
      coins: coinsOf(registry),
      environment,
      log,
      everyMs: prices.everyMs,
    }),
    exchanges: createExchanges({ devnetUrl, database, environment, fetch }),
    trading: { due: new Notifier(environment) },
    exchangeTransfers: { due: new Notifier(environment) },
    webhooks: createWebhooks({
      services: () => services,
      environment,
      allow: settings.webhookAllow,
      resolve: world.resolve,
    }),
    metrics,
    devnet: devnetUrl ? devnetControl(devnetUrl) : null,
    readiness: () => readiness(services),
  }
  undo.push(() => services.webhooks.sender.close())
  registerCollectors(services)
  const pages = () => [
    ...checkoutPages(log),
    ...consolePages(log),
    ...referencePages(log),
    ...reservesPages(log),
  ]
  const server = isApi(role)
    ? await buildServer(services, api, {
        pages: pages(),
        webhooks: openApiWebhooks,
        others: panel,
        auditWrite,
      })
    : await buildServer(services, [])
  await local?.ready
  const controller = new AbortController()
  undo.push(() => controller.abort())
  const priced = services.prices.start(controller.signal)
  await checkNodesNetwork(signers, settings.network)
  if (!isLocal) await probeEndpoints(services)
  // The binding is permanent, so it comes after everything that this start depends on is known to
  // belong to this network.
  await bindDatabase(database, settings.network)
  bindHome(settings.home, settings.network)
  await checkSecretsKey(database, aml.secrets, settings.secretsKey)
  // Only a killed run of this data folder can have left the mark of an adoption.
  if (isOurs)
    await database.query(
      'update installation set adopting_until = null where adopting_until is not null',
    )
  await Promise.all([holdUntilCompared(services), priced])
  const unpriced = unpricedCoins(services)
  if (unpriced.length > 0)
    log.error({ coins: unpriced }, 'no price source has a current price of these coins')
  const publishing = skipWhileHeld(services, publishLoop(services, distributor))
  // Only this data folder's workers use the database, so leases of a killed run can be released
  // immediately.
  if (isOurs) await freeLeases(database)
  const id = environment.uuid()
  const held = new HeldNetworks(
    services,
    id,
    services.networks.all().map(({ network }) => network.code),
  )
  const health = new LoopHealth()
  const heartbeat = heartbeatLoop(services, id, health)
  await heartbeat.run(controller.signal)
  const lasting: Loop[] = [
    heartbeat,
    compareLoop(services),
    publishing,
    ...loopsOf(services, held).map((loop) => skipWhileHeld(services, loop)),
  ]
  const loops = Promise.all([
    runLoops(services, lasting, controller.signal, health),
    services.feed.run(controller.signal),
  ])
  if (isWorker(role)) {
    const operator = await operate(services)
    undo.push(() => operator.close())
  }
  const address = await server
    .listen({ port: settings.port, host: settings.host })
    .catch((error: unknown) => {
      throw listenProblem(error, settings)
    })
  const port = Number(new URL(address).port)
  // With port 0 the system chose a free port.
  if (settings.publicUrl === null) services.checkout.base = `http://${settings.host}:${port}`
  return {
    port,
    services,
    async stop() {
      await server.close()
      controller.abort()
      await loops
      if (isScanner(role))
        await held
          .release()
          .catch((error: unknown) =>
            log.warn({ err: reasonOf(error) }, 'the scans of this process could not be released'),
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

/**
 * Timeout of migrations in milliseconds. Changing a large database takes minutes, and committing
 * may take long too.
 */
const MIGRATED_MS = 3_600_000

/**
 * Runs the migrations on a separate connection with a long timeout.
 * @returns the migrations that were applied
 */
async function broughtUpToDate(world: Runtime, url: string, settings: Settings): Promise<string[]> {
  const database = world.openDatabase(url, {
    max: 1,
    pooled: settings.databaseUrl !== null && settings.databasePooled,
    answerMs: MIGRATED_MS,
    commitMs: MIGRATED_MS,
  })
  try {
    return await migrate(database)
  } finally {
    await database.close()
  }
}

/**
 * Releases everything that a killed run of this data folder had leased. Leased rows always have a
 * due time, so the index of due rows finds them.
 */
async function freeLeases(database: Database): Promise<void> {
  for (const table of ['transactions', 'orders', 'exchange_transfers']) {
    await database.query(
      `update ${table} set lease_until = null, lease_token = null where next_run_at is not null and lease_token is not null`,
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
 * Checks that no endpoint serves another chain; such an endpoint must never be used. An unreachable
 * endpoint is only logged.
 */
async function probeEndpoints(services: Services): Promise<void> {
  await Promise.all(
    services.networks.all().map(async ({ network, client }) => {
      try {
        await client.probe()
      } catch (error) {
        if (error instanceof ChainError && error.code === 'WRONG_NETWORK') throw error
        services.log.warn(
          { network: network.code, err: reasonOf(error) },
          'an endpoint cannot be reached; transfers on its network wait',
        )
      }
    }),
  )
}
