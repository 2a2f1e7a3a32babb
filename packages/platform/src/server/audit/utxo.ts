import { formatAmount, type Network, type Registry } from '@custody/chains'
import type { Coins } from '../../core/engine/chain.ts'
import type { Database } from '../../core/database/pool.ts'
import { atMost } from './at-most.ts'
import { SINGLE_AT_ONCE } from './balances.ts'
import { kindOf, type Difference, type NotCounted } from './report.ts'

interface Services {
  database: Database
  registry: Registry
}

/** Number of coins that are read before they are compared. */
const LOT = 500

/** SQL condition: screening holds the coin's deposit, so it is booked but must not be spent. */
const FROZEN = `exists (select 1 from deposits d join transactions t on t.workspace_id = d.workspace_id and t.id = d.transaction_id
  where d.workspace_id = u.workspace_id and d.network = u.network and d.txid = u.txid and d.position = u.vout
    and t.status = 'pending' and t.plan ? 'frozen_wallet')`

/**
 * UTXO networks: compares the ledger of each wallet with its coins, and each coin with the chain.
 */
export async function utxoDifferences(
  services: Services,
  network: Network,
  chainCoins: Coins,
  differences: Difference[],
): Promise<{ addresses: number; coins: number; notCounted: NotCounted[] }> {
  const decimals = services.registry.asset(network.native_asset)?.decimals ?? 8
  const wallets = await services.database.query<{
    id: string
    workspace: string
    books: string
    coins: string
  }>(
    `select w.id, s.name workspace,
       coalesce(
         (
           select sum(balance) from ledger_accounts a where a.workspace_id = w.workspace_id
             and a.wallet_id = w.id and a.asset = w.asset
             and a.kind in (
             'available', 'reserved', 'frozen', 'written_off'
           )
         ),
         0
       )::text books,
       coalesce((select sum(u.value) from utxos u
         left join chain_transactions spender on spender.workspace_id = u.workspace_id
           and spender.id = u.spent_by
         left join chain_transactions maker on maker.workspace_id = u.workspace_id
           and maker.network = u.network and maker.hash = u.txid
           and u.origin = 'change'
         where u.workspace_id = w.workspace_id and u.wallet_id = w.id
           and (u.spent_by is null or spender.state <> 'CONFIRMED')
           and case when u.origin = 'change' then maker.state = 'CONFIRMED' else u.spendable
             or ${FROZEN} end), 0)::text coins
     from wallets w join workspaces s on s.id = w.workspace_id where w.network = $1`,
    [network.code],
  )
  for (const wallet of wallets) {
    if (wallet.books !== wallet.coins) {
      differences.push({
        // Ledger and coins are both the platform's own records, so no third party can make them
        // differ.
        kind: 'deficit',
        network: network.code,
        workspace: wallet.workspace,
        subject: `wallet ${wallet.id}`,
        asset: network.native_asset,
        ledger: formatAmount(BigInt(wallet.books), decimals),
        chain: formatAmount(BigInt(wallet.coins), decimals),
        note: 'the ledger differs from the wallet’s coins',
      })
    }
  }
  const sound = `u.spent_by is null and (u.spendable or ${FROZEN}) and u.block_height is not null`
  let count = 0
  for await (const coin of coinsOnChain(services, network, chainCoins, sound)) {
    count++
    if (coin.there === null || coin.there !== BigInt(coin.value)) {
      differences.push({
        kind: kindOf(BigInt(coin.value), coin.there ?? 0n),
        network: network.code,
        workspace: coin.workspace,
        subject: `${coin.txid}:${coin.vout} of ${coin.address}`,
        asset: network.native_asset,
        ledger: formatAmount(BigInt(coin.value), decimals),
        chain: coin.there === null ? 'spent or unknown' : formatAmount(coin.there, decimals),
      })
    }
  }
  return { addresses: 0, coins: count, notCounted: await setAside(services, network, decimals) }
}

/** Returns the outputs at our addresses that the scanner has set aside. */
async function setAside(
  { database }: Pick<Services, 'database'>,
  network: Network,
  decimals: number,
): Promise<NotCounted[]> {
  const rows = await database.query<
    Pick<NotCounted, 'workspace' | 'address' | 'place' | 'reason'> & { value: string }
  >(
    `select s.name workspace, c.address, c.txid || ':' || c.vout place, c.reason, c.value::text
     from coins_aside c join workspaces s on s.id = c.workspace_id
     where c.network = $1 and c.asset is null order by 1, 2, 3`,
    [network.code],
  )
  return rows.map(({ value, ...row }) => ({
    ...row,
    network: network.code,
    asset: network.native_asset,
    amount: formatAmount(BigInt(value), decimals),
  }))
}

interface Coin {
  txid: string
  vout: number
  value: string
  workspace: string
  address: string
}

/**
 * Yields coins of the database with their value as reported by the chain, including its mempool;
 * null if the chain does not report them as unspent.
 * @param where SQL condition that selects the coins; `u` is the coin
 */
export async function* coinsOnChain(
  services: Pick<Services, 'database'>,
  network: Network,
  chainCoins: Coins,
  where: string,
): AsyncGenerator<Coin & { there: bigint | null }> {
  const coins = await services.database.query<Coin>(
    `select u.txid, u.vout, u.value::text, s.name workspace, u.address from utxos u
      join wallets w on w.workspace_id = u.workspace_id
      and w.id = u.wallet_id
      join workspaces s on s.id = w.workspace_id where u.network = $1 and ${where}`,
    [network.code],
  )
  for (let at = 0; at < coins.length; at += LOT)
    yield* await atMost(SINGLE_AT_ONCE, coins.slice(at, at + LOT), async (coin) => ({
      ...coin,
      there: await chainCoins.unspent(coin.txid, coin.vout),
    }))
}
