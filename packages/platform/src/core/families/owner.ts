import { TANK_SUB_ACCOUNT } from '@custody/chains'
import type { Queryable } from '../database/pool.ts'
import type { Owner } from '../engine/chain.ts'
import type { TransactionRow } from '../engine/transaction.ts'

/**
 * Returns the owner of the coins that a transaction moves: a sub-account, or the workspace's gas
 * tank.
 */
export async function ownerOf(database: Queryable, row: TransactionRow): Promise<Owner> {
  const [workspaceId, subAccountId] = [row.workspace_id, row.sub_account_id]
  if (subAccountId === null) return { workspaceId, subAccountId, subAccountIndex: TANK_SUB_ACCOUNT }
  const match = await database.one<{ path_index: number }>(
    'select path_index from sub_accounts where workspace_id = $2 and id = $1',
    [subAccountId, workspaceId],
  )
  if (!match) throw new Error(`sub-account ${subAccountId} does not exist`)
  return { workspaceId, subAccountId, subAccountIndex: match.path_index }
}
