import { Counter, Gauge, Registry } from 'prom-client'

export interface Metrics {
  contentType: string
  text(): Promise<string>
  requests: Counter<'method' | 'path' | 'status'>
  steps: Counter<'kind' | 'state' | 'outcome'>
  signatures: Counter<'outcome'>
  scanned: Gauge<'network'>
}

export function createMetrics(): Metrics {
  const registry = new Registry()
  return {
    contentType: registry.contentType,
    text: () => registry.metrics(),
    requests: new Counter({ name: 'custody_http_requests_total', help: 'HTTP requests', labelNames: ['method', 'path', 'status'], registers: [registry] }),
    steps: new Counter({ name: 'custody_work_steps_total', help: 'Steps of transfers', labelNames: ['kind', 'state', 'outcome'], registers: [registry] }),
    signatures: new Counter({ name: 'custody_sign_orders_total', help: 'Orders to the signer nodes', labelNames: ['outcome'], registers: [registry] }),
    scanned: new Gauge({ name: 'custody_scanned_height', help: 'Last scanned block', labelNames: ['network'], registers: [registry] }),
  }
}
