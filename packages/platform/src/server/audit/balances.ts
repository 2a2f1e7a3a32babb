import { BALANCES_MAX, type Asset, type CoinsElsewhere, type Registry } from '@custody/chains'
import type { Chain } from '../../core/engine/chain.ts'
import type { Database } from '../../core/database/pool.ts'
import { atMost } from './at-most.ts'

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

/**
 * Restricts an audit of a network to the addresses of one workspace, by its name, to one asset, and
 * to a list of addresses.
 */
export interface Scope {
  workspace?: string
  asset?: string
  addresses?: readonly string[]
}

/** Number of requests to a network's endpoint that are made concurrently if each reads one balance or coin. */
export const SINGLE_AT_ONCE = 8

/** Yields our addresses on a network in their order, at most `BALANCES_MAX` at a time. */
export async function* ownAddresses(
  { database }: Pick<Services, 'database'>,
  network: string,
  { workspace, addresses }: Pick<Scope, 'workspace' | 'addresses'> = {},
): AsyncGenerator<OwnAddress[]> {
  const page = (condition: string, parameter: unknown) =>
    database.query<OwnAddress>(
      `select c.address, c.kind, w.name workspace, coalesce(s.path_index, 0) sub_account, c.path_index
        from chain_addresses c
      join workspaces w on w.id = c.workspace_id left join sub_accounts s on s.id = c.sub_account_id
      where c.network = $1 and ($2::text is null or w.name = $2) and ${condition}
      order by c.address limit ${BALANCES_MAX}`,
      [network, workspace ?? null, parameter],
    )
  if (addresses !== undefined) {
    for (let at = 0; at < addresses.length; at += BALANCES_MAX)
      yield await page('c.address = any($3)', addresses.slice(at, at + BALANCES_MAX))
    return
  }
  for (let rows = await page('c.address > $3', ''); rows.length > 0;) {
    yield rows
    if (rows.length < BALANCES_MAX) return
    rows = await page('c.address > $3', rows.at(-1)!.address)
  }
}

/**
 * Yields the balance of each asset at each of our addresses, as reported by an account-based chain,
 * in the smallest unit, and coins of the address that are not part of it.
 * @param signal ends the reading between two lots of addresses
 * @throws the signal's reason after it was aborted; the errors of the chain
 */
export async function* accountBalances(
  services: Services,
  chain: Chain,
  only: Scope = {},
  signal?: AbortSignal,
): AsyncGenerator<{
  row: OwnAddress
  asset: Asset
  amount: bigint
  elsewhere: readonly CoinsElsewhere[]
}> {
  const assets = services.registry
    .assetsOf(chain.network.code)
    .filter(({ asset_name: name }) => only.asset === undefined || name === only.asset)
  for await (const rows of ownAddresses(services, chain.network.code, only)) {
    const addresses = rows.map(({ address }) => address)
    const lots: HeldBalance[][] = []
    for (const asset of assets) {
      signal?.throwIfAborted()
      lots.push(await balancesOf(chain, addresses, asset))
    }
    for (const [at, row] of rows.entries())
      for (const [index, asset] of assets.entries())
        yield { row, asset, ...(lots[index]![at] as HeldBalance) }
  }
}

interface HeldBalance {
  amount: bigint
  elsewhere: readonly CoinsElsewhere[]
}

/**
 * Returns what the addresses hold of an asset, in their order: by one call, if the chain has one.
 * Only a request for a single address lists coins in other places. Those are always tokens.
 * @param addresses at most `BALANCES_MAX`
 */
async function balancesOf(
  chain: Chain,
  addresses: readonly string[],
  asset: Asset,
): Promise<HeldBalance[]> {
  if (chain.holdings && asset.type === 'token') {
    return atMost(SINGLE_AT_ONCE, addresses, async (address) => {
      const { balance, elsewhere } = await chain.holdings!(address, asset)
      return { amount: balance, elsewhere }
    })
  }
  const amounts = chain.balances
    ? await chain.balances(addresses, asset)
    : await atMost(SINGLE_AT_ONCE, addresses, (address) => chain.balance(address, asset))
  return amounts.map((amount) => ({ amount, elsewhere: [] }))
}
