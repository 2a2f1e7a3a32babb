import { z } from 'zod'
import { MESSAGE_MAX, TIME_MAX } from '../../core/bounds.ts'
import { closureOf, findAsset } from '../assets/find-asset.ts'
import { endpoint } from '../../core/http/endpoint.ts'
import { assetName } from '../../core/http/schemas.ts'
import type { WalletRow } from '../assets/find-wallet.ts'
import { BALANCE_COLUMNS, balancesOf, type BalanceRow } from './balance.ts'
import { maxSpendable } from './max-spendable.ts'
import { presentWallet, walletShape } from './present.ts'
import type { Environment } from '../../core/environment.ts'
import type { Settings } from '../../core/settings/settings.ts'
import type { Database } from '../../core/database/pool.ts'
import type { Registry } from '@custody/chains'
import type { Networks } from '../../core/engine/networks.ts'
import type { Addresses } from '../../core/engine/interfaces/addresses.ts'

interface Services {
  environment: Environment
  settings: Pick<Settings, 'allowDeprecated'>
  database: Database
  registry: Registry
  networks: Networks
  addresses: Addresses
}

/**
 * Lists the wallets of one asset with the spendable amount (`balance`) and everything that is held
 * on the chain (`omnibus_balance`).
 */
export const listWallets = endpoint({
  id: 'listWallets',
  tag: 'Wallets',
  description:
    'Returns the wallet of an asset with its balances. `balance` is the spendable amount, frozen coins included, and `max_spendable` what one transfer can pay of it; `omnibus_balance` is the total balance of the wallet on the chain.',
  errors: ['UNSUPPORTED_ASSET'],
  method: 'GET',
  path: '/dac/v1/wallets',
  summary: 'List wallets of an asset',
  access: 'read',
  query: z.strictObject({ asset: assetName }),
  response: z
    .array(
      walletShape
        .extend({
          balance: z.number(),
          omnibus_balance: z.number(),
          max_spendable: z.number().nullable().meta({
            description:
              'The largest amount that one transfer can pay now, at the medium fee level and to an address of any kind. On networks with coins: from the largest coins that are not frozen and fit into one transaction, less its fee; on other networks: `balance`, less the fee if the wallet pays it in this asset. Null if the fee rate is not known now. Never above `balance`',
          }),
          closed: z
            .object({
              status: z.enum(['deprecated', 'retired']),
              since: z.string().max(TIME_MAX),
              reason: z.string().max(MESSAGE_MAX),
            })
            .nullable()
            .meta({
              description:
                'Why no new address of the wallet can be created; null: new addresses can be created. The balance can be sent in both cases',
            }),
        })
        .meta({ id: 'WalletBalance' }),
    )
    .max(1),
  async handler({ caller, query }, services: Services) {
    const { asset, network } = findAsset(services, query.asset)
    const rows = await services.database.query<WalletRow & BalanceRow>(
      `select w.id, w.asset, w.status, w.created_at, w.network, ${BALANCE_COLUMNS}
       from wallets w left join ledger_accounts a on a.workspace_id = w.workspace_id
         and a.wallet_id = w.id and a.asset = w.asset
       where w.workspace_id = $3 and w.sub_account_id = $1 and w.asset = $2 group by w.workspace_id,
         w.id`,
      [caller.subAccountId, asset.asset_name, caller.workspaceId],
    )
    if (rows.length === 0) return { body: [] }
    const address = await services.addresses.omnibus(network, caller)
    const chain = services.networks.get(network.code)
    const reserve = await chain.reserveOf(address, asset)
    const omnibus = { address, subAccount: caller.subAccountIndex }
    const closed = closureOf(services, asset)
    const body = rows.map(async (row) => {
      const { spendable, total } = balancesOf(row, reserve, asset)
      const free = BigInt(row.available) - reserve
      return {
        ...presentWallet(row, network, omnibus),
        balance: spendable,
        omnibus_balance: total,
        max_spendable: await maxSpendable(services, chain, {
          caller,
          asset,
          walletId: row.id,
          free,
        }),
        closed,
      }
    })
    return { body: await Promise.all(body) }
  },
})
