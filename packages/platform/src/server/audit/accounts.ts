import { formatAmount, type Registry } from '@custody/chains'
import { isDust } from '../../custody/assets/dust.ts'
import { expectedBalances } from '../../custody/deposits/expected.ts'
import type { Chain } from '../../core/engine/chain.ts'
import type { Database } from '../../core/database/pool.ts'
import type { Networks } from '../../core/engine/networks.ts'
import { accountBalances, type Scope } from './balances.ts'
import { addDust, type Dust } from './dust.ts'
import { kindOf, type Difference, type NotCounted } from './report.ts'
import { stakingDifferences } from './staking.ts'

interface Services {
  database: Database
  registry: Registry
  networks: Networks
}

/**
 * What is compared on a network, and until when. `balances`: only these, as `ADDRESS ASSET`. Without
 * `workspace`, stakes are compared too.
 */
interface Options extends Pick<Scope, 'workspace' | 'asset'> {
  balances?: ReadonlySet<string>
  signal?: AbortSignal | undefined
}

interface ComparedAccounts {
  addresses: number
  coins: number
  notCounted: NotCounted[]
  differing: string[]
  dust: Dust
}

/**
 * Compares the balance of each of our addresses on an account-based network with the ledger, and
 * adds the differences in the order of the addresses.
 * @returns the number of addresses, coins that are not counted, the balances that differ, as
 *   `ADDRESS ASSET`, and surpluses that are dust and no differences
 */
export async function accountDifferences(
  services: Services,
  chain: Chain,
  differences: Difference[],
  { balances, signal, ...scope }: Options = {},
): Promise<ComparedAccounts> {
  const { network } = chain
  const expected = await expectedBalances(services.database, services.registry, network)
  const notCounted: NotCounted[] = []
  const differing: string[] = []
  let dust: Dust = new Map()
  let addresses = 0
  let last = ''
  const only: Scope = {
    ...scope,
    ...(balances && { addresses: [...new Set([...balances].map((each) => each.split(' ')[0]!))] }),
  }
  for await (const { row, asset, amount, elsewhere } of accountBalances(
    services,
    chain,
    only,
    signal,
  )) {
    if (row.address !== last) addresses++
    last = row.address
    const name = `${row.address} ${asset.asset_name}`
    if (balances && !balances.has(name)) continue
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
    const books = expected.get(name) ?? 0n
    if (isDust(services.registry, asset, amount - books)) {
      const one = { addresses: 1, amount: amount - books }
      dust = addDust(dust, new Map([[asset.asset_name, one]]))
    } else if (books !== amount) {
      differing.push(name)
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
  if (chain.stakes && scope.workspace === undefined)
    await stakingDifferences(services, network, differences)
  return { addresses, coins: 0, notCounted, differing, dust }
}
