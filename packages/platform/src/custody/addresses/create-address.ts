import { z } from 'zod'
import { findOpenAsset } from '../assets/find-asset.ts'
import { endpoint } from '../../core/http/endpoint.ts'
import { assetName, text } from '../../core/http/schemas.ts'
import { handOutAddress, readyForAddresses } from './deposit-address.ts'
import { addressShape, presentAddress } from './present.ts'

/**
 * Assigns a deposit address. The first call for a wallet returns its omnibus address, without a
 * tag.
 */
export const createAddress = endpoint({
  id: 'createAddress',
  tag: 'Addresses',
  description:
    'Creates another deposit address of the wallet. Deposits to it are credited to the wallet. The first call returns the omnibus address. On networks with tags, each call returns the same address with a new tag. `path` allows the caller to derive the address from the signer nodes’ certificates.',
  errors: [
    'UNSUPPORTED_ASSET',
    'ASSET_CLOSED',
    'WALLET_MISSING',
    'WALLET_INACTIVE',
    'NETWORK_UNAVAILABLE',
    'SIGNERS_UNAVAILABLE',
  ],
  method: 'POST',
  path: '/dac/v1/address',
  summary: 'Create a deposit address',
  access: 'write',
  body: z.strictObject({ asset: assetName, label: text(200).optional() }),
  response: addressShape,
  async handler({ services, caller, body }) {
    const match = findOpenAsset(services, body.asset)
    await readyForAddresses(services, caller.workspaceId, match.network)
    const row = await services.database.transaction((tx) =>
      handOutAddress(services, tx, caller, match, { label: body.label ?? null, fresh: false }),
    )
    return { body: presentAddress(row, match, caller.subAccountIndex) }
  },
})
