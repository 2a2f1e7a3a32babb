import { hasLocalChains } from '@custody/chains/mode'
import { formatAmount, traitsOf, type Asset, type Registry } from '@custody/chains'
import type { Database } from '../../core/database/pool.ts'
import { exact } from '../../core/decimals.ts'
import { usualSweepCost } from './dust.ts'

/** Returns the interval in seconds at which balances are compared; local chains are compared often. */
export const comparedEveryS = ({ mode }: Pick<Registry, 'mode'>): number =>
  hasLocalChains(mode) ? 5 : 60

/** How amounts that contracts pay are credited; see {@link assetShape}. */
interface ContractPayments {
  contract_payments: 'credited' | 'watched' | 'by hand'
  watched_within_s: number | null
  min_contract_payment: ReturnType<typeof exact> | null
}

const CREDITED = {
  contract_payments: 'credited',
  watched_within_s: null,
  min_contract_payment: null,
} as const

/** Returns a function that returns how amounts of an asset are credited that contracts pay. */
export async function contractPayments({
  database,
  registry,
}: {
  database: Database
  registry: Registry
}): Promise<(asset: Asset) => ContractPayments> {
  const rows = await database.query<{
    network: string
    round_began_at: Date | null
    round_s: number | null
    traced: boolean
  }>('select network, round_began_at, round_s, traced from contract_watches')
  const watches = new Map(rows.map((row) => [row.network, row]))
  return (asset) => {
    const network = registry.networkOf(asset)
    const { contractPayments: shown } = traitsOf(network)
    if (asset.type === 'token' || shown === 'listed') return CREDITED
    const { round_s: round = null, round_began_at: began, traced } = watches.get(network.code) ?? {}
    const min_contract_payment = exact(
      formatAmount(usualSweepCost(registry, asset), asset.decimals),
    )
    if (shown === 'claimed' && traced) return { ...CREDITED, min_contract_payment }
    if (round === null || !began) return { ...CREDITED, contract_payments: 'by hand' }
    const lasting = Math.ceil((database.now().getTime() - began.getTime()) / 1000)
    return {
      contract_payments: 'watched',
      watched_within_s: Math.max(round, lasting, 0) + comparedEveryS(registry),
      min_contract_payment,
    }
  }
}
