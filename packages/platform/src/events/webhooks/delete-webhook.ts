import { emptyBody } from '@custody/request-auth/bodies'
import { z } from 'zod'
import { ID_MAX } from '../../core/bounds.ts'
import { endpoint } from '../../core/http/endpoint.ts'
import { findWebhook, idParam } from './webhook.ts'
import type { Database } from '../../core/database/pool.ts'

interface Services {
  database: Database
}

/**
 * Deletes a webhook with its deliveries; waiting deliveries are not sent. The body is `{}`, because
 * a signature need not cover the method and without a body it would also be valid for a GET.
 */
export const deleteWebhook = endpoint({
  id: 'deleteWebhook',
  tag: 'Webhooks',
  description: 'Stops all deliveries to the webhook and deletes its delivery history.',
  errors: ['FORBIDDEN', 'NOT_FOUND'],
  method: 'DELETE',
  path: '/dac/v1/webhooks/{id}',
  summary: 'Delete a webhook',
  access: 'write',
  audit: 'entry',
  params: idParam,
  body: emptyBody,
  response: z.object({ id: z.string().max(ID_MAX), deleted: z.literal(true) }),
  async handler({ caller, params }, services: Services) {
    const { id } = await findWebhook(services.database, caller, params.id)
    await services.database.query('delete from webhooks where workspace_id = $2 and id = $1', [
      id,
      caller.workspaceId,
    ])
    return { body: { id, deleted: true } }
  },
})
