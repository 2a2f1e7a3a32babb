import { z } from 'zod'
import { endpoint } from '../../core/http/endpoint.ts'
import { assetName } from '../../core/http/schemas.ts'
import { checkoutShape, checkoutState, invoiceParams } from './checkout-state.ts'
import { choose } from './choose.ts'
import type { Settings } from '../../core/settings/settings.ts'
import type { Environment } from '../../core/environment.ts'
import type { Database } from '../../core/database/pool.ts'
import type { Registry } from '@custody/chains'
import type { Networks } from '../../core/engine/networks.ts'
import type { WorkspaceKeys } from '../../core/signing/keys.ts'
import type { Addresses } from '../../core/engine/interfaces/addresses.ts'
import type { DatabaseHold } from '../../core/engine/database-hold.ts'
import type { Checkout } from './present.ts'

interface Services {
  settings: Pick<Settings, 'allowDeprecated'>
  environment: Environment
  database: Database
  registry: Registry
  networks: Networks
  keys: WorkspaceKeys
  addresses: Addresses
  hold: DatabaseHold
  checkout: Checkout
}

/** Chooses the asset in which the payer wants to pay, and returns its address. */
export const chooseAsset = endpoint({
  id: 'chooseCheckoutAsset',
  tag: 'Checkout',
  description:
    'Selects the asset in which the payer pays, if the invoice offers several; the response contains the address. Requires no API key.',
  errors: [
    'NOT_FOUND',
    'INVALID_AMOUNT',
    'INVOICE_CLOSED',
    'WALLET_MISSING',
    'WALLET_INACTIVE',
    'UNSUPPORTED_ASSET',
    'SIGNERS_UNAVAILABLE',
    'NETWORK_UNAVAILABLE',
    'PRICE_UNAVAILABLE',
    'INSUFFICIENT_BALANCE',
    'ASSET_CLOSED',
  ],
  method: 'POST',
  path: '/checkout/{inv_id}/asset',
  summary: 'Select the asset of an invoice as its payer',
  access: 'public',
  params: invoiceParams,
  body: z.strictObject({ asset: assetName }),
  response: checkoutShape,
  async handler({ params: { inv_id }, body }, services: Services) {
    return { body: await checkoutState(services, await choose(services, inv_id, body.asset)) }
  },
})
