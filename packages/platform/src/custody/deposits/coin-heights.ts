import { traitsOf, type ChainBlock, type Network } from '@custody/chains'
import type { Queryable } from '../../core/database/pool.ts'

/**
 * Returns the block height of each transaction in these blocks that created coins of ours, if the
 * coins were in no block before. Empty if the chain has no coins.
 */
export async function placedCoins(
  tx: Queryable,
  network: Network,
  blocks: readonly ChainBlock[],
): Promise<Map<string, number>> {
  if (traitsOf(network).deposits !== 'spendable') return new Map()
  const waiting = await tx.query<{ txid: string }>(
    'select distinct txid from utxos where network = $1 and block_height is null',
    [network.code],
  )
  if (waiting.length === 0) return new Map()
  const heights = new Map(
    blocks.flatMap(({ height, txids }) => txids.map((txid) => [txid, height])),
  )
  return new Map(
    waiting.flatMap(({ txid }) => {
      const height = heights.get(txid)
      return height === undefined ? [] : [[txid, height]]
    }),
  )
}

/** Stores the block heights of our coins. */
export async function placeCoins(
  tx: Queryable,
  network: Network,
  coins: ReadonlyMap<string, number>,
): Promise<void> {
  if (coins.size === 0) return
  await tx.query(
    `update utxos u set block_height = b.height from unnest($2::text[], $3::bigint[]) b (txid,
      height)
     where u.network = $1 and u.txid = b.txid and u.block_height is distinct from b.height`,
    [network.code, [...coins.keys()], [...coins.values()]],
  )
}
