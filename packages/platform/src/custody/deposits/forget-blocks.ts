import type { Network } from '@custody/chains'
import type { Queryable } from '../../core/database/pool.ts'

/**
 * Minimum number of blocks stored per network. A reorganisation deeper than the stored blocks stops
 * the scanner with an error.
 */
const BLOCKS_KEPT = 2000
/**
 * Maximum number of blocks stored per network. Blocks that are not final are stored up to this
 * number; at 200 ms per block, they cover five and a half hours.
 */
const BLOCKS_KEPT_MAX = 100_000
/** Old blocks are deleted whenever a height divisible by this number was passed. */
export const BLOCKS_FORGOTTEN = 100

/**
 * Returns the height below which blocks are deleted: final ones beyond {@link BLOCKS_KEPT}, and any
 * beyond {@link BLOCKS_KEPT_MAX}.
 */
export const forgottenBelow = (height: number, final: number): number =>
  Math.max(Math.min(height - BLOCKS_KEPT, final), height - BLOCKS_KEPT_MAX)

/**
 * Deletes blocks below a height, if the scan still has its token. This is a separate statement,
 * because as part of the statement that writes the position it would be planned each time, which
 * takes longer than the deletion.
 */
export async function forgetBlocks(
  database: Queryable,
  network: Network,
  { token }: { token: string },
  below: number,
): Promise<void> {
  await database.query(
    `delete from blocks where network = $1 and height < $2
       and exists (select 1 from network_scans where network = $1 and lease_token = $3)`,
    [network.code, below, token],
  )
}
