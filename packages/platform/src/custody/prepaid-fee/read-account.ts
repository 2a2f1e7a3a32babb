import { z } from 'zod'
import { WORD_MAX } from '../../core/bounds.ts'
import { endpoint } from '../../core/http/endpoint.ts'
import { accountOf } from './account.ts'
import type { Settings } from '../../core/settings/settings.ts'
import type { Environment } from '../../core/environment.ts'
import type { Database } from '../../core/database/pool.ts'

interface Services {
  settings: Pick<Settings, 'prepaidTiers'>
  environment: Environment
  database: Database
}

/**
 * Returns the workspace's prepaid fee account. The API defines it as a POST, but it changes
 * nothing.
 */
export const readPrepaidFee = endpoint({
  id: 'readPrepaidFee',
  tag: 'Prepaid fee account',
  description:
    'Returns the balance, tier and fees of the workspace’s USD account, from which platform fees are charged. This account is not a wallet. The operation writes nothing.',
  method: 'POST',
  path: '/dac/v1/prepaid-fee',
  summary: 'Read the prepaid fee account',
  access: 'read',
  body: z.strictObject({}),
  response: z.object({
    balance: z.number(),
    reserved: z.number(),
    currency: z.literal('USD'),
    status: z.enum(['ok', 'low', 'empty']),
    tier: z.string().max(WORD_MAX),
    fees: z.object({
      basis_points: z.int().min(0).max(10_000),
      percent: z.number().min(0).max(100).meta({ format: 'double' }),
      minimum: z.number(),
      monthly: z.number(),
    }),
    volume_30d: z.number(),
  }),
  async handler({ caller }, services: Services) {
    return { body: await accountOf(services, caller.workspaceId) }
  },
})
