import { z } from 'zod'
import { ApiError } from '../../core/errors.ts'
import { endpoint, type Caller, type Reply } from '../../core/http/endpoint.ts'
import type { Database } from '../../core/database/pool.ts'
import type { Webhooks } from './webhooks.ts'
import { pathId } from '../../core/http/schemas.ts'
import { deliveryShape, findDelivery, presentDelivery, type DeliveryRow } from './delivery.ts'
import { findWebhook } from './webhook.ts'

interface Services {
  database: Database
  webhooks: Webhooks
}

/**
 * Schedules another attempt of a delivery, with the same `webhook-id` and the same bytes. It is
 * sent in its turn, which is immediately if the queue is empty.
 */
async function resend(
  services: Services,
  caller: Caller,
  webhook: string | null,
  input: string,
): Promise<Reply> {
  const { database } = services
  const existing = await findDelivery(database, caller, webhook, input)
  const { disabled_at: disabledAt } = await findWebhook(database, caller, existing.webhook_id)
  if (disabledAt !== null) {
    throw new ApiError(
      'WEBHOOK_DISABLED',
      'id: the webhook is disabled; enable it by PATCH {"disabled": false}',
      { field: 'id' },
    )
  }
  // A delivery with an attempt in progress is being sent already.
  const row = await database.one<DeliveryRow>(
    `update webhook_deliveries set status = 'pending', next_at = $2, updated_at = $2,
       tries = greatest(tries, 1),
       tries_left = case when status = 'pending' then tries_left else 1 end
     where workspace_id = $3 and id = $1 and lease_token is null returning *`,
    [existing.id, database.now(), caller.workspaceId],
  )
  services.webhooks.due.ring()
  return { body: presentDelivery(row ?? (await findDelivery(database, caller, webhook, input))) }
}

export const resendDelivery = endpoint({
  id: 'resendDelivery',
  tag: 'Webhooks',
  description: 'Sends the same bytes with the same `webhook-id` again.',
  errors: ['FORBIDDEN', 'NOT_FOUND', 'WEBHOOK_DISABLED'],
  method: 'POST',
  path: '/dac/v1/webhooks/deliveries/{delivery}/resend',
  summary: 'Resend a delivery',
  access: 'write',
  audit: { not: 'it repeats deliveries that were made before' },
  params: z.strictObject({ delivery: pathId }),
  response: deliveryShape,
  handler: async ({ caller, params }, services: Services) =>
    resend(services, caller, null, params.delivery),
})

export const resendDeliveryOf = endpoint({
  id: 'resendDeliveryOfWebhook',
  tag: 'Webhooks',
  description: 'Sends the same bytes with the same `webhook-id` again.',
  errors: ['FORBIDDEN', 'NOT_FOUND', 'WEBHOOK_DISABLED'],
  method: 'POST',
  path: '/dac/v1/webhooks/{id}/deliveries/{delivery}/resend',
  summary: 'Resend a delivery of a webhook',
  access: 'write',
  audit: { not: 'it repeats deliveries that were made before' },
  params: z.strictObject({ id: pathId, delivery: pathId }),
  response: deliveryShape,
  handler: async ({ caller, params }, services: Services) =>
    resend(services, caller, params.id, params.delivery),
})
