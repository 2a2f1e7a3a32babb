import { latestAudit } from '../../audit/recorded.ts'
import type { Services } from '../../../core/engine/services.ts'
import { freeBytes } from '../../../core/data-dir.ts'

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
  metrics.auditSurpluses.set(last.surpluses)
  metrics.auditCompared.set(last.compared)
}
