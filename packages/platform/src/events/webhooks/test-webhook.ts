import { ApiError } from '../../core/errors.ts'
import { endpoint } from '../../core/http/endpoint.ts'
import { emit } from '../../core/ledger/post.ts'
import { publish } from '../events/publish.ts'
import { attempt } from './deliver.ts'
import { deliveryShape, presentDelivery, type DeliveryRow } from './delivery.ts'
import { distributorOf } from './distribute.ts'
import { claimOne } from './queues.ts'
import { findWebhook, idParam } from './webhook.ts'
import type { Settings } from '../../core/settings/settings.ts'
import type { Environment } from '../../core/environment.ts'
import type { Database } from '../../core/database/pool.ts'
import type { Registry } from '@custody/chains'
import type { Metrics } from '../../core/metrics.ts'
import type { Logger } from 'pino'
import type { Notifier } from '../../core/ledger/notifier.ts'
import type { LoadMonitor } from '../../core/load-monitor.ts'
import type { Feed } from '../../core/ledger/feed.ts'
import type { Aml } from '../../custody/aml/aml.ts'
import type { Webhooks } from './webhooks.ts'

interface Services {
  settings: Pick<Settings, 'pollMs'>
  environment: Environment
  database: Database
  registry: Registry
  metrics: Metrics
  log: Logger
  outbox: Notifier
  pressure: LoadMonitor
  feed: Feed
  aml: Aml
  webhooks: Webhooks
}

/** Maximum number of batches of the publisher, which publishes the oldest events first. */
const ROUNDS_MAX = 20

/**
 * Sends a `webhook.test` once to a webhook, even if it is disabled or not subscribed, and returns
 * the result.
 */
export const testWebhook = endpoint({
  id: 'testWebhook',
  tag: 'Webhooks',
  description: 'Sends `webhook.test` to the webhook immediately and returns the delivery.',
  errors: ['FORBIDDEN', 'NOT_FOUND'],
  method: 'POST',
  path: '/dac/v1/webhooks/{id}/test',
  summary: 'Send a test event to a webhook',
  access: 'write',
  audit: { not: 'it changes nothing' },
  params: idParam,
  response: deliveryShape,
  async handler({ caller, params }, services: Services) {
    const { database, environment } = services
    const { id, url } = await findWebhook(database, caller, params.id)
    const before = await database.one<{ id: string }>(
      `select coalesce(max(position), 0)::text id from webhook_deliveries
       where workspace_id = $2 and webhook_id = $1 and type = 'webhook.test'`,
      [id, caller.workspaceId],
    )
    await emit(
      database,
      caller.workspaceId,
      caller.subAccountId,
      'webhook.test',
      JSON.stringify({ id, url }),
    )
    const find = () =>
      database.one<DeliveryRow>(
        `select * from webhook_deliveries where workspace_id = $3 and webhook_id = $1
          and type = 'webhook.test' and position > $2
       order by position limit 1`,
        [id, before?.id ?? '0', caller.workspaceId],
      )
    let made = await find()
    for (let round = 0; !made && round < ROUNDS_MAX; round++) {
      await publish(services, distributorOf(services))
      made = await find()
    }
    const busy = () =>
      new ApiError(
        'UNAVAILABLE',
        'id: too many deliveries wait for this webhook; the test is sent after them',
        { field: 'id' },
      )
    if (!made) throw busy()
    const claimed = await claimOne(database, caller.workspaceId, made.id, environment.uuid())
    if (claimed) await attempt(services, claimed, new AbortController().signal)
    const row = await database.one<DeliveryRow>(
      'select * from webhook_deliveries where workspace_id = $2 and id = $1',
      [made.id, caller.workspaceId],
    )
    if (!row) throw new ApiError('NOT_FOUND', 'id: the webhook was deleted', { field: 'id' })
    return { body: presentDelivery(row) }
  },
})
