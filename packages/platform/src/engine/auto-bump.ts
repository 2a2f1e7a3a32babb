import { changeSpender, type Attempt } from './attempts.ts'
import type { Services } from './services.ts'
import type { TransactionRow } from './transaction.ts'

/** A transaction that was bumped this often is bumped no more: its caller decides. */
const BUMPS_MAX = 5

/**
 * A transaction that has waited as long as its kind allows, while the market pays more, is bumped by the platform itself,
 * within what the caller's own request and the fuel at the address allow. It is done by the next step.
 */
export async function bumpLowFee(services: Services, row: TransactionRow, attempts: readonly Attempt[]): Promise<void> {
  const [newest] = attempts
  const { replaceable } = services.networks.get(row.network)
  const afterMs = services.kinds[row.kind].bumpAfterMs?.(services) ?? 0
  if (afterMs === 0 || !replaceable || !newest?.broadcast_at) return
  if (services.environment.now() - newest.broadcast_at.getTime() < afterMs) return
  if (!await replaceable.marketPaysMore(row, newest)) return
  if (await changeSpender(services.database, row, attempts) !== null) return
  await services.database.query(
    `insert into replacements (id, workspace_id, transaction_id, kind, created_at, updated_at)
       select $1, $6, $2, 'AUTO', $5::timestamptz, $5
     where (select count(*) from replacements where workspace_id = $6 and transaction_id = $2 and kind = 'AUTO') < $3
       and not exists (
         select 1 from replacements where workspace_id = $6 and transaction_id = $2 and kind = 'AUTO'
         and created_at > $5::timestamptz - $4 * interval '1 millisecond')
     on conflict do nothing`,
    [services.environment.uuid(), row.id, BUMPS_MAX, afterMs, services.database.now(), row.workspace_id])
}
