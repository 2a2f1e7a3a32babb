import { parseAmount, traitsOf, type LevelRates, type Network } from '@custody/chains'
import { DEFAULT_LEVEL, type FeeLevel } from './chain.ts'

/**
 * Converts a caller's fee rate to the chain's integer unit.
 * @throws ChainError if it has too many decimals
 */
export function feeRateInteger(network: Network, text: string): bigint {
  return parseAmount(text, traitsOf(network).feeRateDecimals)
}

/** Returns the rate of the chosen level, or of the default level if `level` is null. */
function levelRate(rates: LevelRates, level: string | null): bigint {
  return rates[(level as FeeLevel | null) ?? DEFAULT_LEVEL]
}

/** Returns the caller's own fee rate if there is one, otherwise the rate of the level. */
export async function chosenRate(
  { network, rates }: { network: Network; rates(): Promise<LevelRates> },
  feeRate: string | null,
  level: string | null,
): Promise<bigint> {
  return feeRate === null ? levelRate(await rates(), level) : feeRateInteger(network, feeRate)
}
