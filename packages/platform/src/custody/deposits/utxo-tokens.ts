import type { ChainBlock, Network } from '@custody/chains'
import type { Queryable } from '../../core/database/pool.ts'

export const hasTokens = ({ transfers }: ChainBlock): boolean =>
  transfers.some(({ riders }) => riders)

/**
 * Stores the native tokens and reference scripts (Cardano) of our coins in a block, for deposits
 * and change alike.
 */
export async function recordUtxoTokens(
  tx: Queryable,
  network: Network,
  block: ChainBlock,
): Promise<void> {
  const match = block.transfers.flatMap(({ txid, position, riders }) =>
    riders ? [{ txid, vout: position, riders }] : [],
  )
  if (match.length === 0) return
  await tx.query(
    `update utxos u set riders = r.riders from jsonb_to_recordset($2::jsonb) as r(txid text,
      vout integer, riders jsonb)
      where u.network = $1 and u.txid = r.txid and u.vout = r.vout`,
    [network.code, JSON.stringify(match)],
  )
}
