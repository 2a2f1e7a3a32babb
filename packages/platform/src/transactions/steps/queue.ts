import type { Services } from '../../services.ts'
import { advance } from '../../work/lease.ts'
import type { TransactionRow } from '../present.ts'

/** CREATED → QUEUED. Screening will stand here. */
export async function queue(services: Services, row: TransactionRow): Promise<void> {
  await advance(services.database, row, { state: 'QUEUED', run_in_ms: 0 })
  services.environment.checkpoint('transaction.queued')
}
