import { z } from 'zod'
import type { Database } from '../../../core/database/pool.ts'
import { panelEndpoint } from '../../people/endpoint.ts'
import { SUB_ACCOUNT, subAccountParams } from '../mirror.ts'
import { readWaiting as countWaiting } from './waiting.ts'

/** Returns how many requests for approvals are open, for the navigation. */
export const readWaiting = panelEndpoint({
  method: 'GET',
  path: `${SUB_ACCOUNT}/waiting`,
  summary: 'Count what waits for approvals',
  needs: 'viewer',
  params: z.strictObject(subAccountParams),
  response: z.object({
    transfers: z.int().meta({ description: 'Transfers and stakes of the sub-account' }),
    rules: z.int().meta({ description: 'Forwarding rules of the sub-account' }),
    changes: z.int().meta({ description: 'Policy changes of the workspace' }),
  }),
  handler: async ({ caller }, { database }: { database: Database }) => ({
    body: await countWaiting(database, caller),
  }),
})
