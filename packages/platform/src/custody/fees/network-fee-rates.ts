import { z } from 'zod'
import { MESSAGE_MAX, WORD_MAX } from '../../core/bounds.ts'
import { findAsset } from '../assets/find-asset.ts'
import { endpoint } from '../../core/http/endpoint.ts'
import { exact } from '../../core/decimals.ts'
import { quotedRates } from './rates.ts'
import type { Environment } from '../../core/environment.ts'
import type { Registry } from '@custody/chains'
import type { Networks } from '../../core/engine/networks.ts'

interface Services {
  environment: Environment
  registry: Registry
  networks: Networks
}

/**
 * Returns the current fee rates of an asset's network, at most ten seconds old; `warning` is set if
 * the node has no current estimate.
 */
export const networkFeeRates = endpoint({
  id: 'readNetworkFeeRates',
  tag: 'Fees',
  description:
    'Returns the low, medium and high fee rates in the unit of the chain (`fee_rate_unit`), which is also the unit of `fee_rate` in a transfer. Returns 503 if the node has no estimate and there is no other source for a sufficient rate.',
  errors: ['UNSUPPORTED_ASSET', 'NETWORK_UNAVAILABLE'],
  method: 'GET',
  path: '/dac/v1/network-fee-rates/{asset}',
  summary: 'Read current network fee rates',
  access: 'read',
  params: z.strictObject({ asset: z.string().max(64) }),
  response: z.object({
    asset: z.string().max(WORD_MAX),
    fee_rate_unit: z.string().max(WORD_MAX),
    low: z.number().min(0),
    medium: z.number().min(0),
    high: z.number().min(0),
    updated_at: z.string().meta({
      description:
        'When the rates were read from the node; if it has no estimate now, when it last had one',
    }),
    warning: z.string().max(MESSAGE_MAX).optional().meta({
      description:
        'Present only if the node has no estimate now: explains which rates are returned instead',
    }),
  }),
  async handler({ params }, services: Services) {
    const { asset, network } = findAsset(services, params.asset)
    const chain = services.networks.get(network.code)
    const rates = await quotedRates(chain, asset)
    const warning = chain.ratesWarning?.() ?? null
    return {
      body: {
        asset: asset.asset_name,
        fee_rate_unit: network.fee_rate_unit,
        low: exact(rates.low),
        medium: exact(rates.medium),
        high: exact(rates.high),
        updated_at: new Date(chain.ratesReadAt() ?? services.environment.now()).toISOString(),
        ...(warning === null ? {} : { warning }),
      },
    }
  },
})
