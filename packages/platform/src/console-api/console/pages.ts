import { loadSite, NAME } from '@custody/console'
import type { Logger } from 'pino'
import { ApiError } from '../../core/errors.ts'
import type { Page } from '../../core/http/page.ts'
import { siteOr503 } from '../../core/http/site.ts'

/**
 * Returns the control panel's page and files. The same page is served for every path below
 * /console, and reads the path itself.
 */
export function consolePages(log: Logger): Page<unknown>[] {
  const built = siteOr503(
    NAME,
    loadSite,
    log,
    'the pages of the control panel are not built; the API is available',
  )
  const page: Page<unknown>['handler'] = ({ params, header }) => {
    if (/^api(?:\/|$)/.test(params['*'] ?? ''))
      throw new ApiError('NOT_FOUND', 'the control panel has no such route')
    return built((site) => site.page(header('accept-encoding')))
  }
  return [
    { path: '/console', isCounted: false, handler: page },
    { path: '/console/*', isCounted: false, handler: page },
    {
      path: '/console/assets/{name}',
      isCounted: false,
      handler: ({ params, header }) =>
        built((site) => {
          const match = site.asset(params['name'] as string, header('accept-encoding'))
          if (!match) throw new ApiError('NOT_FOUND', 'the control panel has no such file')
          return match
        }),
    },
  ]
}
