import { formatAmount, type Registry } from '@custody/chains'
import { z } from 'zod'
import { exact, exactUsd } from '../../core/decimals.ts'
import { gasTanksOf, tankShape } from '../../custody/gas-tanks/list-tanks.ts'
import { panelEndpoint } from '../people/endpoint.ts'
import { accountOf } from '../../custody/prepaid-fee/account.ts'
import { coinOf } from '../../custody/prices/coins.ts'
import { PRICE_DECIMALS, usdValue } from '../../custody/prices/decimals.ts'
import { HELD_ACCOUNTS } from './held-accounts.ts'
import { SUB_ACCOUNT, subAccountParams } from './mirror.ts'
import type { Settings } from '../../core/settings/settings.ts'
import type { Environment } from '../../core/environment.ts'
import type { Database } from '../../core/database/pool.ts'
import type { Networks } from '../../core/engine/networks.ts'
import type { Prices } from '../../custody/prices/prices.ts'

interface Services {
  settings: Pick<Settings, 'network' | 'prepaidTiers'>
  environment: Environment
  database: Database
  registry: Registry
  networks: Networks
  prices: Prices
}

/** Returns a sub-account's balances, its low gas tanks and the prepaid fee account. */
export const readOverview = panelEndpoint({
  method: 'GET',
  path: `${SUB_ACCOUNT}/overview`,
  summary: 'Read balances, low gas tanks and the prepaid account',
  needs: 'viewer',
  params: z.strictObject(subAccountParams),
  response: z.object({
    balances: z.array(
      z.object({
        asset: z.string(),
        network: z.string(),
        balance: z.number().meta({ description: 'Total balance' }),
        available: z.number().meta({ description: 'Spendable balance before network fees' }),
        pending: z.number().meta({ description: 'Deposits that are not credited yet' }),
        price_usd: z.number().nullable().meta({ description: 'Price of one unit' }),
      }),
    ),
    total_usd: z.number().meta({ description: 'Total of the assets that have a price' }),
    tanks_low: z.array(tankShape),
    prepaid: z.object({
      balance: z.number(),
      reserved: z.number(),
      status: z.enum(['ok', 'low', 'empty']),
      tier: z.string(),
    }),
  }),
  async handler({ caller }, services: Services) {
    const { database, registry } = services
    const [rows, tanks, prepaid] = await Promise.all([
      database.query<{
        asset: string
        network: string
        held: string
        available: string
        pending: string
      }>(
        `select w.asset, w.network, coalesce(a.held, 0)::text held,
           coalesce(a.available, 0)::text available,
           coalesce((select sum(t.amount) from transactions t
             where t.workspace_id = w.workspace_id and t.sub_account_id = w.sub_account_id
               and t.wallet_id = w.id and t.kind = 'DEPOSIT'
               and t.status = 'pending'), 0)::text pending
         from wallets w left join lateral (
           select sum(balance) filter (where kind = any($2)) held,
             sum(balance) filter (where kind = 'available') available
           from ledger_accounts a where a.workspace_id = w.workspace_id and a.wallet_id = w.id
             and a.asset = w.asset
         ) a on true
         where w.workspace_id = $3 and w.sub_account_id = $1 order by w.asset`,
        [caller.subAccountId, HELD_ACCOUNTS, caller.workspaceId],
      ),
      gasTanksOf(services, caller.workspaceId),
      accountOf(services, caller.workspaceId),
    ])
    let total = 0n
    const balances = rows.map((row) => {
      const asset = registry.asset(row.asset)
      const decimals = asset?.decimals ?? 0
      const price = asset ? services.prices.price(coinOf(asset)) : null
      total += price ? usdValue(BigInt(row.held), decimals, price.price) : 0n
      const amount = (text: string) => exact(formatAmount(BigInt(text), decimals))
      return {
        asset: row.asset,
        network: row.network,
        balance: amount(row.held),
        available: amount(row.available),
        pending: amount(row.pending),
        price_usd: price ? exact(formatAmount(price.price, PRICE_DECIMALS)) : null,
      }
    })
    const { balance, reserved, status, tier } = prepaid
    return {
      body: {
        balances,
        total_usd: exactUsd(total),
        tanks_low: tanks.filter((tank) => tank.status !== 'ok'),
        prepaid: { balance, reserved, status, tier },
      },
    }
  },
})
