import type { ReportUnreadable } from '@custody/chains'
import type { Logger } from 'pino'
import type { Metrics } from '../../../core/metrics.ts'

/**
 * Logs and counts data that a chain's client could not decode. An undecodable transaction is an
 * error, because it may contain a deposit that is not credited; an undecodable field is a warning,
 * because another value was used. Optional methods that an endpoint refuses are counted.
 */
export function reportUnreadable(
  log: Pick<Logger, 'warn' | 'error'>,
  metrics: Metrics,
): ReportUnreadable {
  return ({ network, kind, name, reason }) => {
    metrics.unreadable.labels(network, kind).inc()
    // Counted only, because an endpoint may refuse a method for each block.
    if (kind === 'method') return
    if (kind === 'transaction') {
      log.error(
        { network, hash: name, reason },
        'a transaction on the chain cannot be read; a deposit in it is not credited',
      )
    } else
      log.warn(
        { network, field: name, reason },
        'a field of the chain cannot be read; another value is used',
      )
  }
}
