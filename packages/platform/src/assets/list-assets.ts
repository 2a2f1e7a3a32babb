import { z } from 'zod'
import { endpoint } from '../http/endpoint.ts'
import { listAssets } from './find-asset.ts'

export const assetShape = z.object({
  asset_name: z.string().meta({ description: 'Ticker; what every other operation takes as `asset`' }),
  name: z.string(), ticker: z.string(), blockchain: z.string(), network: z.string(), family: z.string(), decimals: z.int(),
  type: z.enum(['native', 'token']), contract_address: z.string().nullable(), fee_asset: z.string(), requires_tag: z.boolean(),
  min_withdrawal: z.string(), is_active: z.boolean(),
})

/** The single source of truth for what can be transacted. */
export const getAssets = endpoint({
  method: 'GET', path: '/assets', summary: 'List assets', access: 'public', response: z.array(assetShape),
  handler: async ({ services }) => ({ body: listAssets(services) }),
})
