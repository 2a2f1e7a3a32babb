import { z } from 'zod'
import { ASSETS_MAX } from '../bounds.ts'
import { endpoint } from '../http/endpoint.ts'
import { exact } from '../decimals.ts'
import type { Services } from '../engine/services.ts'
import { listAssets } from './find-asset.ts'

export const assetShape = z
  .object({
    asset_name: z
      .string()
      .meta({ description: 'Ticker; what every other operation takes as `asset`' }),
    name: z.string(),
    ticker: z.string(),
    blockchain: z.string(),
    network: z.string(),
    family: z.string().meta({ examples: ['utxo'] }),
    decimals: z.int(),
    type: z.enum(['native', 'token']),
    contract_address: z.string().nullable(),
    fee_asset: z.string(),
    takes_tag: z.boolean().meta({
      description:
        'Payments of the asset may carry an `address_tag`: a destination tag (XRP) or a memo (XLM)',
    }),
    requires_tag: z.boolean().meta({
      description:
        'Many addresses of the asset are complete only with their `address_tag`, exchanges’ above all: ask for it together with ' +
        'the address, and send without one only where the payee has none',
    }),
    min_withdrawal: z.number().meta({ description: 'In the asset’s native unit' }),
    issuer: z.string().nullable().meta({
      description:
        'Who issues the token on this network, or whose bridge does; null for native coins',
    }),
    bridged: z.boolean().meta({
      description:
        'The token stands for one that is locked on another network, so that its value also depends on the bridge',
    }),
    status: z.enum(['active', 'deprecated', 'retired']).meta({
      description:
        'deprecated: new wallets and addresses only where the operator allows them; what is held can be sent. Retired assets ' +
        'are not listed',
    }),
    status_since: z.string().nullable().meta({
      description: 'Day from which `status` holds, as YYYY-MM-DD; null while it is active',
    }),
    status_reason: z.string().nullable(),
    is_active: z.boolean().meta({ description: 'New wallets and addresses are made' }),
  })
  .meta({ id: 'Asset' })

export const assetsForCallers = (services: Services) =>
  listAssets(services).map((asset) => ({
    ...asset,
    min_withdrawal: exact(asset.min_withdrawal),
  }))

/** Lists the assets that can be transacted. The list is the single source of truth. */
export const getAssets = endpoint({
  id: 'listAssets',
  tag: 'Assets',
  description:
    'Every asset that this installation can transact, with its network, decimals, contract, issuer and least withdrawal. ' +
    'Retired assets are left out. Needs no key.',
  method: 'GET',
  path: '/assets',
  summary: 'List assets',
  access: 'public',
  response: z.array(assetShape).max(ASSETS_MAX),
  handler: async ({ services }) => ({ body: assetsForCallers(services) }),
})
