import { z } from 'zod'
import { findOpenAsset } from '../assets/find-asset.ts'
import { endpoint } from '../../core/http/endpoint.ts'
import { assetName, text } from '../../core/http/schemas.ts'
import { handOutAddress, readyForAddresses } from './deposit-address.ts'
import { addressShape, presentAddress } from './present.ts'
import type { Settings } from '../../core/settings/settings.ts'
import type { Environment } from '../../core/environment.ts'
import type { Database } from '../../core/database/pool.ts'
import type { Registry } from '@custody/chains'
import type { Networks } from '../../core/engine/networks.ts'
import type { WorkspaceKeys } from '../../core/signing/keys.ts'
import type { Addresses } from '../../core/engine/interfaces/addresses.ts'

interface Services {
  settings: Pick<Settings, 'allowDeprecated'>
  environment: Environment
  database: Database
  registry: Registry
  networks: Networks
  keys: WorkspaceKeys
  addresses: Addresses
}

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
    'KEY_PENDING',
    'SIGNERS_UNAVAILABLE',
  ],
  method: 'POST',
  path: '/dac/v1/address',
  summary: 'Create a deposit address',
  access: 'write',
  audit: { not: 'an address moves nothing, and customers create them in large numbers' },
  body: z.strictObject({ asset: assetName, label: text(200).optional() }),
  response: addressShape,
  async handler({ caller, body }, services: Services) {
    const match = findOpenAsset(services, body.asset)
    await readyForAddresses(services, caller.workspaceId, match.network)
    const row = await services.database.transaction((tx) =>
      handOutAddress(services, tx, caller, match, { label: body.label ?? null, fresh: false }),
    )
    return { body: presentAddress(row, match, caller.subAccountIndex) }
  },
})
