import { z } from 'zod'
import { findAsset } from '../assets/find-asset.ts'
import { findAccount, idParam } from '../exchanges/account.ts'
import { endpoint } from '../http/endpoint.ts'
import { assetName } from '../http/schemas.ts'
import { askForAddress } from './destination.ts'

const place = z.object({ address: z.string(), address_tag: z.string().nullable() })

/**
 * Returns the exchange's deposit address for an asset. A transfer to the exchange must contain it,
 * because the caller signs it.
 */
export const readExchangeAddress = endpoint({
  id: 'readExchangeDepositAddress',
  tag: 'Exchange transfers',
  description:
    'Where the exchange takes an asset. A transfer to it names this address, and you sign it: hold it against the ' +
    'exchange’s own page first.',
  errors: [
    'NOT_FOUND',
    'UNSUPPORTED_ASSET',
    'INVALID_ADDRESS',
    'EXCHANGE_ADDRESS_CHANGED',
    'EXCHANGE_KEY_REFUSED',
    'EXCHANGE_UNAVAILABLE',
    'EXCHANGE_UNSUPPORTED',
  ],
  method: 'GET',
  path: '/dac/v1/exchange-accounts/{id}/deposit-address',
  summary: 'Read where an exchange takes an asset',
  access: 'read',
  params: idParam,
  query: z.strictObject({ asset: assetName }),
  response: place
    .extend({
      asset: z.string(),
      network: z.string(),
      changed: z.boolean().meta({
        description: 'Another than the last transfer went to: confirm_address must name it',
      }),
      previous: place.nullable(),
    })
    .meta({ id: 'ExchangeDepositAddress' }),
  async handler({ services, caller, params, query }) {
    const { asset, network } = findAsset(services, query.asset)
    const account = await findAccount(services.database, caller, params.id)
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
