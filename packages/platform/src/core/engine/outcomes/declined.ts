import type { Logger } from 'pino'
import type { Database } from '../../database/pool.ts'
import type { Attempt } from '../attempts.ts'
import { advance } from '../lease.ts'
import type { Networks } from '../networks.ts'
import { refuse } from '../replacement.ts'
import type { TransactionRow } from '../transaction.ts'

interface Services {
  database: Database
  networks: Networks
  log: Logger
}

/** Number of refused broadcasts after which a replacement is declined: half a minute. */
const REFUSED_MAX = 10

/**
 * Ends a replacement that every endpoint refuses while an earlier transaction of the transfer waits in
 * their mempool, as on networks whose nodes do not relay replacements. The transfer continues with the
 * earlier transaction and its hash. The replacement is signed, so it may still be mined; both are
 * watched, and only one of them can be.
 * @param newest the refused replacement; its transfer's other attempts follow in `attempts`
 * @returns whether it was ended
 */
export async function endDeclined(
  services: Services,
  row: TransactionRow,
  [newest, ...others]: readonly [Attempt, ...Attempt[]],
  reason: string,
): Promise<boolean> {
  if (newest.replacement_id === null || row.attempts < REFUSED_MAX) return false
  const client = services.networks.client(row.network)
  const kept = await firstOf(
    others,
    async ({ hash }) => (await client.status(hash)).state === 'mempool',
  )
  if (!kept) return false
  services.log.warn(
    { transaction: row.id, hash: kept.hash, declined: newest.hash, reason },
    'the nodes refuse a replacement; the transfer continues with the earlier transaction',
  )
  await services.database.transaction(async (tx) => {
    await tx.query(
      'update chain_transactions set declined = $3 where workspace_id = $1 and id = $2',
      [row.workspace_id, newest.id, reason.slice(0, 500)],
    )
    await refuse(
      tx,
      { id: newest.replacement_id as string, workspace_id: row.workspace_id },
      `the nodes of the network refuse it: ${reason}`.slice(0, 500),
    )
    await advance(tx, row, {
      state: 'CONFIRMING',
      hash: kept.hash,
      last_error: null,
      run_in_ms: 1000,
      plan: { cancel: null },
    })
  })
  return true
}

async function firstOf<T>(
  all: readonly T[],
  holds: (each: T) => Promise<boolean>,
): Promise<T | undefined> {
  for (const each of all) if (await holds(each)) return each
  return undefined
}
