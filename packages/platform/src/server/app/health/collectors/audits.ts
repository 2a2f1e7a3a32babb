import { latestAudit } from '../../../audit/recorded.ts'
import type { Settings } from '../../../../core/settings/settings.ts'
import type { Database } from '../../../../core/database/pool.ts'
import type { Metrics } from '../../../../core/metrics.ts'
import { freeBytes } from '../../../../core/data-dir.ts'

interface Services {
  settings: Pick<Settings, 'home'>
  database: Database
  metrics: Metrics
}

/**
 * Collects the result of the last audit, made by any process, and the free space on the data
 * folder's disk.
 */
export async function collectAudits({ database, metrics, settings }: Services): Promise<void> {
  const free = freeBytes(settings.home)
  if (free !== null) metrics.diskFree.set(free)
  const last = await latestAudit(database)
  if (!last) return
  metrics.auditAt.set(last.at.getTime() / 1000)
  metrics.auditDifferences.set(last.differences)
  metrics.auditExchangeDifferences.set(last.exchange_differences)
  metrics.auditSurpluses.set(last.surpluses)
  metrics.auditCompared.set(last.compared)
}
