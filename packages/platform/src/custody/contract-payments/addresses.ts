import type { Network } from '@custody/chains'
import type { Queryable } from '../../core/database/pool.ts'
import type { OwnAddress } from '../deposits/record.ts'

/** Time in milliseconds for which an address is read first after a deposit. */
const PAID_MS = 7 * 86_400_000

const COLUMNS = 'address, workspace_id, sub_account_id, path_index, kind'

/** Returns the next addresses of a network, or of one workspace there, in their order. */
export const addressesAfter = (
  database: Queryable,
  { code }: Network,
  { after, workspace = null, most }: { after: string; workspace?: string | null; most: number },
): Promise<OwnAddress[]> =>
  database.query<OwnAddress>(
    `select ${COLUMNS} from chain_addresses
     where network = $1 and address > $2 and ($3::uuid is null or workspace_id = $3)
     order by address limit $4`,
    [code, after, workspace, most],
  )

/**
 * Returns the addresses to read first: those of `awaited`, then gas tanks and omnibus addresses, then
 * those to which a deposit came in the last seven days, the newest first.
 * @param o.awaited addresses at which a payment is expected
 * @param o.height the newest block that was read
 */
export async function addressesFirst(
  database: Queryable,
  { code, block_ms: blockMs }: Network,
  { awaited, height, most }: { awaited: readonly string[]; height: number; most: number },
): Promise<OwnAddress[]> {
  const since = height - Math.ceil(PAID_MS / (blockMs ?? 1000))
  return database.query<OwnAddress>(
    `with first as (
       select address, 1 rank, 0::bigint newest from unnest($2::text[]) address
       union all (select address, 2, 0 from chain_addresses
         where network = $1 and kind in ('omnibus', 'tank') order by address limit $4)
       union all (select address, 3, max(block_height) from deposits
         where network = $1 and block_height > $3 group by address
         order by max(block_height) desc limit $4)
     ), ranked as (select address, min(rank) rank, max(newest) newest from first group by address)
     select c.address, c.workspace_id, c.sub_account_id, c.path_index, c.kind
     from ranked join chain_addresses c on c.network = $1 and c.address = ranked.address
     order by ranked.rank, ranked.newest desc, c.address limit $4`,
    [code, awaited, since, most],
  )
}
