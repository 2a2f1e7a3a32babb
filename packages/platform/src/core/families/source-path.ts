import { OMNIBUS_INDEX, pathOf, TANK_SUB_ACCOUNT, type Network } from '@custody/chains'
import type { Queryable } from '../database/pool.ts'
import type { TransactionRow } from '../engine/transaction.ts'

/** Returns the derivation path of the address that a transaction spends from. */
export async function sourcePath(
  database: Queryable,
  row: TransactionRow,
  network: Network,
): Promise<number[]> {
  if (row.source_type === 'GAS_TANK') return pathOf(network, TANK_SUB_ACCOUNT, OMNIBUS_INDEX)
  const match = await database.one<{ path_index: number; sub: number }>(
    `select c.path_index, s.path_index sub from chain_addresses c
      join sub_accounts s on s.workspace_id = c.workspace_id
      and s.id = c.sub_account_id
     where c.network = $1 and c.address = $2 and c.workspace_id = $3`,
    [network.code, row.source_id, row.workspace_id],
  )
  if (!match) throw new Error(`source ${row.source_id} is not an address of this platform`)
  return pathOf(network, match.sub, match.path_index)
}
