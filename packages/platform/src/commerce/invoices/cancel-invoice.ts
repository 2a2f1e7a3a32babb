import { emptyBody } from '@custody/request-auth/bodies'
import { z } from 'zod'
import { ApiError } from '../../core/errors.ts'
import { endpoint } from '../../core/http/endpoint.ts'
import { pathInvoiceId } from './body.ts'
import { byHand } from './by-hand.ts'
import { invoiceShape, presentInvoice } from './present.ts'

/** Cancels an unpaid invoice. Later payments are still credited, and shown as late. */
export const cancelInvoice = endpoint({
  id: 'cancelInvoice',
  tag: 'Invoices',
  description:
    'Cancels a pending invoice. A payment that arrives later is credited to the wallet and reported as late.',
  errors: ['FORBIDDEN', 'NOT_FOUND', 'INVOICE_FINAL'],
  method: 'POST',
  path: '/dac/v1/invoices/{id}/cancel',
  summary: 'Cancel an invoice',
  access: 'write',
  params: z.strictObject({ id: pathInvoiceId }),
  body: emptyBody,
  response: invoiceShape,
  async handler({ services, caller, params: { id } }) {
    const invoice = await byHand(services, caller, id, ({ row }) => {
      if (row.cancelled_at !== null) return null
      if (row.status !== 'Pending') {
        throw new ApiError(
          'INVOICE_FINAL',
          `inv_id: the invoice is ${row.status}; only a pending invoice can be cancelled`,
          {
            field: 'inv_id',
          },
        )
      }
      return { cancelled_at: new Date(services.environment.now()) }
    })
    return { body: presentInvoice(services, invoice) }
  },
})
