import { RpcUnavailable, type ChainTip } from '@custody/chains'
import type { Chain } from '../../core/engine/chain.ts'

/**
 * Time in milliseconds after which the scan fails, and is reported, if an endpoint reports a head
 * whose block it does not return.
 */
const MISSING_BLOCK_MS = 60_000

/** A block that the endpoint does not return below its head, and since when. */
export interface MissingBlock {
  height: number
  since: number
}

/** Returns the missing block at a height; if it was missing before, with the time of that pass. */
export const missingAt = (
  height: number,
  previous: MissingBlock | null,
  now: number,
): MissingBlock => (previous?.height === height ? previous : { height, since: now })

/**
 * Excludes the endpoint for a while if the block has been missing for too long.
 * @throws RpcUnavailable
 */
export function checkMissing(
  { network, client, agreement }: Chain,
  tip: ChainTip,
  { height, since }: MissingBlock,
  now: number,
): void {
  if (now - since < MISSING_BLOCK_MS) return
  const reason = `the endpoint reports ${tip.height} as its newest block, but does not return block ${height}`
  agreement?.distrust(client, reason)
  throw new RpcUnavailable(`${network.code}: ${reason}`)
}
