import { collectDefaultMetrics, Counter, Gauge, Histogram, Registry } from 'prom-client'

/** Upper bounds of durations from a database statement to a chain that hangs, in seconds. */
const SECONDS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30]
/** Upper bounds of durations from one block of the fastest chain to a day, in seconds. */
const TRANSFER_SECONDS = [1, 2.5, 5, 10, 30, 60, 120, 300, 600, 1800, 3600, 7200, 21_600, 86_400]

/**
 * Interval at which the delay of the event loop is measured, in milliseconds. With the library's
 * default, a tenth of it, an idle process spent half of its time on the measurement.
 */
const LOOP_SAMPLE_MS = 100

/** Creates metrics in one registry. */
interface Factory {
  gauge<T extends string>(name: string, help: string, ...labelNames: T[]): Gauge<T>
  counter<T extends string>(name: string, help: string, ...labelNames: T[]): Counter<T>
  histogram<T extends string>(
    name: string,
    help: string,
    buckets: number[],
    ...labelNames: T[]
  ): Histogram<T>
}

function factoryOf(registry: Registry): Factory {
  const registers = [registry]
  return {
    gauge: (name, help, ...labelNames) => new Gauge({ name, help, labelNames, registers }),
    counter: (name, help, ...labelNames) => new Counter({ name, help, labelNames, registers }),
    histogram: (name, help, buckets, ...labelNames) =>
      new Histogram({ name, help, buckets, labelNames, registers }),
  }
}

/** Metrics of API requests, and transactions from their creation to their end. */
const workMetrics = ({ gauge, counter, histogram }: Factory) => ({
  requests: counter('custody_http_requests_total', 'HTTP requests', 'method', 'path', 'status'),
  requestSeconds: histogram(
    'custody_http_request_seconds',
    'Time from the head of a request to the end of its response, in seconds',
    SECONDS,
    'method',
    'path',
  ),
  bodyBytes: gauge(
    'custody_http_body_bytes',
    'Bytes of request bodies that this process has in memory',
  ),
  bodiesRefused: counter(
    'custody_http_bodies_refused_total',
    'Request bodies that were refused because too many bytes of bodies were in memory',
  ),
  connectionsRefused: counter(
    'custody_http_connections_refused_total',
    'Connections that were closed because too many were open',
  ),
  refusalsUnlogged: counter(
    'custody_http_refusals_unlogged_total',
    'Refused requests without an authenticated caller that have no log line of their own',
  ),
  steps: counter(
    'custody_work_steps_total',
    'Steps of transactions that workers ran',
    'kind',
    'state',
    'outcome',
  ),
  ended: counter(
    'custody_transactions_ended_total',
    'Transactions that reached their final state',
    'kind',
    'network',
    'outcome',
  ),
  endedSeconds: histogram(
    'custody_transaction_seconds',
    'Time from the creation of a transaction to its confirmation, in seconds',
    TRANSFER_SECONDS,
    'kind',
    'network',
  ),
  waiting: gauge('custody_transactions_waiting', 'Pending transactions', 'kind', 'state'),
  waitingAge: gauge(
    'custody_transactions_oldest_seconds',
    'Age of the oldest pending transaction, in seconds',
    'kind',
    'state',
  ),
  signatures: counter(
    'custody_sign_orders_total',
    'Signing orders sent to the signer nodes',
    'outcome',
  ),
  disputedRefusals: counter(
    'custody_disputed_refusals_total',
    'Refusals by a signer node of orders that the two other nodes signed',
    'node',
  ),
  signingSeconds: histogram(
    'custody_sign_order_seconds',
    'Time from a signing order to its last response, over all pairs of nodes tried, in seconds',
    SECONDS,
    'outcome',
  ),
})

/** Metrics of chain endpoints and the scanner. */
const chainMetrics = ({ gauge, counter, histogram }: Factory) => ({
  rpcRequests: counter(
    'custody_rpc_requests_total',
    'Requests to chain endpoints',
    'network',
    'endpoint',
    'outcome',
  ),
  rpcRequestsAllowed: gauge(
    'custody_rpc_requests_per_day',
    'Configured maximum number of requests to an endpoint in a day',
    'network',
    'endpoint',
  ),
  rpcSeconds: histogram(
    'custody_rpc_seconds',
    'Time from a request to a chain endpoint to the head of its response, in seconds',
    SECONDS,
    'network',
  ),
  endpointUp: gauge(
    'custody_endpoint_up',
    '1 if the endpoint responds; only for networks with several endpoints',
    'network',
    'endpoint',
  ),
  endpointInUse: gauge(
    'custody_endpoint_in_use',
    '1 if the network is read from this endpoint; only for networks with several endpoints',
    'network',
    'endpoint',
  ),
  endpointHead: gauge(
    'custody_endpoint_head_height',
    'Height of the newest block that the endpoint last returned',
    'network',
    'endpoint',
  ),
  endpointDisagreements: counter(
    'custody_endpoint_disagreements_total',
    'Number of times the endpoint returned another block or outcome than the endpoint in use',
    'network',
    'endpoint',
  ),
  unreadable: counter(
    'custody_chain_unreadable_total',
    'Data of chains that could not be read, or for which an endpoint refused an optional method',
    'network',
    'kind',
  ),
  scanned: gauge('custody_scanned_height', 'Height of the last scanned block', 'network'),
  scannedAt: gauge(
    'custody_scanned_timestamp_seconds',
    'Unix time at which the scanner last reached the head of the network without an error',
    'network',
  ),
  headLag: gauge(
    'custody_head_lag_blocks',
    'Number of blocks between the head that the endpoint reports and the last scanned block',
    'network',
  ),
})

/** Metrics of the signer nodes, as the platform sees them. */
const signerMetrics = ({ gauge }: Factory) => ({
  signingPossible: gauge(
    'custody_signing_possible',
    '1 if at least two signer nodes can sign; 0 if transfers wait',
  ),
  signerUp: gauge('custody_signer_up', '1 if the signer node responds and can sign', 'node'),
  signerClock: gauge(
    'custody_signer_clock_offset_seconds',
    'Seconds by which the clock of the signer node is ahead of this one, to about a second',
    'node',
  ),
  signerKeysReady: gauge(
    'custody_signer_keys_ready',
    'Certified keys of the signer node that are ready for new workspaces',
    'node',
    'curve',
  ),
  signerPeersDown: gauge(
    'custody_signer_peers_unreachable',
    'Number of other nodes that the signer node cannot reach',
    'node',
  ),
  signerHeapUsed: gauge(
    'custody_signer_heap_used_ratio',
    'Share of the heap of the signer node that is in use, between 0 and 1; it contains the index of the record',
    'node',
  ),
  signerPoliciesApart: gauge(
    'custody_signer_policies_apart',
    'Number of workspaces whose policy is late at the signer node, or differs from that of another node',
    'node',
  ),
  signerPoliciesUnproven: gauge(
    'custody_signer_policies_unproven',
    'Number of other nodes that claim policies at the signer node which they do not send',
    'node',
  ),
  signerPolicyWindowsNearlyFull: gauge(
    'custody_signer_policy_windows_nearly_full',
    'Number of time windows of policies of which at least 90 % is used, as a signer node counts them',
    'node',
  ),
  signerPolicyResets: gauge(
    'custody_signer_policy_resets',
    'Number of workspaces whose policy an operator of a signer node wants to replace by a reset',
    'node',
  ),
  signerBans: gauge(
    'custody_signer_bans',
    '1 if the signer node `node` has permanently banned the node `banned`',
    'node',
    'banned',
  ),
  signerCertificateExpiry: gauge(
    'custody_signer_certificate_expiry_timestamp_seconds',
    'Unix time at which the last presented TLS certificate of the signer node expires; absent until it has presented one',
    'node',
  ),
  platformCertificateExpiry: gauge(
    'custody_platform_certificate_expiry_timestamp_seconds',
    'Unix time at which the TLS certificate of the platform towards the signer nodes expires',
  ),
})

/** Metrics of balances, prices and orders. */
const moneyMetrics = ({ gauge, counter }: Factory) => ({
  suspense: gauge(
    'custody_deposits_in_suspense',
    'Deposits in suspense, which belong to no wallet',
    'network',
  ),
  tankBalance: gauge(
    'custody_gas_tank_balance',
    'Balance of the gas tank, in coins',
    'workspace',
    'network',
  ),
  tankOk: gauge(
    'custody_gas_tank_ok',
    '1 if the balance of the gas tank reaches its threshold',
    'workspace',
    'network',
  ),
  prepaidBalance: gauge(
    'custody_prepaid_balance_usd',
    'Balance of the prepaid fee account of the workspace, in USD',
    'workspace',
  ),
  priceMissing: gauge(
    'custody_price_missing',
    '1 if a coin in use has no current price; absent if it has one',
    'coin',
  ),
  sanctionsPublished: gauge(
    'custody_sanctions_list_published_timestamp_seconds',
    'Unix time at which the list of sanctioned addresses in use was published',
  ),
  ordersUnknown: counter(
    'custody_orders_unknown_total',
    'Exchange orders whose outcome was unknown for two minutes',
    'exchange',
  ),
  ordersWaiting: gauge(
    'custody_orders_waiting',
    'Orders at exchanges that have not ended',
    'exchange',
    'status',
  ),
})

/** Metrics of the comparison of the books with the chains. */
const bookMetrics = ({ gauge }: Factory) => ({
  auditAt: gauge(
    'custody_audit_timestamp_seconds',
    'Unix time at which the audit last compared the books with the chains',
  ),
  watchAge: gauge(
    'custody_balances_compared_within_seconds',
    'Time within which the balance of every address was compared with the books',
    'network',
  ),
  watchPaused: gauge(
    'custody_contract_payments_paused',
    'Workspaces in which coins that contracts paid are not credited now',
    'network',
  ),
  auditDifferences: gauge('custody_audit_differences', 'Differences that the last audit found'),
  auditExchangeDifferences: gauge(
    'custody_audit_exchange_differences',
    'Differences of the last audit at customers’ exchange accounts, including accounts that could not be compared',
  ),
  auditSurpluses: gauge(
    'custody_audit_surpluses',
    'Differences of the last audit in which a chain has more than the books',
  ),
  auditCompared: gauge(
    'custody_audit_compared',
    'Addresses, coins and balances that the last audit compared',
  ),
})

/** Metrics of processes, events and webhooks. */
const processMetrics = ({ gauge, counter }: Factory) => ({
  processes: gauge(
    'custody_processes',
    'Running processes with this duty (api, worker, scanner)',
    'duty',
  ),
  unseen: gauge(
    'custody_duty_unseen_seconds',
    'Seconds since a process with this duty last reported; +Inf if none ever did',
    'duty',
  ),
  loopFailing: gauge(
    'custody_loop_failing_seconds',
    'Seconds for which every run of the loop has failed, in any process; absent below two minutes',
    'loop',
  ),
  diskFree: gauge('custody_disk_free_bytes', 'Free bytes on the disk of the data directory'),
  eventsWaiting: gauge(
    'custody_events_unpublished',
    'Committed events that have no position in the log yet',
  ),
  eventsAge: gauge(
    'custody_events_oldest_seconds',
    'Age of the oldest committed event without a position in the log, in seconds',
  ),
  deliveries: counter(
    'custody_webhook_deliveries_total',
    'Attempts to deliver an event to a webhook; outcome given_up: the last attempt of a delivery failed',
    'outcome',
  ),
  webhooksWaiting: gauge(
    'custody_webhook_deliveries_waiting',
    'Deliveries that are waiting for their receivers',
  ),
  webhooksAge: gauge(
    'custody_webhook_oldest_seconds',
    'Age of the oldest waiting delivery, without disabled webhooks, in seconds',
  ),
  webhooksDisabled: gauge(
    'custody_webhooks_disabled',
    'Webhooks that were disabled after too many failed attempts',
  ),
})

const allMetrics = (factory: Factory) => ({
  ...workMetrics(factory),
  ...chainMetrics(factory),
  ...signerMetrics(factory),
  ...moneyMetrics(factory),
  ...bookMetrics(factory),
  ...processMetrics(factory),
})

export interface Metrics extends ReturnType<typeof allMetrics> {
  contentType: string
  /** Returns all metrics in the text format of Prometheus. */
  text(): Promise<string>
  /**
   * Sets the function that runs before each scrape. If it fails, the scrape returns the previous
   * values, and `custody_scrape_failed` is 1.
   */
  onScrape(collect: () => Promise<void>): void
  /**
   * Begins to collect Node's own metrics of the process: processor, memory, event loop, garbage
   * collections.
   */
  watchProcess(): void
}

export function createMetrics(): Metrics {
  const registry = new Registry()
  const factory = factoryOf(registry)
  const scrapeFailed = factory.gauge(
    'custody_scrape_failed',
    '1 if the gauges of this scrape are old, because the database or the nodes could not be queried',
  )
  let collect: (() => Promise<void>) | null = null
  return {
    ...allMetrics(factory),
    contentType: registry.contentType,
    async text() {
      if (collect) {
        const failed = await collect().then(
          () => 0,
          () => 1,
        )
        scrapeFailed.set(failed)
      }
      return registry.metrics()
    },
    onScrape: (callback) => {
      collect = callback
    },
    watchProcess: () =>
      collectDefaultMetrics({ register: registry, eventLoopMonitoringPrecision: LOOP_SAMPLE_MS }),
  }
}
