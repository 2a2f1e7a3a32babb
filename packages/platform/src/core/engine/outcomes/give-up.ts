import type { Database } from '../../database/pool.ts'
import type { Logger } from 'pino'
import { advance } from '../lease.ts'
import { isConsolidation, type TransactionRow } from '../transaction.ts'
import { refuse, type Replacement } from '../replacement.ts'
import { freeChange, liveAttempts } from '../attempts.ts'

interface Services {
  database: Database
  log: Logger
}

/**
 * Gives up a replacement that cannot be made. The pending transaction continues to wait for a
 * block.
 */
export async function giveUp(
  services: Services,
  row: TransactionRow,
  replacement: Replacement,
  reason: string,
): Promise<void> {
  services.log.warn(
    { transaction: row.id, replacement: replacement.kind, reason },
    'the replacement of a transaction was abandoned; the previous signed transaction stays valid',
  )
  await services.database.transaction(async (tx) => {
    await tx.query(
      `update utxos set spent_by = null where workspace_id = $2
        and spent_by in (select id from chain_transactions
      where workspace_id = $2 and replacement_id = $1 and state = 'BUILT')`,
      [replacement.id, row.workspace_id],
    )
    await tx.query(
      `update chain_transactions set state = 'VOID' where workspace_id = $2 and replacement_id = $1
        and state = 'BUILT'`,
      [replacement.id, row.workspace_id],
    )
    const live = await liveAttempts(tx, row)
    if (live.length === 1 && !isConsolidation(row)) await freeChange(tx, row, live[0]?.hash)
    await refuse(tx, replacement, reason)
    await advance(tx, row, {
      state: 'BROADCASTING',
      last_error: `the replacement was abandoned: ${reason}`.slice(0, 500),
      run_in_ms: 0,
      plan: { cancel: null },
    })
  })
}
