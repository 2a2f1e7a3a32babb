import type { Registry } from '@custody/chains'
import type { Logger } from 'pino'
import type { People } from '../../console-api/people/people.ts'
import type { ExchangeTransfers } from '../../commerce/exchange-transfers/loop.ts'
import type { Venues } from '../../commerce/exchanges/venues.ts'
import type { Checkout } from '../../commerce/invoices/present.ts'
import type { Trading } from '../../commerce/trading/loop.ts'
import type { Database } from '../../core/database/pool.ts'
import type { DevnetControl } from '../../core/devnet.ts'
import type { Addresses } from '../../core/engine/interfaces/addresses.ts'
import type { DatabaseHold } from '../../core/engine/database-hold.ts'
import type { Kinds } from '../../core/engine/interfaces/kind.ts'
import type { Forwards, Invoices } from '../../core/engine/interfaces/listeners.ts'
import type { Networks } from '../../core/engine/networks.ts'
import type { Tanks } from '../../core/engine/interfaces/tanks.ts'
import type { Environment } from '../../core/environment.ts'
import type { Callers } from '../../core/http/authentication/callers.ts'
import type { Readiness } from '../../core/http/readiness.ts'
import type { Feed } from '../../core/ledger/feed.ts'
import type { Notifier } from '../../core/ledger/notifier.ts'
import type { LoadMonitor } from '../../core/load-monitor.ts'
import type { Metrics } from '../../core/metrics.ts'
import type { Settings } from '../../core/settings/settings.ts'
import type { WorkspaceKeys } from '../../core/signing/keys.ts'
import type { SignerNodes } from '../../core/signing/nodes.ts'
import type { Receipts } from '../../core/signing/receipts.ts'
import type { Aml } from '../../custody/aml/aml.ts'
import type { KnownWallets } from '../../custody/assets/find-wallet.ts'
import type { Prices } from '../../custody/prices/prices.ts'
import type { ExchangeDestinations } from '../../custody/transactions/exchange-destinations.ts'
import type { ChangeApprovals } from '../../custody/approvals/change-approvals.ts'
import type { WorkspacePolicies } from '../../custody/approvals/workspace-policies.ts'
import type { Withdrawals } from '../../custody/transactions/write-withdrawal.ts'
import type { Webhooks } from '../../events/webhooks/webhooks.ts'
import type { TestEvents } from '../../events/events/test-events.ts'
import type { ReconcileJob } from '../recovery/reconcile.ts'

/**
 * Everything of which a running platform consists, created once at start (`create-application.ts`).
 * Only the files that compose the platform know it; each other module states the members that it
 * needs in an interface of its own.
 */
export interface Application {
  settings: Settings
  environment: Environment
  database: Database
  registry: Registry
  networks: Networks
  signers: SignerNodes
  receipts: Receipts
  keys: WorkspaceKeys
  addresses: Addresses
  metrics: Metrics
  log: Logger
  /** Notified when this process has committed events that must be published. */
  outbox: Notifier
  /** Notified when this process has committed something that may make a transaction due. */
  work: Notifier
  pressure: LoadMonitor
  /** Notifies when events have been published. */
  feed: Feed
  hold: DatabaseHold
  kinds: Kinds
  tanks: Tanks
  forwards: Forwards
  invoices: Invoices
  knownWallets: KnownWallets
  withdrawals: Withdrawals
  policies: WorkspacePolicies
  policyChanges: ChangeApprovals
  exchangeDestinations: ExchangeDestinations
  aml: Aml
  prices: Prices
  callers: Callers
  people: People
  exchanges: Venues
  trading: Trading
  exchangeTransfers: ExchangeTransfers
  checkout: Checkout
  webhooks: Webhooks
  reconciling: { job: ReconcileJob | null }
  testEvents: TestEvents
  readiness(): Promise<Readiness>
  /** Sends a command to the control API of the local chains; null on mainnet. */
  devnet: DevnetControl | null
}
