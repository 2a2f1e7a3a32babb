import type { ChainBlock, Network } from '@custody/chains'
import type { Queryable } from '../../../core/database/pool.ts'

/** Notes that an endpoint of a network reports what contracts pay, if these blocks show it. */
export async function noteClaims(
  database: Queryable,
  { code }: Network,
  blocks: readonly ChainBlock[],
): Promise<void> {
  if (!blocks.some(({ transfers }) => transfers.some(({ frame }) => frame))) return
  await database.query(
    `insert into contract_watches as w (network, traced) values ($1, true)
     on conflict (network) do update set traced = true where not w.traced`,
    [code],
  )
}
