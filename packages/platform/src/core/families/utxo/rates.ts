import { traitsOf, type FeeReading, type Network, type UtxoClient } from '@custody/chains'
import { DEFAULT_LEVEL, type FeeLevel } from '../../engine/chain.ts'
import { feeRateInteger } from '../../engine/fee-rate.ts'
import type { CoinChain } from '../coins/chain.ts'

/** Fee rate in satoshi per 1000 vbytes if no estimate was ever read. */
const FALLBACK_RATE = 20_000n

/** Returns the fee rate in satoshi per 1000 vbytes: the caller's, otherwise the level's. */
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
 * Returns the fee rate used while the chain cannot be queried: the default, or twice the network's
 * minimum rate if that is higher.
 */
export function fallbackRate(network: Network): bigint {
  const twice = traitsOf(network).leastRate(network) * 2n
  return twice > FALLBACK_RATE ? twice : FALLBACK_RATE
}

/** Returns a warning if the rates are not the node's current estimates, otherwise null. */
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
