import { loadSite, NAME } from '@custody/console'
import type { Logger } from 'pino'
import { ApiError } from '../../core/errors.ts'
import type { Settings } from '../../core/settings/settings.ts'
import type { Database } from '../../core/database/pool.ts'
import type { Page } from '../../core/http/page.ts'
import { siteOr503 } from '../../core/http/site.ts'
import { getSnapshot, listSnapshots, presentSnapshot } from './store.ts'

interface Services {
  settings: Pick<Settings, 'reservesPublic'>
  database: Database
}

const LISTED_MAX = 50

/**
 * Checks that the operator allows reading this without a key; see
 * docs/production/proof-of-reserves.md.
 * @throws ApiError `NOT_FOUND`
 */
function assertPublic({ settings }: Pick<Services, 'settings'>, what: 'totals' | 'all'): void {
  const isShown = settings.reservesPublic === 'all' || settings.reservesPublic === what
  if (!isShown)
    throw new ApiError('NOT_FOUND', 'this installation does not publish it without authentication')
}

const json = (text: string, isLasting: boolean) => ({
  status: 200,
  body: text,
  headers: {
    'content-type': 'application/json; charset=utf-8',
    'x-content-type-options': 'nosniff',
    // A statement never changes, so shared caches may store it.
    'cache-control': isLasting ? 'public, max-age=300' : 'no-store',
    // Verifiers of statements may use a page on another origin.
    'access-control-allow-origin': '*',
  },
})

/**
 * Returns the public pages: published statements as JSON, and the page that displays them and
 * verifies a proof in the browser.
 */
export function reservesPages(log: Logger): Page<Services>[] {
  const built = siteOr503(
    NAME,
    loadSite,
    log,
    'the page of published reserves is not built; statements are available as JSON only',
  )
  return [
    {
      path: '/reserves',
      isCounted: false,
      handler({ header }, services: Pick<Services, 'settings'>) {
        assertPublic(services, 'totals')
        return built((site) => site.reserves(header('accept-encoding')))
      },
    },
    {
      path: '/reserves/index.json',
      isCounted: true,
      async handler(_context, services: Services) {
        assertPublic(services, 'totals')
        const rows = await listSnapshots(services.database, LISTED_MAX, 0)
        const statements = rows.map(({ id, created_at, hash }) => ({
          id,
          created_at: created_at.toISOString(),
          hash,
        }))
        return json(JSON.stringify({ statements }), false)
      },
    },
    {
      path: '/reserves/{id}.json',
      isCounted: true,
      async handler({ params }, services: Services) {
        assertPublic(services, 'totals')
        return json(
          JSON.stringify(
            presentSnapshot(await getSnapshot(services.database, params['id'] as string)),
          ),
          true,
        )
      },
    },
    {
      path: '/reserves/{id}/holdings.json',
      isCounted: true,
      async handler({ params }, services: Services) {
        assertPublic(services, 'all')
        const { id } = await getSnapshot(services.database, params['id'] as string)
        const row = await services.database.one<{ holdings: string }>(
          'select holdings from reserve_snapshots where id = $1',
          [id],
        )
        // The exact stored bytes are returned, because the statement contains their hash.
        return json((row as { holdings: string }).holdings, true)
      },
    },
  ]
}
