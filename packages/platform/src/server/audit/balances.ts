import type { Asset, CoinsElsewhere, Registry } from '@custody/chains'
import type { Chain } from '../../core/engine/chain.ts'
import type { Database } from '../../core/database/pool.ts'

interface Services {
  database: Database
  registry: Registry
}

/** One of our addresses. `sub_account`: the first element of its path; 0 is a gas tank. */
export interface OwnAddress {
  address: string
  kind: string
  workspace: string
  sub_account: number
  path_index: number
}

/** Restricts an audit to the addresses of one workspace, by its name, and one asset. */
export interface Scope {
  workspace: string
  asset: string
}

/**
 * Returns our addresses on a network.
 * @param workspace name of the workspace; null: all workspaces
 */
export const ownAddresses = (
  services: Pick<Services, 'database'>,
  network: string,
  workspace: string | null = null,
): Promise<OwnAddress[]> =>
  services.database.query<OwnAddress>(
    `select c.address, c.kind, w.name workspace, coalesce(s.path_index, 0) sub_account, c.path_index
      from chain_addresses c
    join workspaces w on w.id = c.workspace_id left join sub_accounts s on s.id = c.sub_account_id
    where c.network = $1 and ($2::text is null or w.name = $2) order by c.address`,
    [network, workspace],
  )

/**
 * Yields the balance of each asset at each of our addresses, as reported by an account-based chain,
 * in the smallest unit, and coins of the address that are not part of it.
 */
export async function* accountBalances(
  services: Services,
  chain: Chain,
  only: Scope | null = null,
): AsyncGenerator<{
  row: OwnAddress
  asset: Asset
  amount: bigint
  elsewhere: readonly CoinsElsewhere[]
}> {
  const assets = services.registry
    .assetsOf(chain.network.code)
    .filter(({ asset_name: name }) => only === null || name === only.asset)
  for (const row of await ownAddresses(services, chain.network.code, only?.workspace ?? null)) {
    for (const asset of assets) {
      const { balance: amount, elsewhere } = chain.holdings
        ? await chain.holdings(row.address, asset)
        : { balance: await chain.balance(row.address, asset), elsewhere: [] }
      yield { row, asset, amount, elsewhere }
    }
  }
}
