import { endpoint } from '../../core/http/endpoint.ts'
import { findWebhook, idParam, presentWebhook, webhookShape } from './webhook.ts'
import type { Environment } from '../../core/environment.ts'
import type { Database } from '../../core/database/pool.ts'

interface Services {
  environment: Environment
  database: Database
}

export const readWebhook = endpoint({
  id: 'readWebhook',
  tag: 'Webhooks',
  description: 'Returns one webhook.',
  errors: ['FORBIDDEN', 'NOT_FOUND'],
  method: 'GET',
  path: '/dac/v1/webhooks/{id}',
  summary: 'Read a webhook',
  access: 'read',
  params: idParam,
  response: webhookShape,
  async handler({ caller, params }, services: Services) {
    return {
      body: presentWebhook(
        await findWebhook(services.database, caller, params.id),
        services.environment.now(),
      ),
    }
  },
})
