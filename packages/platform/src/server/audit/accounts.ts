import { formatAmount, type Registry } from '@custody/chains'
import { expectedBalances } from '../../custody/deposits/expected.ts'
import type { Chain } from '../../core/engine/chain.ts'
import type { Database } from '../../core/database/pool.ts'
import type { Networks } from '../../core/engine/networks.ts'
import { accountBalances, type Scope } from './balances.ts'
import { kindOf, type Difference, type NotCounted } from './report.ts'
import { stakingDifferences } from './staking.ts'

interface Services {
  database: Database
  registry: Registry
  networks: Networks
}

/**
 * Compares the balance of each of our addresses on an account-based network with the ledger.
 * @param only restricts the comparison to the addresses of one workspace and one asset
 */
export async function accountDifferences(
  services: Services,
  chain: Chain,
  differences: Difference[],
  only: Scope | null = null,
): Promise<{ addresses: number; coins: number; notCounted: NotCounted[] }> {
  const { network } = chain
  const expected = await expectedBalances(services.database, services.registry, network)
  const addresses = new Set<string>()
  const notCounted: NotCounted[] = []
  for await (const { row, asset, amount, elsewhere } of accountBalances(services, chain, only)) {
    addresses.add(row.address)
    notCounted.push(
      ...elsewhere.map(({ place, amount: more, reason }) => ({
        network: network.code,
        workspace: row.workspace,
        address: row.address,
        place,
        asset: asset.asset_name,
        amount: formatAmount(more, asset.decimals),
        reason,
      })),
    )
    const books = expected.get(`${row.address} ${asset.asset_name}`) ?? 0n
    if (books !== amount) {
      differences.push({
        kind: kindOf(books, amount),
        network: network.code,
        workspace: row.workspace,
        subject: `${row.kind} ${row.address}`,
        asset: asset.asset_name,
        ledger: formatAmount(books, asset.decimals),
        chain: formatAmount(amount, asset.decimals),
      })
    }
  }
  if (chain.stakes && only === null) await stakingDifferences(services, network, differences)
  return { addresses: addresses.size, coins: 0, notCounted }
}
