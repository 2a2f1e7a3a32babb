import { z } from 'zod'
import { findAsset } from '../assets/find-asset.ts'
import { endpoint } from '../http/endpoint.ts'
import { assetName } from '../http/schemas.ts'
import { addressShape, presentAddress, type AddressRow } from './present.ts'

/** Deposit addresses of an asset, oldest first. */
export const listAddresses = endpoint({
  id: 'listAddresses', tag: 'Addresses',
  description: 'Every address of the wallet, the omnibus address first.',
  errors: ['UNSUPPORTED_ASSET'],
  method: 'GET', path: '/dac/v1/addresses', summary: 'List deposit addresses of an asset', access: 'read',
  query: z.strictObject({ asset: assetName }), response: z.array(addressShape),
  async handler({ services, caller, query }) {
    const found = findAsset(services, query.asset)
    const rows = await services.database.query<AddressRow>(
      `select a.id, w.asset, a.address, a.address_tag, a.label, c.path_index, a.created_at
       from wallet_addresses a join wallets w on w.workspace_id = a.workspace_id and w.id = a.wallet_id
       join chain_addresses c on c.workspace_id = a.workspace_id and c.network = a.network and c.address = a.address
       where w.workspace_id = $3 and w.sub_account_id = $1 and w.asset = $2 order by a.created_at, a.id limit 10000`,
      [caller.subAccountId, found.asset.asset_name, caller.workspaceId])
    return { body: rows.map((row) => presentAddress(row, found, caller.subAccountIndex)) }
  },
})
