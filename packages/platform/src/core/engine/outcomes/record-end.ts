import { noteWhole } from '@custody/tracing'
import type { Environment } from '../../environment.ts'
import type { Metrics } from '../../metrics.ts'
import type { TransactionRow } from '../transaction.ts'

interface Services {
  environment: Environment
  metrics: Metrics
}

/**
 * Records the end of a transaction in metrics and traces. If the commit that ends the transaction
 * fails, the end is recorded again; the numbers are for monitoring, not for accounting.
 */
export function recordEnd(
  services: Services,
  row: TransactionRow,
  outcome: 'confirmed' | 'failed',
): void {
  const { id, kind, asset, network } = row
  const [startMs, endMs] = [row.created_at.getTime(), services.environment.now()]
  services.metrics.ended.labels(kind, network, outcome).inc()
  if (outcome === 'confirmed')
    services.metrics.endedSeconds.labels(kind, network).observe(Math.max(0, endMs - startMs) / 1000)
  noteWhole(id, kind.toLowerCase(), { kind, asset, network, outcome }, startMs, endMs)
}
