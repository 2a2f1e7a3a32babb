import { traitsOf, type FeeReading, type Network, type UtxoClient } from '@custody/chains'
import { DEFAULT_LEVEL, type FeeLevel } from '../../engine/chain.ts'
import { feeRateInteger } from '../../engine/fee-rate.ts'
import type { CoinChain } from '../coins/chain.ts'

/** sat/kvB where no estimate has ever been read. */
const FALLBACK_RATE = 20_000n

/** Satoshi per 1000 vbytes: the caller's, else the level's. */
export async function rateOf(
  { network, rates }: CoinChain<UtxoClient>,
  feeRate: string | null,
  level: FeeLevel | null,
): Promise<bigint> {
  return feeRate === null
    ? (await rates())[level ?? DEFAULT_LEVEL]
    : feeRateInteger(network, feeRate)
}

/**
 * What stands in while the chain cannot be asked; where a network's floor is higher, twice its
 * floor.
 */
export function fallbackRate(network: Network): bigint {
  const twice = traitsOf(network).leastRate(network) * 2n
  return twice > FALLBACK_RATE ? twice : FALLBACK_RATE
}

/** What a caller should know of rates that are not the node's estimates of now; null: nothing. */
export function warningOf(reading: FeeReading | null): string | null {
  switch (reading?.basis) {
    case 'last_estimate':
      return `the node has no estimate of fee rates now: these were estimated at ${new Date(reading.readAt).toISOString()}`
    case 'configured':
      return 'the node has no estimate of fee rates now: these are the configured floors'
    default:
      return null
  }
}
