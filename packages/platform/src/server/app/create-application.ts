import { TestEvents } from '../../events/events/test-events.ts'
import type { Registry } from '@custody/chains'
import type { Logger } from 'pino'
import { exchangeDestinationsOf } from '../../commerce/exchange-transfers/destination.ts'
import { changeApprovalsOf } from '../../custody/policies/changes/change-approvals.ts'
import { WorkspacePolicies } from '../../custody/approvals/workspace-policies.ts'
import { AddressBook } from '../../custody/addresses/book.ts'
import { createAml, type Aml } from '../../custody/aml/aml.ts'
import { amlInstallation } from '../../custody/aml/settings.ts'
import { KnownWallets } from '../../custody/assets/find-wallet.ts'
import { forwards } from '../../custody/auto-forwarding/forwards.ts'
import { shortageOf } from '../../core/data-dir.ts'
import type { Database } from '../../core/database/pool.ts'
import { DatabaseHold } from '../../core/engine/database-hold.ts'
import { Networks } from '../../core/engine/networks.ts'
import type { Application } from './application.ts'
import { eventPollMs } from '../../events/events/publish.ts'
import { createExchanges } from '../../commerce/exchanges/exchanges.ts'
import { createTanks } from '../../custody/gas-tanks/tanks.ts'
import { Callers } from '../../core/http/authentication/callers.ts'
import { invoices } from '../../commerce/invoices/loop.ts'
import { Feed } from '../../core/ledger/feed.ts'
import { Notifier } from '../../core/ledger/notifier.ts'
import { LoadMonitor } from '../../core/load-monitor.ts'
import { createMetrics } from '../../core/metrics.ts'
import { createPeople } from '../../console-api/people/people.ts'
import { coinsOf } from '../../custody/prices/coins.ts'
import { Prices } from '../../custody/prices/prices.ts'
import { priceSources, pricesInstallation } from '../../custody/prices/settings.ts'
import { Secrets } from '../../core/secrets.ts'
import type { Settings } from '../../core/settings/settings.ts'
import { WorkspaceKeys } from '../../core/signing/keys.ts'
import type { SignerNodes } from '../../core/signing/nodes.ts'
import { Receipts } from '../../core/signing/receipts.ts'
import { Withdrawals } from '../../custody/transactions/write-withdrawal.ts'
import { checkUrl } from '../../events/webhooks/webhook.ts'
import { createWebhooks } from '../../events/webhooks/webhooks.ts'
import { connectAll } from './connect.ts'
import { createKinds } from './kinds.ts'
import { devnetControl, localEndpoints } from './local/local.ts'
import { readiness } from './health/readiness.ts'
import { reportUnreadable } from './health/report-unreadable.ts'
import type { Runtime } from './runtime.ts'

/** Notifiers that are notified of the database's events. `moved`: a deposit changed. */
export interface Notifiers {
  outbox: Notifier
  work: Notifier
  moved: Notifier
}

/**
 * Parts from which the application is created. `devnetUrl`: URL of the local chains; null on other
 * networks.
 */
interface ApplicationParts {
  settings: Settings
  runtime: Runtime
  log: Logger
  database: Database
  registry: Registry
  signers: SignerNodes
  devnetUrl: string | null
  notifiers: Notifiers
}

/**
 * Creates the application. Nothing is queried; only the secrets key is read.
 * @throws Error if the secrets cannot be opened
 */
export async function createApplication(parts: ApplicationParts): Promise<Application> {
  const { settings, runtime, log, database, registry, signers, devnetUrl, notifiers } = parts
  const { environment, fetch } = runtime
  const keys = new WorkspaceKeys(database, signers, settings.network, environment)
  const addresses = new AddressBook(() => base)
  const pressure = new LoadMonitor(environment.now)
  const aml = createAml({
    home: settings.home,
    installation: amlInstallation(settings.aml, devnetUrl),
    environment,
    database,
    fetch,
    log,
    secrets: await Secrets.open(settings.home, settings.secretsKey, environment),
  })
  const metrics = createMetrics()
  metrics.watchProcess()
  const base: Omit<Application, 'kinds' | 'tanks'> = {
    settings,
    environment,
    database,
    registry,
    log,
    signers,
    keys,
    addresses,
    forwards,
    invoices,
    hold: new DatabaseHold(shortageOf(settings.home, environment.now)),
    outbox: notifiers.outbox,
    work: notifiers.work,
    pressure,
    receipts: new Receipts({ signers, environment, database, log, pressure }),
    knownWallets: new KnownWallets(database),
    withdrawals: new Withdrawals(database),
    policies: new WorkspacePolicies({ signers, environment }),
    policyChanges: changeApprovalsOf({ database, registry, signers }),
    feed: new Feed({ database, environment, log, pollMs: eventPollMs({ settings }) }),
    reconciling: { job: null },
    testEvents: new TestEvents(),
    checkout: {
      base: settings.publicUrl ?? `http://${settings.host}:${settings.port}`,
      checkWebhook: (url, field) => checkUrl(base, url, field),
      moved: notifiers.moved,
    },
    networks: connectNetworks(parts, { keys, addresses, metrics }),
    callers: new Callers(database, environment),
    aml,
    people: peopleOf(parts, aml.secrets),
    prices: pricesOf(parts),
    exchanges: createExchanges({ ...parts, environment, fetch }),
    trading: { due: new Notifier(environment) },
    exchangeTransfers: { due: new Notifier(environment) },
    exchangeDestinations: exchangeDestinationsOf(() => base),
    webhooks: createWebhooks({
      services: () => base,
      environment,
      allow: settings.webhookAllow,
      resolve: runtime.resolve,
    }),
    metrics,
    devnet: devnetUrl ? devnetControl(devnetUrl) : null,
    readiness: () => readiness(base),
  }
  const withKinds = Object.assign(base, { kinds: createKinds(base) })
  return Object.assign(withKinds, { tanks: createTanks(withKinds) })
}

/** Creates the reader of prices, with the sources of this installation. */
function pricesOf({ settings, runtime, log, registry, devnetUrl }: ApplicationParts): Prices {
  const { environment, fetch } = runtime
  const prices = pricesInstallation(settings.prices, devnetUrl, registry)
  return new Prices({
    sources: priceSources(prices, environment, fetch),
    coins: coinsOf(registry),
    environment,
    log,
    everyMs: prices.everyMs,
  })
}

/** Creates the clients of all networks that have an endpoint. */
function connectNetworks(
  { settings, runtime, log, database, registry, devnetUrl }: ApplicationParts,
  { keys, addresses, metrics }: Pick<Application, 'keys' | 'addresses' | 'metrics'>,
): Networks {
  const { environment, fetch } = runtime
  const endpoints = devnetUrl ? localEndpoints(devnetUrl, registry.networks) : settings.endpoints
  const report = reportUnreadable(log, metrics)
  return new Networks(
    connectAll({ registry, database, environment, keys, addresses, report }, endpoints, fetch, {
      metrics,
      log,
    }),
  )
}

/** Creates the sign-in of people to the console. */
const peopleOf = ({ settings, runtime, database }: ApplicationParts, secrets: Aml['secrets']) =>
  createPeople({
    database,
    environment: runtime.environment,
    secrets,
    rateLimit: settings.rateLimit,
  })
