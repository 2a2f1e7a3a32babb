import type { Database } from '../../core/database/pool.ts'
import type { TransactionRow } from '../../core/engine/transaction.ts'
import { actionOf, isStaking, stakingOf, type StakingStep } from './steps.ts'

interface Services {
  database: Database
}

/** Returns the current call of a staking row; null for other kinds, and once all calls are done. */
export const stepUnderWay = (row: TransactionRow): StakingStep | null => {
  if (!isStaking(row)) return null
  const staking = stakingOf(row)
  return staking.at < staking.steps.length ? actionOf(staking).kind : null
}

/**
 * Advances an adopted staking row to its next call, which was signed earlier.
 * @returns the hash of that call; null if none is recorded
 */
export async function nextRecorded(
  services: Services,
  row: TransactionRow,
): Promise<string | null> {
  const match = await services.database.one<{ hash: string }>(
    `update chain_transactions set state = 'SIGNED'
     where workspace_id = $3 and transaction_id = $1 and state = 'VOID' and hash is not null
       and step = $2 returning hash`,
    [row.id, stepUnderWay(row), row.workspace_id],
  )
  return match?.hash ?? null
}
