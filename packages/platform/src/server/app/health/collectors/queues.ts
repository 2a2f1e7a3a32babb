import type { Database } from '../../../../core/database/pool.ts'
import type { Metrics } from '../../../../core/metrics.ts'

interface Services {
  database: Database
  metrics: Metrics
}

export async function collectQueues({ database, metrics }: Services): Promise<void> {
  const [waiting, rules, suspense, orders] = await Promise.all([
    // Only pending work is counted: the index of due work contains nothing else.
    database.query<{ kind: string; state: string; count: string; age_s: string }>(
      `select kind, state, count(*)::text,
        extract(epoch from $1::timestamptz - min(created_at))::text age_s
        from transactions where next_run_at is not null group by 1, 2`,
      [database.now()],
    ),
    // Forwarding rules that wait for approvals are no transactions, but people are waited for alike.
    database.one<{ count: string; age_s: string }>(
      `select count(*)::text, extract(epoch from $1::timestamptz - min(created_at))::text age_s
       from approval_requests where is_rule and state = 'open'`,
      [database.now()],
    ),
    database.query<{ network: string; count: string }>(
      `select network, count(*)::text from transactions where status = 'pending'
        and state = 'SUSPENSE' group by 1`,
    ),
    database.query<{ exchange: string; status: string; count: string }>(
      `select exchange, status, count(*)::text from orders where next_run_at is not null group by 1,
        2`,
    ),
  ])
  metrics.waiting.reset()
  metrics.waitingAge.reset()
  for (const { kind, state, count, age_s } of waiting) {
    metrics.waiting.labels(kind, state).set(Number(count))
    metrics.waitingAge.labels(kind, state).set(Number(age_s))
  }
  if (rules && rules.count !== '0') {
    metrics.waiting.labels('FORWARD_RULE', 'APPROVAL').set(Number(rules.count))
    metrics.waitingAge.labels('FORWARD_RULE', 'APPROVAL').set(Number(rules.age_s))
  }
  metrics.suspense.reset()
  for (const { network, count } of suspense) metrics.suspense.labels(network).set(Number(count))
  metrics.ordersWaiting.reset()
  for (const { exchange, status, count } of orders)
    metrics.ordersWaiting.labels(exchange, status).set(Number(count))
}
