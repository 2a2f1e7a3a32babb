import {
  byMode,
  ChainError,
  parseAmount,
  type NetworkMode,
  type Registry,
} from '@custody/chains/basics'

/** Number of decimals of `cost_multiple`, which is stored in thousandths. */
export const MULTIPLE_DECIMALS = 3

/** Conditions for sweeping a deposit address; null: the next wider scope decides. */
export interface SweepRule {
  cost_multiple: bigint | null
  min_amount: bigint | null
}
/** Rules by scope: `*`, `network:CODE`, `asset:NAME`. An amount can only be set for an asset. */
export type SweepRules = Readonly<Record<string, SweepRule>>

/**
 * Default minimum ratio of a deposit's value to the cost of its sweep. On mainnet a deposit that is
 * worth less than twice the cost is not swept.
 */
const DEFAULT_MULTIPLE = { local: '0', regtest: '2', mainnet: '2' } as const

/**
 * Parses the operator's decimal to an integer.
 * @throws Error that names it
 */
export function readDecimal(value: unknown, decimals: number, name: string): bigint {
  try {
    return parseAmount(String(value), decimals)
  } catch (error) {
    throw new Error(`${name}: ${error instanceof ChainError ? error.message : String(error)}`, {
      cause: error,
    })
  }
}

/**
 * Returns `network:CODE` or `asset:NAME`.
 * @throws Error that names an unknown network or asset
 */
export function scopeNamed(registry: Registry, of: { network?: string; asset?: string }): string {
  if (of.network !== undefined && of.asset !== undefined)
    throw new Error('set either a network or an asset, not both')
  if (of.network !== undefined && !registry.network(of.network))
    throw new Error(`network ${of.network} does not exist`)
  if (of.asset !== undefined && !registry.asset(of.asset))
    throw new Error(`asset ${of.asset} does not exist`)
  return of.network !== undefined
    ? `network:${of.network}`
    : of.asset !== undefined
      ? `asset:${of.asset}`
      : '*'
}

/** Returns the installation's rules: the defaults, and the configuration of networks and assets. */
export function sweepRules(
  mode: NetworkMode,
  everywhere: bigint | undefined,
  configured: SweepRules,
): SweepRules {
  return {
    '*': {
      cost_multiple: everywhere ?? parseAmount(byMode(mode, DEFAULT_MULTIPLE), MULTIPLE_DECIMALS),
      min_amount: null,
    },
    ...configured,
  }
}
