import { ChainError, loadRegistry, parseAmount, type NetworkMode, type Registry } from '@custody/chains'
import { MULTIPLE_DECIMALS, type SweepRule, type SweepRules } from './sweep-policy.ts'

/** On mainnet a deposit that is worth less than twice the cost of its sweep stays where it is. */
const DEFAULT_MULTIPLE = { local: '0', mainnet: '2' } as const

/** `sweep` of custody.config.json. */
export interface SweepConfig { networks?: Record<string, { cost_multiple?: unknown }>; assets?: Record<string, { cost_multiple?: unknown; min_amount?: unknown }> }

/** A decimal of the operator's, as an integer. @throws Error that names it */
export function readDecimal(value: unknown, decimals: number, name: string): bigint {
  try {
    return parseAmount(String(value), decimals)
  } catch (error) {
    throw new Error(`${name}: ${error instanceof ChainError ? error.message : String(error)}`, { cause: error })
  }
}

/** `network:CODE` or `asset:NAME`. @throws Error that names what is unknown */
export function scopeNamed(registry: Registry, of: { network?: string; asset?: string }): string {
  if (of.network !== undefined && of.asset !== undefined) throw new Error('give either a network or an asset, not both')
  if (of.network !== undefined && !registry.network(of.network)) throw new Error(`there is no network ${of.network}`)
  if (of.asset !== undefined && !registry.asset(of.asset)) throw new Error(`there is no asset ${of.asset}`)
  return of.network !== undefined ? `network:${of.network}` : of.asset !== undefined ? `asset:${of.asset}` : '*'
}

/** The installation's rules: CUSTODY_SWEEP_COST_MULTIPLE for everything, and the configuration file for networks and assets. */
export function readSweepRules(mode: NetworkMode, config: SweepConfig | undefined, file: string): SweepRules {
  const registry = loadRegistry(mode)
  const name = 'CUSTODY_SWEEP_COST_MULTIPLE'
  const rules: Record<string, SweepRule> = { '*': { cost_multiple: readDecimal(process.env[name] || DEFAULT_MULTIPLE[mode], MULTIPLE_DECIMALS, name), min_amount: null } }
  for (const kind of ['networks', 'assets'] as const) {
    for (const [of, rule] of Object.entries(config?.[kind] ?? {}) as [string, { cost_multiple?: unknown; min_amount?: unknown }][]) {
      const at = `${file}: sweep.${kind}.${of}`
      let scope: string
      try {
        scope = scopeNamed(registry, kind === 'networks' ? { network: of } : { asset: of })
      } catch (error) {
        throw new Error(`${at}: ${error instanceof Error ? error.message : String(error)}`, { cause: error })
      }
      if (kind === 'networks' && rule.min_amount !== undefined) throw new Error(`${at}.min_amount: an amount is set for an asset`)
      rules[scope] = {
        cost_multiple: rule.cost_multiple === undefined ? null : readDecimal(rule.cost_multiple, MULTIPLE_DECIMALS, `${at}.cost_multiple`),
        min_amount: rule.min_amount === undefined ? null : readDecimal(rule.min_amount, registry.asset(of)?.decimals ?? 0, `${at}.min_amount`),
      }
    }
  }
  return rules
}
