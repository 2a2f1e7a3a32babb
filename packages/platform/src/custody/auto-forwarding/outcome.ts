import type { Queryable } from '../../core/database/pool.ts'
import { isForward, type TransactionRow } from '../../core/engine/transaction.ts'

const RETRY_MIN_S = 30
const RETRY_MAX_S = 3600

/**
 * Returns the amount of a forward that moved nothing to the waiting amount; it is retried after a
 * growing pause. The amount of a forward that its caller cancelled stays in the wallet.
 */
export async function returnForward(
  tx: Queryable,
  row: TransactionRow,
  reason: string,
): Promise<void> {
  if (!isForward(row)) return
  if (row.plan.cancel) return lookAgain(tx, row)
  await tx.query(
    `with back as (
       update forwards set returned = true where workspace_id = $6 and transaction_id = $1
         and not returned returning rule_id, amount)
     update forward_rules r set waiting = r.waiting + b.amount, failures = r.failures + 1,
       last_error = $2, updated_at = $5,
       next_run_at = case when r.state = 'ACTIVE'
         then $5::timestamptz + least($4::double precision,
           $3 * power(2, least(r.failures, 20))) * interval '1 second'
         else r.next_run_at end
     from back b where r.workspace_id = $6 and r.id = b.rule_id`,
    [
      row.id,
      `the last forward failed: ${reason}`.slice(0, 500),
      RETRY_MIN_S,
      RETRY_MAX_S,
      tx.now(),
      row.workspace_id,
    ],
  )
}

/**
 * Takes the amount of a returned forward from the waiting amount again. A part that another forward has
 * already taken is subtracted from the next incoming amount.
 */
export async function takeForwardAgain(tx: Queryable, row: TransactionRow): Promise<void> {
  if (!isForward(row)) return
  await tx.query(
    `with taken as (
       update forwards set returned = false where workspace_id = $3 and transaction_id = $1
         and returned returning rule_id, amount)
     update forward_rules r set waiting = greatest(0, r.waiting - t.amount),
       ahead = r.ahead + greatest(0, t.amount - r.waiting), updated_at = $2
     from taken t where r.workspace_id = $3 and r.id = t.rule_id`,
    [row.id, tx.now(), row.workspace_id],
  )
}

export async function forwardDone(tx: Queryable, row: TransactionRow): Promise<void> {
  if (isForward(row)) await lookAgain(tx, row)
}

/** Makes the rule due, because the obstacle to further forwards is gone. */
async function lookAgain(tx: Queryable, row: TransactionRow): Promise<void> {
  await tx.query(
    `update forward_rules set failures = 0, next_run_at = case when state = 'ACTIVE' then $2
      else next_run_at end
     where workspace_id = $3 and id = $1 and (failures > 0 or last_error is not null)`,
    [row.plan.rule_id, tx.now(), row.workspace_id],
  )
}
