import type { Registry } from '@custody/chains'
import type { Queryable } from '../database/pool.ts'

interface Services {
  database: Queryable
  registry: Registry
}

interface Row {
  id: string
  network: string
  sub_account: number
  path_index: number
}

/** Sub-accounts of a workspace begin at 1; its gas tanks have the index 0. */
const PLACE = `coalesce(s.path_index, 0) sub_account, c.path_index`
const OWNER = `left join sub_accounts s on s.workspace_id = c.workspace_id and s.id = c.sub_account_id`

function pathOf({ registry }: Services, { network, sub_account, path_index }: Row): number[] {
  const known = registry.network(network)
  if (!known) throw new Error(`the network ${network} is not in the registry`)
  return [sub_account, known.chain_index, path_index]
}

/**
 * Returns the derivation path of an address of a workspace, by which the signer nodes verify that it
 * is the workspace's own; undefined if it is not.
 * @param workspace ID of the workspace
 */
export async function ownPath(
  services: Services,
  workspace: string,
  network: string,
  address: string,
): Promise<number[] | undefined> {
  const row = await services.database.one<Row>(
    `select c.network, ${PLACE} from chain_addresses c ${OWNER}
     where c.workspace_id = $1 and c.network = $2 and c.address = $3`,
    [workspace, network, address],
  )
  return row && pathOf(services, row)
}

/**
 * Returns the derivation paths of the destinations of requested transactions that are addresses of
 * their own workspace, by transaction. A destination with a tag has none, because the signer nodes
 * cannot tell tags of a workspace from others.
 * @param workspace ID of the workspace
 * @param ids of transactions; of a fuel transaction, those that it is for are included
 */
export async function ownPathsOf(
  services: Services,
  workspace: string,
  ids: readonly string[],
): Promise<Map<string, number[]>> {
  const rows = await services.database.query<Row>(
    `select t.id, c.network, ${PLACE} from transactions t
     join chain_addresses c on c.workspace_id = t.workspace_id and c.network = t.network
       and c.address = t.destination_id
     ${OWNER}
     where t.workspace_id = $1 and t.kind in ('WITHDRAWAL', 'STAKE') and t.address_tag is null
       and t.id in (select unnest($2::uuid[]) union
         select transaction_id from fuel_parts where workspace_id = $1 and fuel_id = any($2))`,
    [workspace, ids],
  )
  return new Map(rows.map((row) => [row.id, pathOf(services, row)]))
}
