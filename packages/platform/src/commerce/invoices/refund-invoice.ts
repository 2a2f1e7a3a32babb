import { transferBody } from '@custody/request-auth/bodies'
import { z } from 'zod'
import { ApiError } from '../../core/errors.ts'
import { endpoint } from '../../core/http/endpoint.ts'
import { transactionShape } from '../../core/engine/present.ts'
import { createTransfer, earlierTransfer } from '../../custody/transactions/create-transaction.ts'
import { pathInvoiceId } from './body.ts'
import { readOwnInvoice } from './invoice.ts'

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
  params: z.strictObject({ id: pathInvoiceId }),
  body: transferBody,
  response: transactionShape,
  async handler({ services, caller, params: { id }, body, signed }) {
    if (body.destination_type !== 'EXTERNAL') {
      throw new ApiError('INVALID_REQUEST', 'destination_type: must be EXTERNAL for a refund', {
        field: 'destination_type',
      })
    }
    const { row } = await readOwnInvoice(services, services.database, caller, id)
    return createTransfer({ services, caller, body, signed }, row.id)
  },
  async earlier(request) {
    const { services, caller, params } = request
    const { row } = await readOwnInvoice(
      services,
      services.database,
      caller,
      params['id'] as string,
    )
    return earlierTransfer(request, row.id)
  },
})
