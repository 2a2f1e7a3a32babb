import { transferBody } from '@custody/request-auth/bodies'
import { z } from 'zod'
import { ApiError } from '../../core/errors.ts'
import { endpoint } from '../../core/http/endpoint.ts'
import { transactionShape } from '../../core/engine/present.ts'
import { createTransfer, earlierTransfer } from '../../custody/transactions/create-transaction.ts'
import { pathInvoiceId } from './body.ts'
import { readOwnInvoice } from './invoice.ts'
import type { Settings } from '../../core/settings/settings.ts'
import type { Environment } from '../../core/environment.ts'
import type { Database } from '../../core/database/pool.ts'
import type { Registry } from '@custody/chains'
import type { Networks } from '../../core/engine/networks.ts'
import type { Receipts } from '../../core/signing/receipts.ts'
import type { Addresses } from '../../core/engine/interfaces/addresses.ts'
import type { KnownWallets } from '../../custody/assets/find-wallet.ts'
import type { Withdrawals } from '../../custody/transactions/write-withdrawal.ts'
import type { ExchangeDestinations } from '../../custody/transactions/exchange-destinations.ts'
import type { WorkspacePolicies } from '../../custody/approvals/workspace-policies.ts'
import type { Prices } from '../../custody/prices/prices.ts'

interface Services {
  settings: Pick<Settings, 'prepaidTiers' | 'prices'>
  environment: Environment
  database: Database
  registry: Registry
  networks: Networks
  receipts: Receipts
  addresses: Addresses
  knownWallets: KnownWallets
  withdrawals: Withdrawals
  exchangeDestinations: ExchangeDestinations
  prices: Prices
  policies: WorkspacePolicies
}

/**
 * Refunds a payment: the caller's own signed transfer, as in POST /dac/v1/transaction, linked to
 * the invoice. The amount of an asset cannot exceed the credited amount.
 */
export const refundInvoice = endpoint({
  id: 'refundInvoice',
  tag: 'Invoices',
  description:
    'Creates a transfer with its own signed body, linked to the invoice. All refunds of an invoice together cannot exceed the amount paid.',
  errors: [
    'FORBIDDEN',
    'NOT_FOUND',
    'UNSUPPORTED_ASSET',
    'WALLET_MISSING',
    'WALLET_INACTIVE',
    'INVALID_ADDRESS',
    'INVALID_AMOUNT',
    'INSUFFICIENT_BALANCE',
    'PREPAID_FEE_EXHAUSTED',
    'POLICY_DENIED',
    'PRICE_UNAVAILABLE',
    'NETWORK_UNAVAILABLE',
    'SIGNERS_UNAVAILABLE',
    'EXCHANGE_ADDRESS_CHANGED',
    'EXCHANGE_KEY_REFUSED',
    'EXCHANGE_UNAVAILABLE',
    'EXCHANGE_UNSUPPORTED',
  ],
  method: 'POST',
  path: '/dac/v1/invoices/{id}/refund',
  summary: 'Refund an invoice',
  access: 'write',
  audit: { not: 'the refund is a transfer, which stores the request and its key' },
  params: z.strictObject({ id: pathInvoiceId }),
  body: transferBody,
  response: transactionShape,
  async handler({ caller, params: { id }, body, signed }, services: Services) {
    if (body.destination_type !== 'EXTERNAL') {
      throw new ApiError('INVALID_REQUEST', 'destination_type: must be EXTERNAL for a refund', {
        field: 'destination_type',
      })
    }
    const { row } = await readOwnInvoice(services, services.database, caller, id)
    return createTransfer(services, { caller, body, signed }, row.id)
  },
  async earlier(request, services: Pick<Services, 'database' | 'registry'>) {
    const { caller, params } = request
    const { row } = await readOwnInvoice(
      services,
      services.database,
      caller,
      params['id'] as string,
    )
    return earlierTransfer(services, request, row.id)
  },
})
