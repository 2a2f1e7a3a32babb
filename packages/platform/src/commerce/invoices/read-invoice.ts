import { z } from 'zod'
import { endpoint } from '../../core/http/endpoint.ts'
import { pathInvoiceId } from './body.ts'
import { readOwnInvoice } from './invoice.ts'
import { invoiceShape, presentInvoice, type Checkout } from './present.ts'
import type { Database } from '../../core/database/pool.ts'
import type { Registry } from '@custody/chains'

interface Services {
  database: Database
  registry: Registry
  checkout: Checkout
}

/** Returns one invoice of the caller's sub-account. */
export const getInvoice = endpoint({
  id: 'readInvoice',
  tag: 'Invoices',
  description: 'Returns one invoice with its payments.',
  errors: ['FORBIDDEN', 'NOT_FOUND'],
  method: 'GET',
  path: '/dac/v1/invoices/{id}',
  summary: 'Read an invoice',
  access: 'read',
  params: z.strictObject({ id: pathInvoiceId }),
  response: invoiceShape,
  async handler({ caller, params: { id } }, services: Services) {
    return {
      body: presentInvoice(services, await readOwnInvoice(services, services.database, caller, id)),
    }
  },
})
