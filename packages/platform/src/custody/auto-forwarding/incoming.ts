import type { Queryable } from '../../core/database/pool.ts'
import type { TransactionRow } from '../../core/engine/transaction.ts'

const generationOf = (row: TransactionRow): number => Number(row.plan.generation ?? '0')

/**
 * Adds a credited deposit to the waiting amount of its wallet's rule, if it arrived after the rule
 * was created. Called before the crediting locks accounts, because rules are always locked first.
 * An amount that was forwarded in advance, before an older database was restored, is subtracted.
 */
export async function noteIncoming(tx: Queryable, row: TransactionRow, now: Date): Promise<void> {
  if (row.kind !== 'DEPOSIT' || row.wallet_id === null) return
  await tx.query(
    `with counted as (
       insert into forward_deposits (workspace_id, rule_id, transaction_id, generation, amount)
       select workspace_id, id, $2, $3, $4 from forward_rules
       where workspace_id = $7 and wallet_id = $1 and state in ('PENDING', 'ACTIVE', 'PAUSED', 'APPROVAL')
         and created_at <= $5 and expires_at > $6
       on conflict do nothing returning rule_id, amount
     )
     update forward_rules r set waiting = r.waiting + greatest(0, c.amount - r.ahead),
       ahead = greatest(0, r.ahead - c.amount),
       next_run_at = $6, updated_at = $6 from counted c where r.workspace_id = $7
         and r.id = c.rule_id`,
    [row.wallet_id, row.id, generationOf(row), row.amount, row.created_at, now, row.workspace_id],
  )
}

/**
 * Subtracts a deposit that a reorganisation reverted from the waiting amount. A part that was
 * already forwarded cannot be subtracted any more.
 */
export async function takeBackIncoming(tx: Queryable, row: TransactionRow): Promise<void> {
  await tx.query(
    `with gone as (
       update forward_deposits set taken_back = true
       where workspace_id = $4 and transaction_id = $1 and generation = $2 and not taken_back
       returning rule_id, amount
     )
     update forward_rules r set waiting = greatest(0, r.waiting - g.amount), updated_at = $3
       from gone g
     where r.workspace_id = $4 and r.id = g.rule_id`,
    [row.id, generationOf(row), tx.now(), row.workspace_id],
  )
}
