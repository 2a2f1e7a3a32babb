import { z } from 'zod'
import { MESSAGE_MAX, TIME_MAX } from '../../core/bounds.ts'
import { closureOf, findAsset } from '../assets/find-asset.ts'
import { endpoint } from '../../core/http/endpoint.ts'
import { assetName } from '../../core/http/schemas.ts'
import type { WalletRow } from '../assets/find-wallet.ts'
import { BALANCE_COLUMNS, balancesOf, type BalanceRow } from './balance.ts'
import { presentWallet, walletShape } from './present.ts'
import type { Settings } from '../../core/settings/settings.ts'
import type { Database } from '../../core/database/pool.ts'
import type { Registry } from '@custody/chains'
import type { Networks } from '../../core/engine/networks.ts'
import type { Addresses } from '../../core/engine/interfaces/addresses.ts'

interface Services {
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
    'Returns the wallet of an asset with its balances. `balance` is the spendable amount; `omnibus_balance` is the total balance of the wallet on the chain.',
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
    const reserve = await services.networks.get(network.code).reserveOf(address, asset)
    const omnibus = { address, subAccount: caller.subAccountIndex }
    const closed = closureOf(services, asset)
    const body = rows.map((row) => {
      const { spendable, total } = balancesOf(row, reserve, asset)
      return {
        ...presentWallet(row, network, omnibus),
        balance: spendable,
        omnibus_balance: total,
        closed,
      }
    })
    return { body }
  },
})
