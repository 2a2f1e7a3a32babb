import { parseAmount, traitsOf, type LevelRates, type Network } from '@custody/chains'
import { DEFAULT_LEVEL, type FeeLevel } from './chain.ts'

/** A caller's fee rate in the chain's own integer. @throws ChainError on surplus decimals */
export function feeRateInteger(network: Network, text: string): bigint {
  return parseAmount(text, traitsOf(network).feeRateDecimals)
}

/** The rate of the level that a caller chose, or of the usual one. `level` as a row keeps it. */
function levelRate(rates: LevelRates, level: string | null): bigint {
  return rates[(level as FeeLevel | null) ?? DEFAULT_LEVEL]
}

/** The rate that is asked for: the caller's own, else that of the level. */
export async function chosenRate(
  { network, rates }: { network: Network; rates(): Promise<LevelRates> },
  feeRate: string | null,
  level: string | null,
): Promise<bigint> {
  return feeRate === null ? levelRate(await rates(), level) : feeRateInteger(network, feeRate)
}
