import { z } from 'zod'
import { ASSETS_MAX } from '../../core/bounds.ts'
import { endpoint } from '../../core/http/endpoint.ts'
import { assetShape, assetsForCallers } from './list-assets.ts'
import type { Settings } from '../../core/settings/settings.ts'
import type { Registry } from '@custody/chains'
import type { Database } from '../../core/database/pool.ts'
import type { Networks } from '../../core/engine/networks.ts'

interface Services {
  settings: Pick<Settings, 'allowDeprecated'>
  database: Database
  registry: Registry
  networks: Networks
}

/** `GET /assets` with authentication. */
export const getSupportedAssets = endpoint({
  id: 'listSupportedAssets',
  tag: 'Assets',
  description: 'Returns the same list as `GET /assets`, for callers that sign every request.',
  method: 'GET',
  path: '/dac/v1/supported-assets',
  summary: 'List assets of the workspace',
  access: 'read',
  query: z.strictObject({}),
  response: z.array(assetShape).max(ASSETS_MAX),
  handler: async (_context, services: Services) => ({ body: await assetsForCallers(services) }),
})
