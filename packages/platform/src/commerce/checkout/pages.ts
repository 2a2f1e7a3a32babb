import { loadSite, NAME } from '@custody/checkout'
import type { Logger } from 'pino'
import { ApiError } from '../../core/errors.ts'
import type { Page } from '../../core/http/page.ts'
import { siteOr503 } from '../../core/http/site.ts'
import { frameAncestors } from '../invoices/frame-ancestors.ts'
import type { Database } from '../../core/database/pool.ts'

interface Services {
  database: Database
}

/** Characters and length of an invoice ID; other paths are not looked up. */
const INVOICE_ID = /^[\w-]{1,100}$/

/**
 * Returns the page on which an invoice is paid, its files, and the script that embeds it in a shop.
 */
export function checkoutPages(log: Logger): Page<Services>[] {
  const built = siteOr503(
    NAME,
    loadSite,
    log,
    'the payment page is not built; invoices can be created, but payers cannot open it',
  )
  return [
    {
      path: '/checkout/{inv_id}',
      isCounted: true,
      async handler({ params, header }, services: Services) {
        const id = params['inv_id'] as string
        const origins = INVOICE_ID.test(id) ? await frameAncestors(services, id) : null
        return built((site) => site.page(origins, header('accept-encoding')))
      },
    },
    {
      path: '/checkout/assets/{name}',
      isCounted: false,
      handler: ({ params, header }) =>
        built((site) => {
          const match = site.asset(params['name'] as string, header('accept-encoding'))
          if (!match) throw new ApiError('NOT_FOUND', 'the checkout page has no such file')
          return match
        }),
    },
    {
      path: '/widget.js',
      isCounted: false,
      handler: ({ header }) =>
        built((site) => site.widget(header('accept-encoding'), header('if-none-match'))),
    },
  ]
}
