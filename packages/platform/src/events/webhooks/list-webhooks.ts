import { z } from 'zod'
import { endpoint } from '../../core/http/endpoint.ts'
import { presentWebhook, WEBHOOKS_MAX, webhookShape, type WebhookRow } from './webhook.ts'

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
  async handler({ services, caller }) {
    const rows = await services.database.query<WebhookRow>(
      `select * from webhooks where workspace_id = $2 and sub_account_id = $1 order by created_at,
        id`,
      [caller.subAccountId, caller.workspaceId],
    )
    return { body: { data: rows.map((row) => presentWebhook(row, services.environment.now())) } }
  },
})
