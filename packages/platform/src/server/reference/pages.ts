import { loadSite, NAME } from '@custody/reference'
import type { Logger } from 'pino'
import { ApiError } from '../../core/errors.ts'
import type { Page } from '../../core/http/page.ts'
import { siteOr503 } from '../../core/http/site.ts'
import { errorsPage } from './errors-page.ts'

/** Returns the API reference, its files, and the page that the `type` of every error refers to. */
export function referencePages(log: Logger): Page<unknown>[] {
  const built = siteOr503(
    NAME,
    loadSite,
    log,
    'the pages of the API reference are not built; the API is available',
  )
  const errors = errorsPage()
  return [
    {
      path: '/reference',
      isCounted: false,
      handler: ({ header }) => built((site) => site.page(header('accept-encoding'))),
    },
    {
      path: '/reference/errors',
      isCounted: false,
      handler: () => built((site) => site.plain('Errors', errors)),
    },
    {
      path: '/reference/assets/{name}',
      isCounted: false,
      handler: ({ params, header }) =>
        built((site) => {
          const match = site.asset(params['name'] as string, header('accept-encoding'))
          if (!match) throw new ApiError('NOT_FOUND', 'the reference has no such file')
          return match
        }),
    },
  ]
}
