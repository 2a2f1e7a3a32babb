import { Counter, Gauge, Registry } from 'prom-client'

export interface Metrics {
  contentType: string
  text(): Promise<string>
  /** Done before each scrape. Where it fails, the scrape answers what is known and `custody_scrape_failed` is 1. */
  onScrape(look: () => Promise<void>): void
  requests: Counter<'method' | 'path' | 'status'>
  steps: Counter<'kind' | 'state' | 'outcome'>
  signatures: Counter<'outcome'>
  ordersUnknown: Counter<'exchange'>
  ordersWaiting: Gauge<'exchange' | 'status'>
  scanned: Gauge<'network'>
  scannedAt: Gauge<'network'>
  headLag: Gauge<'network'>
  signerUp: Gauge<'node'>
  signingPossible: Gauge
  processes: Gauge<'duty'>
  unseen: Gauge<'duty'>
  waiting: Gauge<'kind' | 'state'>
  waitingAge: Gauge<'kind' | 'state'>
  tankBalance: Gauge<'workspace' | 'network'>
  tankOk: Gauge<'workspace' | 'network'>
}

export function createMetrics(): Metrics {
  const registry = new Registry()
  const gauge = <T extends string>(name: string, help: string, ...labelNames: T[]) => new Gauge<T>({
    name, help, labelNames, registers: [registry],
  })
  const counter = <T extends string>(name: string, help: string, ...labelNames: T[]) => new Counter<T>({
    name, help, labelNames, registers: [registry],
  })
  const scrapeFailed = gauge('custody_scrape_failed', '1: the gauges of this scrape are old, because database or nodes could not be asked')
  let look: (() => Promise<void>) | null = null
  return {
    contentType: registry.contentType,
    async text() {
      if (look) scrapeFailed.set(await look().then(() => 0, () => 1))
      return registry.metrics()
    },
    onScrape: (asked) => { look = asked },
    requests: counter('custody_http_requests_total', 'HTTP requests', 'method', 'path', 'status'),
    steps: counter('custody_work_steps_total', 'Steps of transfers', 'kind', 'state', 'outcome'),
    signatures: counter('custody_sign_orders_total', 'Orders to the signer nodes', 'outcome'),
    ordersUnknown: counter('custody_orders_unknown_total', 'Orders whose fate could not be learned for two minutes', 'exchange'),
    ordersWaiting: gauge('custody_orders_waiting', 'Orders at exchanges that have not ended', 'exchange', 'status'),
    scanned: gauge('custody_scanned_height', 'Last scanned block', 'network'),
    scannedAt: gauge('custody_scanned_timestamp_seconds', 'When a network was last scanned to its head without an error', 'network'),
    headLag: gauge('custody_head_lag_blocks', 'Blocks between the head that the endpoint tells and the last scanned one', 'network'),
    signerUp: gauge('custody_signer_up', '1: the signer node answers and can sign', 'node'),
    signingPossible: gauge('custody_signing_possible', '1: at least two signer nodes can sign; 0: transfers wait'),
    processes: gauge('custody_processes', 'Processes that do this duty (api, worker, scanner) and are there', 'duty'),
    unseen: gauge('custody_duty_unseen_seconds', 'Since when no process of this duty was seen; +Inf: none ever was', 'duty'),
    waiting: gauge('custody_transactions_waiting', 'Transactions under way', 'kind', 'state'),
    waitingAge: gauge('custody_transactions_oldest_seconds', 'Age of the oldest transaction under way', 'kind', 'state'),
    tankBalance: gauge('custody_gas_tank_balance', 'Coins of a gas tank', 'workspace', 'network'),
    tankOk: gauge('custody_gas_tank_ok', '1: the gas tank holds at least its threshold', 'workspace', 'network'),
  }
}
