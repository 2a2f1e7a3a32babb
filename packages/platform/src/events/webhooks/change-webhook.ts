import { z } from 'zod'
import { endpoint } from '../../core/http/endpoint.ts'
import { CHANGES_NOTHING, changesSomething } from '../../core/http/schemas.ts'
import { GIVEN_UP_AFTER_MS } from './schedule.ts'
import {
  checkUrl,
  fields,
  findWebhook,
  idParam,
  LAST_EVENT,
  presentWebhook,
  webhookShape,
  type WebhookRow,
} from './webhook.ts'
import type { Settings } from '../../core/settings/settings.ts'
import type { Environment } from '../../core/environment.ts'
import type { Database } from '../../core/database/pool.ts'
import type { Webhooks } from './webhooks.ts'

interface Services {
  settings: Pick<Settings, 'network'>
  environment: Environment
  database: Database
  webhooks: Webhooks
}

/**
 * Changes the given fields of a webhook. When a webhook is enabled again, its waiting deliveries
 * are sent, if they have attempts left.
 */
export const changeWebhook = endpoint({
  id: 'changeWebhook',
  tag: 'Webhooks',
  description: 'Changes the URL, the event types, or whether the webhook is disabled.',
  errors: ['FORBIDDEN', 'NOT_FOUND'],
  example: { events: ['transaction.*', 'deposit.*'] },
  method: 'PATCH',
  path: '/dac/v1/webhooks/{id}',
  summary: 'Change a webhook',
  access: 'write',
  audit: 'entry',
  params: idParam,
  body: z
    .strictObject({
      url: fields.url.optional(),
      events: fields.events.optional(),
      description: fields.description.optional(),
      disabled: fields.disabled.optional(),
      format: fields.format.optional(),
    })
    .refine(changesSomething, CHANGES_NOTHING)
    .meta({ minProperties: 1 }),
  response: webhookShape,
  async handler({ caller, params, body }, services: Services) {
    const url = body.url === undefined ? null : checkUrl(services, body.url)
    const row = await services.database.transaction(async (tx) => {
      const { id, disabled_at: disabledAt } = await findWebhook(tx, caller, params.id, true)
      const now = tx.now()
      const isEnabled = disabledAt !== null && body.disabled === false
      const isDisabled = disabledAt === null && body.disabled === true
      if (isEnabled) {
        await tx.query(
          `update webhook_deliveries set status = 'failed', next_at = null, updated_at = $2
           where workspace_id = $4 and webhook_id = $1 and status = 'pending' and created_at < $3`,
          [id, now, new Date(now.getTime() - GIVEN_UP_AFTER_MS), caller.workspaceId],
        )
      }
      return tx.one<WebhookRow>(
        `update webhooks set url = coalesce($2, url), events = coalesce($3, events),
           description = coalesce($4, description),
           format = coalesce($5, format), failures = case when $6 or $2 is not null then 0
             else failures end,
           paused_until = case when $6 or $2 is not null then null else paused_until end,
           after_event = case when $6 then ${LAST_EVENT} else after_event end,
           disabled_at = case when $6 then null when $7 then $8 else disabled_at end,
           disabled_reason = case when $6 then null when $7 then 'by request' else disabled_reason
             end, updated_at = $8
         where workspace_id = $9 and id = $1 returning *`,
        [
          id,
          url,
          body.events ?? null,
          body.description ?? null,
          body.format ?? null,
          isEnabled,
          isDisabled,
          now,
          caller.workspaceId,
        ],
      )
    })
    services.webhooks.due.ring()
    return { body: presentWebhook(row as WebhookRow, services.environment.now()) }
  },
})
