import { networkMode } from '@custody/request-auth/bodies'
import { z } from 'zod'
import {
  ADDRESS_MAX,
  ASSETS_MAX,
  MESSAGE_MAX,
  NAME_MAX,
  TIME_MAX,
  WORD_MAX,
} from '../../core/bounds.ts'
import { endpoint } from '../../core/http/endpoint.ts'
import { exact } from '../../core/decimals.ts'
import type { Settings } from '../../core/settings/settings.ts'
import type { Registry } from '@custody/chains'
import type { Database } from '../../core/database/pool.ts'
import type { Networks } from '../../core/engine/networks.ts'
import { shared } from '../../core/engine/shared.ts'
import { contractPayments } from './contract-payments.ts'
import { listAssets } from './find-asset.ts'

interface Services {
  settings: Pick<Settings, 'allowDeprecated'>
  database: Database
  registry: Registry
  networks: Networks
}

export const assetShape = z
  .object({
    asset_name: z
      .string()
      .max(WORD_MAX)
      .meta({ description: 'Asset name that all other operations accept as `asset`' }),
    name: z.string().max(NAME_MAX),
    ticker: z.string().max(WORD_MAX),
    blockchain: z.string().max(NAME_MAX),
    network: z.string().max(WORD_MAX),
    mode: networkMode.meta({
      description:
        'Which networks the installation is for: local chains, private chains (a rehearsal), or the real ones',
    }),
    family: z
      .string()
      .max(WORD_MAX)
      .meta({ examples: ['utxo'] }),
    decimals: z.int().min(0).max(100),
    type: z.enum(['native', 'token']),
    contract_address: z.string().max(ADDRESS_MAX).nullable(),
    fee_asset: z.string().max(WORD_MAX),
    takes_tag: z.boolean().meta({
      description:
        'Payments of the asset may carry an `address_tag`: a destination tag (XRP) or a memo (XLM)',
    }),
    requires_tag: z.boolean().meta({
      description:
        'Many addresses of the asset, in particular those of exchanges, are complete only with their `address_tag`: ask the payee for both, and omit the tag only if the payee has none',
    }),
    min_withdrawal: z.number().min(0).meta({ description: 'Decimal, in the asset’s native unit' }),
    issuer: z.string().max(NAME_MAX).nullable().meta({
      description:
        'Issuer of the token on this network, or operator of its bridge; null for native coins',
    }),
    bridged: z.boolean().meta({
      description:
        'The token represents one that is locked on another network, so its value also depends on the bridge',
    }),
    status: z.enum(['active', 'deprecated', 'retired']).meta({
      description:
        'deprecated: new wallets and addresses only if the operator allows them; the balance can be sent. Retired assets are not listed',
    }),
    status_since: z.string().max(TIME_MAX).nullable().meta({
      description: 'Date from which `status` applies, YYYY-MM-DD; null while the asset is active',
    }),
    status_reason: z.string().max(MESSAGE_MAX).nullable(),
    is_active: z
      .boolean()
      .meta({ description: 'Whether new wallets and addresses can be created' }),
    contract_payments: z.enum(['credited', 'watched', 'by hand']).meta({
      description:
        'How an amount is credited that a contract pays: like any deposit; after the balances of the addresses were compared, within `watched_within_s`; or only by the operator',
    }),
    watched_within_s: z.int().min(0).nullable().meta({
      description:
        'Time in seconds within which the balance of every address is compared with the books; null if they are not compared',
    }),
    min_contract_payment: z.number().min(0).nullable().meta({
      description:
        'Smallest amount of contracts that is credited, in the asset’s native unit; smaller amounts at an address are credited when their sum reaches it. Null: there is no minimum',
    }),
  })
  .meta({ id: 'Asset' })

/** Time in milliseconds for which the list, which needs no API key, reads the database once. */
const READ_AGAIN_MS = 5000
const READS = new WeakMap<Database, () => ReturnType<typeof contractPayments>>()

function paymentsSoon(services: Services): ReturnType<typeof contractPayments> {
  const { database } = services
  const read =
    READS.get(database) ??
    shared(
      () => contractPayments(services),
      READ_AGAIN_MS,
      () => database.now().getTime(),
    )
  READS.set(database, read)
  return read()
}

export async function assetsForCallers(services: Services) {
  const payments = await paymentsSoon(services)
  return listAssets(services).map((asset) => ({
    ...asset,
    mode: services.registry.mode,
    min_withdrawal: exact(asset.min_withdrawal),
    ...payments(asset),
  }))
}

/** Lists the assets that can be transacted. The list is the single source of truth. */
export const getAssets = endpoint({
  id: 'listAssets',
  tag: 'Assets',
  description:
    'Returns every asset that this installation supports, with its network, decimals, contract, issuer and minimum withdrawal. Retired assets are omitted. Requires no API key.',
  method: 'GET',
  path: '/assets',
  summary: 'List assets',
  access: 'public',
  response: z.array(assetShape).max(ASSETS_MAX),
  handler: async (_context, services: Services) => ({ body: await assetsForCallers(services) }),
})
