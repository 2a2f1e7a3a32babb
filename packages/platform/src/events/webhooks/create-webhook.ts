import { z } from 'zod'
import { ApiError } from '../../core/errors.ts'
import { endpoint } from '../../core/http/endpoint.ts'
import {
  checkUrl,
  fields,
  LAST_EVENT,
  makeSecret,
  openSecret,
  presentWebhook,
  SHOWN_AGAIN_MS,
  WEBHOOKS_MAX,
  webhookWithSecretShape,
  type WebhookRow,
} from './webhook.ts'
import type { Settings } from '../../core/settings/settings.ts'
import type { Environment } from '../../core/environment.ts'
import type { Database } from '../../core/database/pool.ts'
import type { Aml } from '../../custody/aml/aml.ts'
import type { Webhooks } from './webhooks.ts'

interface Services {
  settings: Pick<Settings, 'network'>
  environment: Environment
  database: Database
  aml: Aml
  webhooks: Webhooks
}

/**
 * Creates a webhook. If the same request is repeated within a minute, because its response was
 * lost, the same response is returned and no second webhook is created.
 */
export const createWebhook = endpoint({
  id: 'createWebhook',
  tag: 'Webhooks',
  description:
    'Creates an endpoint to which events are posted. The secret is returned only in this response.',
  errors: ['WEBHOOK_LIMIT'],
  method: 'POST',
  path: '/dac/v1/webhooks',
  summary: 'Create a webhook',
  access: 'write',
  audit: 'entry',
  body: z.strictObject({
    url: fields.url,
    events: fields.events,
    description: fields.description.optional(),
    disabled: fields.disabled.optional(),
    format: fields.format.optional(),
  }),
  response: webhookWithSecretShape,
  async handler({ caller, body }, services: Services) {
    const url = checkUrl(services, body.url)
    const id = services.environment.uuid()
    const { secret, sealed } = makeSecret(services, id)
    const { description = null, disabled = false, format = 'standard' } = body
    return services.database.transaction(async (tx) => {
      await tx.query('select 1 from sub_accounts where id = $1 for update', [caller.subAccountId])
      const now = tx.now()
      const others = await tx.query<WebhookRow>(
        `select * from webhooks where workspace_id = $2 and sub_account_id = $1
          and invoice_origin is null`,
        [caller.subAccountId, caller.workspaceId],
      )
      const same = others.find(
        (each) =>
          each.url === url &&
          each.format === format &&
          each.description === description &&
          each.events.join() === body.events.join() &&
          (each.disabled_at !== null) === disabled &&
          now.getTime() - each.created_at.getTime() < SHOWN_AGAIN_MS &&
          each.updated_at.getTime() === each.created_at.getTime(),
      )
      if (same)
        return {
          body: {
            ...presentWebhook(same, now.getTime()),
            secret: openSecret(services, same.id, same.sealed_secret),
          },
        }
      if (others.length >= WEBHOOKS_MAX) {
        throw new ApiError(
          'WEBHOOK_LIMIT',
          `a sub-account can have at most ${WEBHOOKS_MAX} webhooks; delete one that is no longer used`,
        )
      }
      const row = (await tx.one<WebhookRow>(
        `insert into webhooks (id, workspace_id, sub_account_id, url, events, description, format,
           disabled_at, disabled_reason,
           sealed_secret, secret_made_at, after_event, created_at, updated_at)
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, ${LAST_EVENT}, $11, $11) returning *`,
        [
          id,
          caller.workspaceId,
          caller.subAccountId,
          url,
          body.events,
          description,
          format,
          disabled ? now : null,
          disabled ? 'by request' : null,
          sealed,
          now,
        ],
      )) as WebhookRow
      return { body: { ...presentWebhook(row, now.getTime()), secret } }
    })
  },
})
