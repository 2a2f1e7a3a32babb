import { z } from 'zod'
import { endpoint } from '../../core/http/endpoint.ts'
import { text } from '../../core/http/schemas.ts'
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

/**
 * Records the merchant's decision, which overrides the payments: a late payment is accepted, or a
 * paid invoice is rejected. The last decision counts.
 */
export const markInvoice = endpoint({
  id: 'markInvoice',
  tag: 'Invoices',
  description:
    'Overrides the status that follows from the payments: `settled` or `invalid`, with a reason. The last mark applies.',
  errors: ['FORBIDDEN', 'NOT_FOUND'],
  example: { status: 'settled', reason: 'Paid in cash' },
  method: 'POST',
  path: '/dac/v1/invoices/{id}/mark',
  summary: 'Mark an invoice as settled or invalid',
  access: 'write',
  audit: 'entry',
  params: z.strictObject({ id: pathInvoiceId }),
  body: z.strictObject({
    status: z
      .enum(['settled', 'invalid'])
      .meta({ description: 'settled: the invoice becomes Paid; invalid: it becomes Invalid' }),
    reason: text(1000),
  }),
  response: invoiceShape,
  async handler({ caller, params: { id }, body }, services: Services) {
    const invoice = await byHand(services, caller, id, ({ row }) =>
      row.marked === body.status && row.marked_reason === body.reason
        ? null
        : {
            marked: body.status,
            marked_reason: body.reason,
            marked_at: new Date(services.environment.now()),
          },
    )
    return { body: presentInvoice(services, invoice) }
  },
})
