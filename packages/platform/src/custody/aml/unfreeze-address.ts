import { stringifyJson } from '@custody/request-auth'
import { z } from 'zod'
import { ADDRESS_MAX, NAME_MAX, WORD_MAX } from '../../core/bounds.ts'
import { findAsset } from '../assets/find-asset.ts'
import { ApiError } from '../../core/errors.ts'
import { endpoint } from '../../core/http/endpoint.ts'
import { assetName, text } from '../../core/http/schemas.ts'
import { emit } from '../../core/ledger/post.ts'
import { addressKeys, spaceOf } from './address-key.ts'
import { findFrozen, lift, lockFreezing, presentFrozen } from './frozen.ts'
import type { Environment } from '../../core/environment.ts'
import type { Database } from '../../core/database/pool.ts'
import type { Registry } from '@custody/chains'
import type { Networks } from '../../core/engine/networks.ts'
import type { Aml } from './aml.ts'

interface Services {
  environment: Environment
  database: Database
  registry: Registry
  networks: Networks
  aml: Aml
}

/**
 * Removes an address from the frozen list; the transactions that this freeze event held continue,
 * once.
 */
export const unfreezeAddress = endpoint({
  id: 'unfreezeAddress',
  tag: 'AML screening',
  description:
    'Releases the transactions that are on hold because of this address, once. A sanctioned address cannot be unfrozen.',
  errors: ['UNSUPPORTED_ASSET', 'NOT_FROZEN', 'SANCTIONED'],
  method: 'POST',
  path: '/dac/v1/unfreeze-address',
  summary: 'Remove an address from the AML frozen list',
  access: 'write',
  audit: 'entry',
  body: z.strictObject({ asset: assetName, address: text(200), address_tag: text(200).optional() }),
  response: z.object({
    asset: z.string().max(WORD_MAX),
    address: z.string().max(ADDRESS_MAX),
    address_tag: z.string().max(NAME_MAX).nullable(),
    unfrozen_at: z.string(),
  }),
  async handler({ caller, body }, services: Services) {
    const { asset, network } = findAsset(services, body.asset)
    const unfrozen = await services.database.transaction(async (tx) => {
      await lockFreezing(tx, caller.subAccountId)
      const freeze = await findFrozen(
        tx,
        caller,
        spaceOf(network),
        addressKeys(network, body.address),
      )
      if (!freeze) {
        throw new ApiError(
          'NOT_FROZEN',
          `address: is not on this sub-account’s frozen list for ${asset.asset_name}`,
          { field: 'address' },
        )
      }
      // A freeze without a tag covers the whole account, whichever tag is given.
      if (freeze.address_tag !== null && freeze.address_tag !== (body.address_tag ?? null)) {
        const other = `the address is frozen with another address_tag than ${body.address_tag ?? 'none'}`
        throw new ApiError(
          'NOT_FROZEN',
          `address_tag: ${other}; see GET /dac/v1/frozen-addresses`,
          { field: 'address_tag' },
        )
      }
      if (freeze.source === 'OFAC' && services.aml.sanctions.has(network, freeze.address)) {
        throw new ApiError(
          'SANCTIONED',
          'address: is on OFAC’s list of sanctioned addresses; it stays frozen while it is listed',
          { field: 'address' },
        )
      }
      const at = new Date(services.environment.now())
      await lift(tx, freeze, caller.apiKey, at)
      await emit(
        tx,
        caller.workspaceId,
        caller.subAccountId,
        'address.unfrozen',
        stringifyJson({
          ...presentFrozen(freeze, services.registry),
          unfrozen_at: at.toISOString(),
        }),
      )
      return { address: freeze.address, tag: freeze.address_tag, at }
    })
    services.environment.checkpoint('aml.unfrozen')
    return {
      body: {
        asset: asset.asset_name,
        address: unfrozen.address,
        address_tag: unfrozen.tag,
        unfrozen_at: unfrozen.at.toISOString(),
      },
    }
  },
})
