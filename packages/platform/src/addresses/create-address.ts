import { OMNIBUS_INDEX, traitsOf } from '@custody/chains'
import { z } from 'zod'
import { findAsset } from '../assets/find-asset.ts'
import { ApiError } from '../errors.ts'
import { endpoint } from '../http/endpoint.ts'
import { assetName, text } from '../http/schemas.ts'
import { emit } from '../ledger/post.ts'
import type { Services } from '../engine/services.ts'
import { findWallet } from '../assets/find-wallet.ts'
import { ensureAddress, ensureOmnibus } from './derive.ts'
import { handOutOmnibus, listOmnibus } from './omnibus.ts'
import { addressShape, presentAddress, type AddressRow } from './present.ts'

const TAG_LEAST = 100_000_000
const TAGS = 900_000_000
const TAG_BYTES = 6

/** Nine digits, at random: a mistyped tag is most likely nobody's. */
function newTag(services: Services): string {
  return String(TAG_LEAST + (Buffer.from(services.environment.bytes(TAG_BYTES)).readUIntBE(0, TAG_BYTES) % TAGS))
}

/** Hands out a deposit address; the first call of a wallet answers its omnibus address, without a tag. */
export const createAddress = endpoint({
  method: 'POST', path: '/dac/v1/address', summary: 'Create a deposit address', access: 'write',
  body: z.strictObject({ asset: assetName, label: text(200).optional() }), response: addressShape,
  async handler({ services, caller, body }) {
    const found = findAsset(services, body.asset)
    const { asset, network } = found
    await services.keys.get(caller.workspaceId, network.curve)
    await services.addresses.startScan(network)
    const row = await services.database.transaction(async (tx) => {
      // Addresses of a sub-account are numbered one after the other.
      await tx.query('select 1 from sub_accounts where id = $1 for update', [caller.subAccountId])
      const wallet = await findWallet(tx, caller.subAccountId, asset.asset_name)
      if (wallet.status !== 'active') {
        throw new ApiError(
          'WALLET_INACTIVE', `asset: the ${asset.asset_name} wallet is inactive and takes no new addresses`, { field: 'asset' }
        )
      }
      const tagged = traitsOf(network).deposits === 'tagged'
      const announce = async (created: AddressRow): Promise<AddressRow> => {
        const shown = JSON.stringify(presentAddress(created, found, caller.subAccountIndex))
        await emit(tx, caller.workspaceId, caller.subAccountId, 'address.created', shown)
        return created
      }
      let address = await ensureOmnibus(services, tx, network, caller)
      await listOmnibus(tx, wallet.id, network.code, address)
      const label = body.label ?? null
      const first = await handOutOmnibus(tx, wallet.id, label)
      if (first) return announce({ ...first, asset: asset.asset_name, address_tag: null, label, path_index: OMNIBUS_INDEX })
      let index = OMNIBUS_INDEX
      const tag = tagged ? newTag(services) : null
      if (!tagged) {
        const last = await tx.one<{ index: number }>(
          `select coalesce(max(path_index), 0) as index from chain_addresses
           where network = $1 and sub_account_id = $2 and kind in ('omnibus', 'deposit')`,
          [network.code, caller.subAccountId])
        index = (last?.index ?? 0) + 1
        address = await ensureAddress(services, tx, network, caller, index, 'deposit')
      }
      const created = await tx.one<AddressRow>(
        `insert into wallet_addresses (wallet_id, network, address, label, address_tag) values ($1, $2, $3, $4, $6)
         returning id, $5::text asset, address, address_tag, label, $7::integer path_index, created_at`,
        [wallet.id, network.code, address, label, asset.asset_name, tag, index]) as AddressRow
      return announce(created)
    })
    return { body: presentAddress(row, found, caller.subAccountIndex) }
  },
})
