import { ChainError, loadRegistry } from '@custody/chains'
import { reasonOf } from '@custody/chains/reason'
import type { Logger } from 'pino'
import { createAml } from '../aml/aml.ts'
import { amlInstallation } from '../aml/settings.ts'
import { forwards } from '../auto-forwarding/forwards.ts'
import { Bell } from '../ledger/bell.ts'
import { Feed } from '../ledger/feed.ts'
import { checkoutPages } from '../checkout/pages.ts'
import { consolePages } from '../console/pages.ts'
import { narrate, narrateAudit } from '../ledger/narrate.ts'
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
import { Hold } from '../engine/hold.ts'
import { Networks } from '../engine/networks.ts'
import { checkUrl } from '../webhooks/webhook.ts'
import { coinsOf } from '../prices/coins.ts'
import { unpricedCoins } from '../prices/coverage.ts'
import { Prices } from '../prices/prices.ts'
import { referencePages } from '../reference/pages.ts'
import { reservesPages } from '../reserves/pages.ts'
import { priceSources, pricesInstallation } from '../prices/settings.ts'
import { compareLoop, holdUntilCompared, unlessHeld } from '../recovery/hold.ts'
import type { Services } from '../engine/services.ts'
import { KnownWallets } from '../assets/find-wallet.ts'
import { Pressure } from '../pressure.ts'
import { Receipts } from '../signing/receipts.ts'
import { Withdrawals } from '../transactions/write-withdrawal.ts'
import { Secrets } from '../secrets.ts'
import type { Settings } from '../settings/settings.ts'
import { WorkspaceKeys } from '../signing/keys.ts'
import { SignerNodes } from '../signing/nodes.ts'
import { runLoops, type Loop } from '../engine/loop.ts'
import { LoopHealth } from '../engine/loop-health.ts'
import { heartbeatLoop } from './presence.ts'
import { scans, serves, works } from './duties.ts'
import { loopsOf } from './loops.ts'
import { readiness } from './readiness.ts'
import { checkSecretsKey } from './secrets-key.ts'
import { devnetControl, devnetUrlOf, localEndpoints, type LocalServers } from './local.ts'
import { bindDatabase, bindHome, checkDatabaseNetwork, checkNodesNetwork } from './binding.ts'
import { identityFolder, shortageOf } from '../home.ts'
import { endpoints as api } from './endpoints.ts'
import { panel } from './panel.ts'
import { createPeople } from '../people/people.ts'
import { witness } from '../people/witness.ts'
import { distributor } from '../webhooks/distribute.ts'
import { createWebhooks } from '../webhooks/webhooks.ts'
import { connectAll } from './connect.ts'
import { reportUnreadable } from './report-unreadable.ts'
import { invoices } from '../invoices/loop.ts'
import { KINDS } from './kinds.ts'
import { observe } from './observe.ts'
import type { World } from './world.ts'
import { listenProblem } from './preflight.ts'

export interface RunningPlatform {
  port: number
  services: Services
  /** Ends in order: what is under way is finished. */
  stop(): Promise<void>
  /**
   * Lets go of its ports and connections at once and waits for nothing, as a process does that is
   * killed.
   */
  abandon(): Promise<void>
}

/** The face to the operator, started where this process has the workers. */
export type Operate = (services: Services) => Promise<{ close(): Promise<void> | void }>

/** What a platform is built on. */
export interface Ground {
  settings: Settings
  world: World
  log: Logger
  /** What is done, last first, where the start fails, and at the end. */
  undo: (() => Promise<void> | void)[]
  operate: Operate
  databaseUrl: string
  /** The database's server is this process's own. */
  isOurs: boolean
  /**
   * The signer nodes and local chains that this process has started, and that may not be ready yet;
   * null: somebody else's.
   */
  local: LocalServers | null
}

/**
 * Makes the platform of its parts and has it listen. What asks the database alone comes first:
 * nodes and chains may be starting.
 * @throws Error, with what `undo` names still to be done
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
  const outbox = new Bell(environment)
  const work = new Bell(environment)
  const moved = new Bell(environment)
  const database = world.openDatabase(databaseUrl, {
    pooled: settings.databaseUrl !== null && settings.databasePooled,
    now: environment.now,
    onError: (error, what) => log.warn({ err: error.message }, what),
    onEvent: (event) => {
      outbox.ring()
      work.ring()
      if (event.type.startsWith('deposit.')) moved.ring()
      narrate(log, event)
    },
    onAudit: (entry) => narrateAudit(log, entry),
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
  const pressure = new Pressure(environment.now)
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
    hold: new Hold(shortageOf(settings.home, environment.now)),
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
    trading: { due: new Bell(environment) },
    exchangeTransfers: { due: new Bell(environment) },
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
  observe(services)
  const pages = () => [
    ...checkoutPages(log),
    ...consolePages(log),
    ...referencePages(log),
    ...reservesPages(log),
  ]
  const server = serves(role)
    ? await buildServer(services, api, {
        pages: pages(),
        webhooks: openApiWebhooks,
        others: panel,
        witness,
      })
    : await buildServer(services, [])
  await local?.ready
  const controller = new AbortController()
  undo.push(() => controller.abort())
  const priced = services.prices.start(controller.signal)
  await checkNodesNetwork(signers, settings.network)
  if (!isLocal) await probeEndpoints(services)
  // For good, so not before everything that this start rests on is known to be of this network.
  await bindDatabase(database, settings.network)
  bindHome(settings.home, settings.network)
  await checkSecretsKey(database, aml.secrets, settings.secretsKey)
  // A killed run of this home was the only one that adopted anything.
  if (isOurs)
    await database.query(
      'update installation set adopting_until = null where adopting_until is not null',
    )
  await Promise.all([holdUntilCompared(services), priced])
  const unpriced = unpricedCoins(services)
  if (unpriced.length > 0)
    log.error({ coins: unpriced }, 'no price source has a current price of these coins')
  const publishing = unlessHeld(services, publishLoop(services, distributor))
  // This home's workers were ours alone: leases of a killed run need not be waited for.
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
    ...loopsOf(services, held).map((loop) => unlessHeld(services, loop)),
  ]
  const loops = Promise.all([
    runLoops(services, lasting, controller.signal, health),
    services.feed.run(controller.signal),
  ])
  if (works(role)) {
    const operator = await operate(services)
    undo.push(() => operator.close())
  }
  const address = await server
    .listen({ port: settings.port, host: settings.host })
    .catch((error: unknown) => {
      throw listenProblem(error, settings)
    })
  const port = Number(new URL(address).port)
  // Port 0 is a free one.
  if (settings.publicUrl === null) services.checkout.base = `http://${settings.host}:${port}`
  return {
    port,
    services,
    async stop() {
      await server.close()
      controller.abort()
      await loops
      if (scans(role))
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

/** A database of many rows is changed in minutes, and committed in more than a moment. */
const MIGRATED_MS = 3_600_000

/**
 * Migrates by a connection of its own, which waits for as long as that takes. @returns what was
 * applied
 */
async function broughtUpToDate(world: World, url: string, settings: Settings): Promise<string[]> {
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
 * Whatever a killed run of this home held. What is leased is due some time: the index of what is
 * due finds it.
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

/** An endpoint of another chain must not be used for a moment; one that is away is waited for. */
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
