import { z } from 'zod'
import { ID_MAX, WORD_MAX } from '../../core/bounds.ts'
import type { Database } from '../../core/database/pool.ts'
import type { Registry } from '@custody/chains'
import type { Networks } from '../../core/engine/networks.ts'
import type { Addresses } from '../../core/engine/interfaces/addresses.ts'
import { endpoint, type Caller } from '../../core/http/endpoint.ts'
import { assetName, integer, LIMIT_MAX } from '../../core/http/schemas.ts'
import { BALANCE_COLUMNS, balancesOf, type BalanceRow } from './balance.ts'

interface Services {
  database: Database
  registry: Registry
  networks: Networks
  addresses: Addresses
}

const balanceShape = z
  .object({
    wallet_id: z.string().max(ID_MAX),
    asset: z.string().max(WORD_MAX),
    network: z
      .string()
      .max(WORD_MAX)
      .meta({ examples: ['BTC'] }),
    status: z.enum(['active', 'inactive']),
    available: z
      .number()
      .meta({ description: 'Spendable balance: `balance` of GET /dac/v1/wallets' }),
    pending: z.number().meta({
      description:
        '`total` minus `available`: reserved for transfers, frozen, staked, in cooldown, not swept yet, or a minimum balance',
    }),
    total: z.number().meta({
      description: 'Total balance on the chain: `omnibus_balance` of GET /dac/v1/wallets',
    }),
  })
  .meta({ id: 'Balance' })

interface Row extends BalanceRow {
  id: string
  asset: string
  status: string
  network: string
}

/** Lists the balances of all wallets of the sub-account, ordered by asset name. */
export const listBalances = endpoint({
  id: 'listBalances',
  tag: 'Wallets',
  description:
    'Returns the balances of every wallet of the sub-account, sorted by asset name. To continue, pass `next` of the response as `after`. Wallets whose network is not connected now are included.',
  method: 'GET',
  path: '/dac/v1/balances',
  summary: 'List the balances of all wallets',
  access: 'read',
  query: z.strictObject({
    after: assetName.optional().meta({
      description: '`next` of an earlier response: returns the wallets that follow',
      examples: ['BTC'],
    }),
    limit: integer(
      1,
      LIMIT_MAX,
      'Maximum number of wallets in the response; by default 100',
    ).default(100),
  }),
  response: z.object({
    data: z.array(balanceShape).max(LIMIT_MAX),
    next: z
      .string()
      .max(WORD_MAX)
      .nullable()
      .meta({
        description: 'Cursor of the next page: pass it as `after`; null on the last page',
        examples: ['BTC'],
      }),
    has_more: z.boolean().meta({ description: 'Whether there are more records' }),
  }),
  async handler({ caller, query: { after, limit } }, services: Services) {
    const rows = await services.database.query<Row>(
      `select w.id, w.asset, w.status, w.network, ${BALANCE_COLUMNS}
       from wallets w left join ledger_accounts a on a.workspace_id = w.workspace_id
         and a.wallet_id = w.id and a.asset = w.asset
       where w.workspace_id = $1 and w.sub_account_id = $2
         and ($3::text is null or w.asset collate "C" > $3)
       group by w.workspace_id, w.id order by w.asset collate "C" limit $4`,
      [caller.workspaceId, caller.subAccountId, after ?? null, limit + 1],
    )
    const shown = rows.slice(0, limit)
    const next = rows.length > limit ? (shown.at(-1)?.asset ?? null) : null
    return {
      body: {
        data: await Promise.all(shown.map((row) => present(services, caller, row))),
        next,
        has_more: next !== null,
      },
    }
  },
})

async function present(services: Services, caller: Caller, row: Row) {
  const asset = services.registry.asset(row.asset)
  if (!asset) throw new Error(`the registry has no asset ${row.asset}, but a wallet of it exists`)
  const { spendable, pending, total } = balancesOf(row, await keptOf(services, caller, row), asset)
  return {
    wallet_id: row.id,
    asset: row.asset,
    network: row.network,
    status: row.status,
    available: spendable,
    pending,
    total,
  }
}

/** Returns the chain reserve of the wallet's account; 0 if the network is not connected. */
async function keptOf(services: Services, caller: Caller, row: Row): Promise<bigint> {
  const asset = services.registry.asset(row.asset)
  if (!asset || !services.networks.has(row.network)) return 0n
  const address = await services.addresses.omnibus(services.registry.networkOf(asset), caller)
  return services.networks.get(row.network).reserveOf(address, asset)
}
