import { countedOn, type OwnPoints, type CountedTransaction } from '../../engine/counted.ts'
import type { Tron } from './context.ts'

/** Sun in a million TRX, for which the chain reports the points; 1 TRX is 10^6 sun. */
const SCALE = 10n ** 12n

/**
 * Returns the points of the account's own stake on which nothing else counts. Energy delegated by
 * others is not included, because they may take it back.
 */
export async function ownPoints(
  { database, client }: Tron,
  row: CountedTransaction,
): Promise<OwnPoints> {
  // This is read before the chain is queried, because transactions that end in between have already
  // used their points.
  const counted = await countedOn(database, row)
  const account = await client.account(row.source_id as string)
  if (!account || account.staked.ENERGY + account.staked.BANDWIDTH === 0n)
    return { energy: 0n, bandwidth: 0n, mark: counted.mark }
  const resources = await client.resources(row.source_id as string)
  const left = (staked: bigint, per: bigint, used: bigint, taken: bigint) => {
    const rest = (staked * per) / SCALE - used - taken
    return rest > 0n ? rest : 0n
  }
  return {
    energy: left(
      account.staked.ENERGY,
      resources.energyPerMillionTrx,
      resources.energyUsed,
      counted.energy,
    ),
    bandwidth: left(
      account.staked.BANDWIDTH,
      resources.bandwidthPerMillionTrx,
      resources.bandwidthUsed,
      counted.bandwidth,
    ),
    mark: counted.mark,
  }
}
