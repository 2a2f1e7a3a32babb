import { z } from 'zod'
import { assertKnownAsset } from '../../custody/assets/find-asset.ts'
import { dateOf, input, readList } from '../../core/database/counted.ts'
import { endpoint } from '../../core/http/endpoint.ts'
import { assetName, integer, oneOf, pageOf, pageQuery, text } from '../../core/http/schemas.ts'
import { EXCEPTIONS, INVOICE_STATUSES } from './evaluate.ts'
import { INVOICE_COLUMNS, withParts, type InvoiceRow } from './invoice.ts'
import { invoiceShape, presentInvoice, type Checkout } from './present.ts'
import type { Database } from '../../core/database/pool.ts'
import type { Registry } from '@custody/chains'
import type { Networks } from '../../core/engine/networks.ts'

interface Services {
  database: Database
  registry: Registry
  networks: Networks
  checkout: Checkout
}

const INT32_MAX = 2_147_483_647

/** Lists the invoices of the sub-account, newest first. */
export const listInvoices = endpoint({
  id: 'listInvoices',
  tag: 'Invoices',
  description: 'Returns invoices, newest first, in pages.',
  errors: ['UNSUPPORTED_ASSET'],
  method: 'GET',
  path: '/dac/v1/invoices',
  summary: 'List invoices',
  access: 'read',
  query: z.strictObject({
    status: oneOf(INVOICE_STATUSES).optional(),
    exception: oneOf(EXCEPTIONS).optional(),
    order_id: text(200).optional(),
    asset: assetName
      .optional()
      .meta({ description: 'Only invoices that can be paid in this asset' }),
    from: integer(
      0,
      INT32_MAX,
      'Only records created at or after this Unix time in seconds',
    ).optional(),
    to: integer(0, INT32_MAX, 'Only records created before this Unix time in seconds').optional(),
    ...pageQuery,
  }),
  response: pageOf(invoiceShape),
  async handler({ caller, query }, services: Services) {
    assertKnownAsset(services, query.asset)
    const { page, limit } = query
    const values: unknown[] = [caller.subAccountId, caller.workspaceId]
    const conditions = ['workspace_id = $2 and sub_account_id = $1']
    const where = (value: unknown, condition: (at: string) => string): void => {
      if (value === undefined) return
      values.push(value)
      conditions.push(condition(`$${values.length}`))
    }
    where(query.status, (at) => `status = ${at}`)
    where(query.exception, (at) => `exception = ${at}`)
    where(query.order_id, (at) => `order_id = ${at}`)
    where(
      query.asset,
      (at) =>
        `exists (select 1 from invoice_offers o where o.workspace_id = $2 and o.invoice_id = invoices.id and o.asset = ${at})`,
    )
    where(query.from, (at) => `created_at >= to_timestamp(${at}::bigint)`)
    where(query.to, (at) => `created_at < to_timestamp(${at}::bigint)`)
    const isKept = query.order_id === undefined && query.asset === undefined
    const { rows, total } = await readList<InvoiceRow>(
      services.database,
      {
        list: 'invoices',
        columns: INVOICE_COLUMNS,
        where: conditions.join(' and '),
        values,
        filters: isKept ? input({ status: query.status, exception: query.exception }) : null,
        from: dateOf(query.from),
        before: dateOf(query.to),
      },
      page,
      limit,
    )
    const invoices = await withParts(services, services.database, rows)
    return {
      body: {
        data: invoices.map((invoice) => presentInvoice(services, invoice)),
        page,
        limit,
        total,
      },
    }
  },
})
