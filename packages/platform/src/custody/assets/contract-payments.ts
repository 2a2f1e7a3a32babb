import { hasLocalChains } from '@custody/chains/mode'
import { formatAmount, traitsOf, type Asset, type Registry } from '@custody/chains'
import type { Database } from '../../core/database/pool.ts'
import { exact } from '../../core/decimals.ts'

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
    round_began_at: Date
    round_s: number | null
    minimum: string | null
  }>('select network, round_began_at, round_s, minimum::text from contract_watches')
  const watches = new Map(rows.map((row) => [row.network, row]))
  return ({ type, network: code, decimals }) => {
    const network = registry.network(code)
    if (type === 'token' || !network || traitsOf(network).contractPayments === 'listed')
      return CREDITED
    const { round_s: round, round_began_at: began, minimum } = watches.get(code) ?? {}
    if (
      round === undefined ||
      round === null ||
      !began ||
      minimum === undefined ||
      minimum === null
    )
      return { ...CREDITED, contract_payments: 'by hand' }
    const lasting = Math.ceil((database.now().getTime() - began.getTime()) / 1000)
    return {
      contract_payments: 'watched',
      watched_within_s: Math.max(round, lasting, 0) + comparedEveryS(registry),
      min_contract_payment: exact(formatAmount(BigInt(minimum), decimals)),
    }
  }
}
