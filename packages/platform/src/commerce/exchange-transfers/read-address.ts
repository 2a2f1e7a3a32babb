import { z } from 'zod'
import { ADDRESS_MAX, NAME_MAX, WORD_MAX } from '../../core/bounds.ts'
import { findAsset } from '../../custody/assets/find-asset.ts'
import { idParam } from '../exchanges/account.ts'
import { findCounted } from '../exchanges/identity.ts'
import { endpoint } from '../../core/http/endpoint.ts'
import { assetName } from '../../core/http/schemas.ts'
import { askForAddress } from './destination.ts'
import type { Environment } from '../../core/environment.ts'
import type { Database } from '../../core/database/pool.ts'
import type { Registry } from '@custody/chains'
import type { Networks } from '../../core/engine/networks.ts'
import type { Aml } from '../../custody/aml/aml.ts'
import type { Venues } from '../exchanges/venues.ts'

interface Services {
  environment: Environment
  database: Database
  registry: Registry
  networks: Networks
  aml: Aml
  exchanges: Venues
}

const place = z.object({
  address: z.string().max(ADDRESS_MAX),
  address_tag: z.string().max(NAME_MAX).nullable(),
})

/**
 * Returns the exchange's deposit address for an asset. A transfer to the exchange must contain it,
 * because the caller signs it.
 */
export const readExchangeAddress = endpoint({
  id: 'readExchangeDepositAddress',
  tag: 'Exchange transfers',
  description:
    'Returns the exchange’s deposit address for the asset. A transfer to the exchange contains this address and you sign it, so compare it with the exchange’s website first.',
  errors: [
    'NOT_FOUND',
    'UNSUPPORTED_ASSET',
    'INVALID_ADDRESS',
    'EXCHANGE_ADDRESS_CHANGED',
    'EXCHANGE_ACCOUNT_LINKED',
    'EXCHANGE_KEY_REFUSED',
    'EXCHANGE_UNAVAILABLE',
    'EXCHANGE_UNSUPPORTED',
  ],
  method: 'GET',
  path: '/dac/v1/exchange-accounts/{id}/deposit-address',
  summary: 'Read an exchange’s deposit address',
  access: 'read',
  params: idParam,
  query: z.strictObject({ asset: assetName }),
  response: place
    .extend({
      asset: z.string().max(WORD_MAX),
      network: z.string().max(WORD_MAX),
      changed: z.boolean().meta({
        description:
          'Whether the address differs from that of the last transfer; if so, `confirm_address` must repeat it',
      }),
      previous: place.nullable(),
    })
    .meta({ id: 'ExchangeDepositAddress' }),
  async handler({ caller, params, query }, services: Services) {
    const { asset, network } = findAsset(services, query.asset)
    const account = await findCounted(services.database, caller, params.id)
    const { now, before, isNew } = await askForAddress(services, account, asset, network, 'id')
    return {
      body: {
        asset: asset.asset_name,
        network: network.code,
        address: now.address,
        address_tag: now.tag,
        changed: isNew,
        previous: before && { address: before.address, address_tag: before.tag },
      },
    }
  },
})
