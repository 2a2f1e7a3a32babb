import { noteWhole } from '@custody/tracing'
import type { Services } from './services.ts'
import type { TransactionRow } from './transaction.ts'

/**
 * A transaction has come to its end: it is counted, and its trace is whole. Where the commit that
 * ends it fails, it is noted again: this is for watching, not for books.
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
