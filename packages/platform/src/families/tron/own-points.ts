import { countedOn, type OwnPoints, type Place } from '../../engine/counted.ts'
import type { Tron } from './context.ts'

/** Points for 1 TRX of 10^6 sun come times 10^6. */
const SCALE = 10n ** 12n

/**
 * Points of the account's own stake that nothing else counts on. What others lend to it they may
 * take back: it is not counted.
 */
export async function ownPoints({ database, client }: Tron, row: Place): Promise<OwnPoints> {
  // Before the chain is asked: what ends in between has used its points already.
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
