import { collectDefaultMetrics, Counter, Gauge, Histogram, Registry } from 'prom-client'

export interface Metrics {
  contentType: string
  text(): Promise<string>
  /**
   * Registers work to do before each scrape. If it fails, the scrape returns the known values and
   * `custody_scrape_failed` is 1.
   */
  onScrape(look: () => Promise<void>): void
  /**
   * Registers the metrics of the Node process (processor, memory, event loop, garbage collection)
   * and starts their measurement.
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
  /** Whether an endpoint is up, for networks with several endpoints. */
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

/**
 * Histogram buckets in seconds, from the duration of a statement to that of a call to a chain that
 * does not respond.
 */
const SECONDS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30]
/** Histogram buckets in seconds, from a block of the fastest chain to a day. */
const TRANSFER_SECONDS = [1, 2.5, 5, 10, 30, 60, 120, 300, 600, 1800, 3600, 7200, 21_600, 86_400]

/**
 * Interval in milliseconds at which the delay of the event loop is sampled; the measured value is
 * the time between two samples. The library's default is ten times as often, which used half of the
 * processor time of an idle process.
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
    '1: the gauges of this scrape are old, because database or nodes could not be asked',
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
      'From a request’s head to its answer’s end',
      SECONDS,
      'method',
      'path',
    ),
    steps: counter('custody_work_steps_total', 'Steps of transfers', 'kind', 'state', 'outcome'),
    ended: counter(
      'custody_transactions_ended_total',
      'Transactions that came to their end on the chain',
      'kind',
      'network',
      'outcome',
    ),
    endedSeconds: histogram(
      'custody_transaction_seconds',
      'From a transaction’s creation to its confirmation',
      TRANSFER_SECONDS,
      'kind',
      'network',
    ),
    signatures: counter('custody_sign_orders_total', 'Orders to the signer nodes', 'outcome'),
    signingSeconds: histogram(
      'custody_sign_order_seconds',
      'From an order to the signer nodes to its last answer, all pairs that were asked',
      SECONDS,
      'outcome',
    ),
    rpcRequests: counter(
      'custody_rpc_requests_total',
      'Questions to chain endpoints',
      'network',
      'endpoint',
      'outcome',
    ),
    rpcRequestsAllowed: gauge(
      'custody_rpc_requests_per_day',
      'Questions a day that an endpoint allows, as it was configured',
      'network',
      'endpoint',
    ),
    endpointUp: gauge(
      'custody_endpoint_up',
      '1: the endpoint answers; of networks with several endpoints',
      'network',
      'endpoint',
    ),
    endpointInUse: gauge(
      'custody_endpoint_in_use',
      '1: the network is read from this one of its endpoints',
      'network',
      'endpoint',
    ),
    endpointHead: gauge(
      'custody_endpoint_head_height',
      'Newest block of the endpoint when it was last looked at',
      'network',
      'endpoint',
    ),
    endpointDisagreements: counter(
      'custody_endpoint_disagreements_total',
      'Times that the endpoint showed another block or outcome than the one in use',
      'network',
      'endpoint',
    ),
    rpcSeconds: histogram(
      'custody_rpc_seconds',
      'Time to the head of a chain endpoint’s answer',
      SECONDS,
      'network',
    ),
    unreadable: counter(
      'custody_chain_unreadable_total',
      'Transactions and fields of chains that could not be read and were left out',
      'network',
      'kind',
    ),
    deliveries: counter(
      'custody_webhook_deliveries_total',
      'Tries to deliver an event; given_up: the last one of a delivery',
      'outcome',
    ),
    ordersUnknown: counter(
      'custody_orders_unknown_total',
      'Orders whose fate could not be learned for two minutes',
      'exchange',
    ),
    ordersWaiting: gauge(
      'custody_orders_waiting',
      'Orders at exchanges that have not ended',
      'exchange',
      'status',
    ),
    scanned: gauge('custody_scanned_height', 'Last scanned block', 'network'),
    scannedAt: gauge(
      'custody_scanned_timestamp_seconds',
      'When a network was last scanned to its head without an error',
      'network',
    ),
    headLag: gauge(
      'custody_head_lag_blocks',
      'Blocks between the head that the endpoint tells and the last scanned one',
      'network',
    ),
    signerUp: gauge('custody_signer_up', '1: the signer node answers and can sign', 'node'),
    signerClock: gauge(
      'custody_signer_clock_offset_seconds',
      'How far a node’s clock is ahead of this one, to about a second',
      'node',
    ),
    signerKeysReady: gauge(
      'custody_signer_keys_ready',
      'Keys that are made and certified for workspaces to come',
      'node',
      'curve',
    ),
    signerPeersDown: gauge(
      'custody_signer_peers_unreachable',
      'Other nodes that a signer node does not reach',
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
      'When the TLS certificate expires that a signer node presented last; absent until it presents one',
      'node',
    ),
    platformCertificateExpiry: gauge(
      'custody_platform_certificate_expiry_timestamp_seconds',
      'When the TLS certificate expires by which the signer nodes know the platform',
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
      'Processes that do this duty (api, worker, scanner) and are there',
      'duty',
    ),
    unseen: gauge(
      'custody_duty_unseen_seconds',
      'Since when no process of this duty was seen; +Inf: none ever was',
      'duty',
    ),
    loopFailing: gauge(
      'custody_loop_failing_seconds',
      'How long a loop has failed each time, in whichever process; absent below two minutes',
      'loop',
    ),
    priceMissing: gauge(
      'custody_price_missing',
      '1: a coin in use has no current price; absent where it has one',
      'coin',
    ),
    waiting: gauge('custody_transactions_waiting', 'Transactions under way', 'kind', 'state'),
    waitingAge: gauge(
      'custody_transactions_oldest_seconds',
      'Age of the oldest transaction under way',
      'kind',
      'state',
    ),
    suspense: gauge(
      'custody_deposits_in_suspense',
      'Deposits that nobody’s wallet could be told of',
      'network',
    ),
    tankBalance: gauge('custody_gas_tank_balance', 'Coins of a gas tank', 'workspace', 'network'),
    tankOk: gauge(
      'custody_gas_tank_ok',
      '1: the gas tank holds at least its threshold',
      'workspace',
      'network',
    ),
    prepaidBalance: gauge(
      'custody_prepaid_balance_usd',
      'What a workspace’s prepaid fee account holds',
      'workspace',
    ),
    eventsWaiting: gauge(
      'custody_events_unpublished',
      'Committed events without a place in the log',
    ),
    eventsAge: gauge(
      'custody_events_oldest_seconds',
      'Age of the oldest committed event without a place in the log',
    ),
    webhooksWaiting: gauge(
      'custody_webhook_deliveries_waiting',
      'Events that wait for their receivers',
    ),
    webhooksAge: gauge(
      'custody_webhook_oldest_seconds',
      'Age of the oldest delivery that waits, of receivers that are not disabled',
    ),
    webhooksDisabled: gauge(
      'custody_webhooks_disabled',
      'Receivers that get nothing, having failed too often',
    ),
    auditAt: gauge(
      'custody_audit_timestamp_seconds',
      'When the books were last held against the chains',
    ),
    auditDifferences: gauge('custody_audit_differences', 'Differences that the last audit found'),
    auditSurpluses: gauge(
      'custody_audit_surpluses',
      'Differences of the last audit where a chain holds more than the books',
    ),
    auditCompared: gauge(
      'custody_audit_compared',
      'Addresses, coins and balances that the last audit compared',
    ),
    diskFree: gauge('custody_disk_free_bytes', 'Room on the disk of the data folder'),
  }
}
