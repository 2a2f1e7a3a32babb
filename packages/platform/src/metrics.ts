import { collectDefaultMetrics, Counter, Gauge, Histogram, Registry } from 'prom-client'

export interface Metrics {
  contentType: string
  text(): Promise<string>
  /**
   * Done before each scrape. Where it fails, the scrape answers what is known and
   * `custody_scrape_failed` is 1.
   */
  onScrape(look: () => Promise<void>): void
  /**
   * What every process of Node tells of itself (processor, memory, event loop, collections); it
   * watches from then on.
   */
  watchProcess(): void
  requests: Counter<'method' | 'path' | 'status'>
  requestSeconds: Histogram<'method' | 'path'>
  steps: Counter<'kind' | 'state' | 'outcome'>
  ended: Counter<'kind' | 'network' | 'outcome'>
  endedSeconds: Histogram<'kind' | 'network'>
  signatures: Counter<'outcome'>
  signingSeconds: Histogram<'outcome'>
  rpcRequests: Counter<'network' | 'endpoint' | 'outcome'>
  rpcRequestsAllowed: Gauge<'network' | 'endpoint'>
  rpcSeconds: Histogram<'network'>
  /** Of networks with several endpoints. */
  endpointUp: Gauge<'network' | 'endpoint'>
  endpointInUse: Gauge<'network' | 'endpoint'>
  endpointHead: Gauge<'network' | 'endpoint'>
  endpointDisagreements: Counter<'network' | 'endpoint'>
  unreadable: Counter<'network' | 'kind'>
  deliveries: Counter<'outcome'>
  ordersUnknown: Counter<'exchange'>
  ordersWaiting: Gauge<'exchange' | 'status'>
  scanned: Gauge<'network'>
  scannedAt: Gauge<'network'>
  headLag: Gauge<'network'>
  signerUp: Gauge<'node'>
  signerClock: Gauge<'node'>
  signerKeysReady: Gauge<'node' | 'curve'>
  signerPeersDown: Gauge<'node'>
  signerBans: Gauge<'node' | 'banned'>
  signerCertificateExpiry: Gauge<'node'>
  platformCertificateExpiry: Gauge
  sanctionsPublished: Gauge
  signingPossible: Gauge
  processes: Gauge<'duty'>
  unseen: Gauge<'duty'>
  loopFailing: Gauge<'loop'>
  priceMissing: Gauge<'coin'>
  waiting: Gauge<'kind' | 'state'>
  waitingAge: Gauge<'kind' | 'state'>
  suspense: Gauge<'network'>
  tankBalance: Gauge<'workspace' | 'network'>
  tankOk: Gauge<'workspace' | 'network'>
  prepaidBalance: Gauge<'workspace'>
  eventsWaiting: Gauge
  eventsAge: Gauge
  webhooksWaiting: Gauge
  webhooksAge: Gauge
  webhooksDisabled: Gauge
  auditAt: Gauge
  auditDifferences: Gauge
  auditSurpluses: Gauge
  auditCompared: Gauge
  diskFree: Gauge
}

/** From a statement to a chain that hangs. */
const SECONDS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30]
/** From a block of the fastest chain to a day. */
const TRANSFER_SECONDS = [1, 2.5, 5, 10, 30, 60, 120, 300, 600, 1800, 3600, 7200, 21_600, 86_400]

/**
 * So often it is looked whether the event loop is late; what is measured is the time between two
 * looks. Ten times as often, which is the library's own, an idle process did nothing else for half
 * of its time.
 */
const LOOP_LOOK_MS = 100

export function createMetrics(): Metrics {
  const registry = new Registry()
  const registers = [registry]
  const gauge = <T extends string>(name: string, help: string, ...labelNames: T[]) =>
    new Gauge<T>({
      name,
      help,
      labelNames,
      registers,
    })
  const counter = <T extends string>(name: string, help: string, ...labelNames: T[]) =>
    new Counter<T>({
      name,
      help,
      labelNames,
      registers,
    })
  const histogram = <T extends string>(
    name: string,
    help: string,
    buckets: number[],
    ...labelNames: T[]
  ) =>
    new Histogram<T>({
      name,
      help,
      buckets,
      labelNames,
      registers,
    })
  const scrapeFailed = gauge(
    'custody_scrape_failed',
    '1: the gauges of this scrape are old, because the database or the nodes could not be queried',
  )
  let look: (() => Promise<void>) | null = null
  return {
    contentType: registry.contentType,
    async text() {
      if (look)
        scrapeFailed.set(
          await look().then(
            () => 0,
            () => 1,
          ),
        )
      return registry.metrics()
    },
    onScrape: (asked) => {
      look = asked
    },
    watchProcess: () =>
      collectDefaultMetrics({ register: registry, eventLoopMonitoringPrecision: LOOP_LOOK_MS }),
    requests: counter('custody_http_requests_total', 'HTTP requests', 'method', 'path', 'status'),
    requestSeconds: histogram(
      'custody_http_request_seconds',
      'Duration from the head of a request to the end of its response',
      SECONDS,
      'method',
      'path',
    ),
    steps: counter('custody_work_steps_total', 'Steps of transfers', 'kind', 'state', 'outcome'),
    ended: counter(
      'custody_transactions_ended_total',
      'Transactions that ended on the chain',
      'kind',
      'network',
      'outcome',
    ),
    endedSeconds: histogram(
      'custody_transaction_seconds',
      'Duration from the creation of a transaction to its confirmation',
      TRANSFER_SECONDS,
      'kind',
      'network',
    ),
    signatures: counter('custody_sign_orders_total', 'Requests to the signer nodes', 'outcome'),
    signingSeconds: histogram(
      'custody_sign_order_seconds',
      'Duration from a request to the signer nodes to its last response, over all pairs of nodes',
      SECONDS,
      'outcome',
    ),
    rpcRequests: counter(
      'custody_rpc_requests_total',
      'Requests to chain endpoints',
      'network',
      'endpoint',
      'outcome',
    ),
    rpcRequestsAllowed: gauge(
      'custody_rpc_requests_per_day',
      'Configured number of requests per day for an endpoint',
      'network',
      'endpoint',
    ),
    endpointUp: gauge(
      'custody_endpoint_up',
      '1: the endpoint responds; for networks with several endpoints',
      'network',
      'endpoint',
    ),
    endpointInUse: gauge(
      'custody_endpoint_in_use',
      '1: the network is read from this endpoint',
      'network',
      'endpoint',
    ),
    endpointHead: gauge(
      'custody_endpoint_head_height',
      'Newest block of the endpoint at the last check',
      'network',
      'endpoint',
    ),
    endpointDisagreements: counter(
      'custody_endpoint_disagreements_total',
      'Number of times that the endpoint returned another block or outcome than the endpoint in use',
      'network',
      'endpoint',
    ),
    rpcSeconds: histogram(
      'custody_rpc_seconds',
      'Duration until the head of a chain endpoint’s response',
      SECONDS,
      'network',
    ),
    unreadable: counter(
      'custody_chain_unreadable_total',
      'Transactions and fields of chains that could not be read and were skipped',
      'network',
      'kind',
    ),
    deliveries: counter(
      'custody_webhook_deliveries_total',
      'Attempts to deliver an event; given_up: the last attempt of a delivery',
      'outcome',
    ),
    ordersUnknown: counter(
      'custody_orders_unknown_total',
      'Orders whose outcome was unknown for two minutes',
      'exchange',
    ),
    ordersWaiting: gauge(
      'custody_orders_waiting',
      'Open orders at exchanges',
      'exchange',
      'status',
    ),
    scanned: gauge('custody_scanned_height', 'Last scanned block', 'network'),
    scannedAt: gauge(
      'custody_scanned_timestamp_seconds',
      'Time when a network was last scanned to its head without an error',
      'network',
    ),
    headLag: gauge(
      'custody_head_lag_blocks',
      'Blocks between the head that the endpoint reports and the last scanned block',
      'network',
    ),
    signerUp: gauge('custody_signer_up', '1: the signer node responds and can sign', 'node'),
    signerClock: gauge(
      'custody_signer_clock_offset_seconds',
      'Difference of a node’s clock to this one, accurate to about a second; positive: ahead',
      'node',
    ),
    signerKeysReady: gauge(
      'custody_signer_keys_ready',
      'Keys that are generated and certified for future workspaces',
      'node',
      'curve',
    ),
    signerPeersDown: gauge(
      'custody_signer_peers_unreachable',
      'Other nodes that a signer node cannot reach',
      'node',
    ),
    signerBans: gauge(
      'custody_signer_bans',
      '1: the signer node `node` has banned the node `banned` permanently',
      'node',
      'banned',
    ),
    signerCertificateExpiry: gauge(
      'custody_signer_certificate_expiry_timestamp_seconds',
      'Expiry of the TLS certificate that a signer node presented last; absent until it presents one',
      'node',
    ),
    platformCertificateExpiry: gauge(
      'custody_platform_certificate_expiry_timestamp_seconds',
      'Expiry of the TLS certificate that identifies the platform to the signer nodes',
    ),
    sanctionsPublished: gauge(
      'custody_sanctions_list_published_timestamp_seconds',
      'Date on which the list of sanctioned addresses in use was published',
    ),
    signingPossible: gauge(
      'custody_signing_possible',
      '1: at least two signer nodes can sign; 0: transfers wait',
    ),
    processes: gauge(
      'custody_processes',
      'Running processes with this duty (api, worker, scanner)',
      'duty',
    ),
    unseen: gauge(
      'custody_duty_unseen_seconds',
      'Time since when no process with this duty has run; +Inf: none has ever run',
      'duty',
    ),
    loopFailing: gauge(
      'custody_loop_failing_seconds',
      'Duration for which a loop has failed continuously, in any process; absent below two minutes',
      'loop',
    ),
    priceMissing: gauge(
      'custody_price_missing',
      '1: a coin in use has no current price; otherwise absent',
      'coin',
    ),
    waiting: gauge('custody_transactions_waiting', 'Transactions in progress', 'kind', 'state'),
    waitingAge: gauge(
      'custody_transactions_oldest_seconds',
      'Age of the oldest transaction in progress',
      'kind',
      'state',
    ),
    suspense: gauge('custody_deposits_in_suspense', 'Deposits that belong to no wallet', 'network'),
    tankBalance: gauge('custody_gas_tank_balance', 'Balance of a gas tank', 'workspace', 'network'),
    tankOk: gauge(
      'custody_gas_tank_ok',
      '1: the balance of the gas tank is at least its threshold',
      'workspace',
      'network',
    ),
    prepaidBalance: gauge(
      'custody_prepaid_balance_usd',
      'Balance of a workspace’s prepaid fee account',
      'workspace',
    ),
    eventsWaiting: gauge(
      'custody_events_unpublished',
      'Committed events that are not in the event log yet',
    ),
    eventsAge: gauge(
      'custody_events_oldest_seconds',
      'Age of the oldest committed event that is not in the event log yet',
    ),
    webhooksWaiting: gauge('custody_webhook_deliveries_waiting', 'Events that wait for delivery'),
    webhooksAge: gauge(
      'custody_webhook_oldest_seconds',
      'Age of the oldest waiting delivery, without disabled receivers',
    ),
    webhooksDisabled: gauge(
      'custody_webhooks_disabled',
      'Receivers that are disabled after too many failures',
    ),
    auditAt: gauge(
      'custody_audit_timestamp_seconds',
      'Time of the last audit of the ledger against the chains',
    ),
    auditDifferences: gauge('custody_audit_differences', 'Differences that the last audit found'),
    auditSurpluses: gauge(
      'custody_audit_surpluses',
      'Differences of the last audit in which a chain has more than the ledger',
    ),
    auditCompared: gauge(
      'custody_audit_compared',
      'Addresses, coins and balances that the last audit compared',
    ),
    diskFree: gauge('custody_disk_free_bytes', 'Free space on the disk of the data folder'),
  }
}
