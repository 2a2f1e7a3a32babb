import { z } from 'zod'
import { findAsset } from '../assets/find-asset.ts'
import { endpoint } from '../http/endpoint.ts'
import { exact } from '../decimals.ts'
import { quotedRates } from './rates.ts'

/** Current fee rates of an asset's network, read at most ten seconds ago. */
export const networkFeeRates = endpoint({
  id: 'readNetworkFeeRates', tag: 'Fees',
  description: 'Low, medium and high, in the unit of the chain (`fee_rate_unit`): what `fee_rate` of a transfer takes.',
  errors: ['UNSUPPORTED_ASSET', 'NETWORK_UNAVAILABLE'],
  method: 'GET', path: '/dac/v1/network-fee-rates/{asset}', summary: 'Current network fee rates', access: 'read',
  params: z.strictObject({ asset: z.string().max(64) }),
  response: z.object({
    asset: z.string(), fee_rate_unit: z.string(), low: z.number(), medium: z.number(), high: z.number(), updated_at: z.string(),
  }),
  async handler({ services, params }) {
    const { asset, network } = findAsset(services, params.asset)
    const chain = services.networks.get(network.code)
    const rates = await quotedRates(chain, asset)
    return {
      body: {
        asset: asset.asset_name, fee_rate_unit: network.fee_rate_unit, low: exact(rates.low), medium: exact(rates.medium),
        high: exact(rates.high),
        updated_at: new Date(chain.ratesReadAt() ?? services.environment.now()).toISOString(),
      },
    }
  },
})
