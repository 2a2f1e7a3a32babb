import type { Environment } from '../../../../core/environment.ts'
import type { Database } from '../../../../core/database/pool.ts'
import type { Metrics } from '../../../../core/metrics.ts'

interface Services {
  environment: Environment
  database: Database
  metrics: Metrics
}

interface Waiting {
  count: string
  age_s: string | null
}

/**
 * Collects the number of events that have no position in the log yet, of pending deliveries, and of
 * disabled webhooks.
 */
export async function collectEvents({ database, metrics, environment }: Services): Promise<void> {
  const now = new Date(environment.now())
  const [events, deliveries, webhooks] = await Promise.all([
    database.one<Waiting>(
      `select count(*)::text, extract(epoch from $1::timestamptz - min(created_at))::text age_s
        from events where position is null`,
      [now],
    ),
    database.one<Waiting>(
      `select count(*)::text,
        extract(epoch from $1::timestamptz - min(d.created_at) filter (where w.disabled_at is null))::text age_s
       from webhook_deliveries d join webhooks w on w.workspace_id = d.workspace_id
         and w.id = d.webhook_id
       where d.status = 'pending'`,
      [now],
    ),
    database.one<{ count: string }>(
      'select count(*)::text from webhooks where disabled_at is not null',
    ),
  ])
  metrics.eventsWaiting.set(Number(events?.count))
  metrics.eventsAge.set(Number(events?.age_s ?? 0))
  metrics.webhooksWaiting.set(Number(deliveries?.count))
  metrics.webhooksAge.set(Number(deliveries?.age_s ?? 0))
  metrics.webhooksDisabled.set(Number(webhooks?.count))
}
