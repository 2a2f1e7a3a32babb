import { emptyBody } from '@custody/request-auth/bodies'
import { z } from 'zod'
import { ApiError } from '../../core/errors.ts'
import { endpoint } from '../../core/http/endpoint.ts'
import { pathInvoiceId } from './body.ts'
import { byHand } from './by-hand.ts'
import { invoiceShape, presentInvoice, type Checkout } from './present.ts'
import type { Environment } from '../../core/environment.ts'
import type { Database } from '../../core/database/pool.ts'
import type { Registry } from '@custody/chains'

interface Services {
  environment: Environment
  database: Database
  registry: Registry
  checkout: Checkout
}

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
  audit: 'entry',
  params: z.strictObject({ id: pathInvoiceId }),
  body: emptyBody,
  response: invoiceShape,
  async handler({ caller, params: { id } }, services: Services) {
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
