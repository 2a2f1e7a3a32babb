import { z } from 'zod'
import { endpoint } from '../../core/http/endpoint.ts'
import { presentWebhook, WEBHOOKS_MAX, webhookShape, type WebhookRow } from './webhook.ts'
import type { Environment } from '../../core/environment.ts'
import type { Database } from '../../core/database/pool.ts'

interface Services {
  environment: Environment
  database: Database
}

/**
 * Lists the webhooks of the caller's sub-account, oldest first. There are never many, so the list
 * has no pages.
 */
export const listWebhooks = endpoint({
  id: 'listWebhooks',
  tag: 'Webhooks',
  description: 'Returns every webhook of the workspace with the state of its deliveries.',
  method: 'GET',
  path: '/dac/v1/webhooks',
  summary: 'List webhooks',
  access: 'read',
  query: z.strictObject({}),
  response: z.object({ data: z.array(webhookShape).max(WEBHOOKS_MAX) }),
  async handler({ caller }, services: Services) {
    const rows = await services.database.query<WebhookRow>(
      `select * from webhooks where workspace_id = $2 and sub_account_id = $1 order by created_at,
        id`,
      [caller.subAccountId, caller.workspaceId],
    )
    return { body: { data: rows.map((row) => presentWebhook(row, services.environment.now())) } }
  },
})
