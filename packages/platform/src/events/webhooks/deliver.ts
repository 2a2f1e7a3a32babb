import { reasonOf } from '@custody/chains/reason'
import type { Queryable, Database } from '../../core/database/pool.ts'
import type { Loop } from '../../core/engine/loops/loop.ts'
import type { Settings } from '../../core/settings/settings.ts'
import type { Environment } from '../../core/environment.ts'
import type { Metrics } from '../../core/metrics.ts'
import type { Logger } from 'pino'
import type { Aml } from '../../custody/aml/aml.ts'
import type { Webhooks } from './webhooks.ts'
import { eventPollMs } from '../events/publish.ts'
import { emit } from '../../core/ledger/post.ts'
import { allocateSlots, SLOTS } from './fair-queue.ts'
import { claim, MAY_BE_DUE, readQueues, type Claimed } from './queues.ts'
import { delayBefore, FAILURES_MAX, pauseAfter } from './schedule.ts'
import { ATTEMPTS_MAX } from './delivery.ts'
import type { Answer } from './send.ts'
import { headersFor } from './sign.ts'
import { secretsAt } from './webhook.ts'

interface Services {
  settings: Pick<Settings, 'pollMs'>
  environment: Environment
  database: Database
  metrics: Metrics
  log: Logger
  aml: Aml
  webhooks: Webhooks
}

/**
 * Delay in milliseconds after a delivery could not be prepared, which is not a failure of its
 * receiver.
 */
const UNREADY_MS = 30_000
const GONE = 410
const CHANCES = 2 ** 32

/**
 * Creates the loop that sends waiting deliveries in this process, until the signal; attempts in
 * progress are then aborted and repeated at the next start.
 */
export function deliverLoop(services: Services): Loop {
  const inFlight = new Map<Promise<void>, boolean>()
  const { due } = services.webhooks
  return {
    name: 'deliver webhooks',
    everyMs: eventPollMs(services),
    due: MAY_BE_DUE,
    notifier: due,
    async run(signal) {
      const begun = inFlight.size < SLOTS.all ? await begin(services, inFlight, signal) : 0
      // If no attempt can be started, the loop waits for the attempts in progress, so that they
      // have ended when it ends.
      if (begun === 0 && inFlight.size > 0) await due.wait(eventPollMs(services), signal)
      if (signal.aborted) await Promise.all(inFlight.keys())
      return begun > 0 || inFlight.size > 0
    },
  }
}

/**
 * Starts the attempts that may start.
 * @param inFlight attempts in progress, with whether their webhook is failing
 * @returns the number of started attempts
 */
async function begin(
  services: Services,
  inFlight: Map<Promise<void>, boolean>,
  signal: AbortSignal,
): Promise<number> {
  const { queues, ofWorkspace } = await readQueues(services.database)
  if (queues.length === 0) return 0
  const failing = [...inFlight.values()].filter(Boolean).length
  const shares = allocateSlots(queues, { inFlight: inFlight.size, failing, ofWorkspace })
  if (shares.length === 0) return 0
  const token = services.environment.uuid()
  const claimed = await claim(services.database, shares, token)
  services.environment.checkpoint('webhooks.claimed')
  for (const delivery of claimed) {
    const done = attempt(services, delivery, signal)
      .then(
        () => undefined,
        (error: unknown) => {
          const err = reasonOf(error)
          services.log.warn(
            { delivery: delivery.id, err },
            'the outcome of a webhook delivery could not be stored; the event is delivered again',
          )
        },
      )
      .finally(() => {
        inFlight.delete(done)
        services.webhooks.due.ring()
      })
    inFlight.set(done, delivery.failures > 0)
  }
  return claimed.length
}

/**
 * Makes one attempt of a delivery that this process has leased. If the process crashes, the
 * delivery is sent again with the same ID.
 */
export async function attempt(
  services: Services,
  delivery: Claimed,
  signal: AbortSignal,
): Promise<void> {
  const { database, environment, webhooks } = services
  const at = environment.now()
  let headers: Record<string, string>
  try {
    headers = await headersFor({
      id: delivery.event_uid,
      body: delivery.body,
      now: at,
      key: (await webhooks.key()).privateKey,
      secrets: secretsAt(services, { ...delivery, id: delivery.webhook_id }, at),
    })
  } catch (error) {
    services.log.error(
      { webhook: delivery.webhook_id, err: reasonOf(error) },
      'a webhook delivery cannot be signed; it waits until it can be signed',
    )
    return release(database, delivery, UNREADY_MS)
  }
  const answer = await webhooks.sender.post(delivery.url, headers, delivery.body, signal)
  environment.checkpoint('webhooks.sent')
  if (answer === null) return release(database, delivery, 0)
  const shown = {
    at: new Date(at).toISOString(),
    duration_ms: answer.durationMs,
    url: delivery.url,
    status: answer.status,
    error: answer.error,
    answer: answer.text,
  }
  services.metrics.deliveries
    .labels(answer.error === null ? 'delivered' : delivery.tries_left > 1 ? 'failed' : 'given_up')
    .inc()
  if (answer.error === null) await delivered(database, delivery, shown)
  else await services.database.transaction((tx) => failed(services, tx, delivery, shown, answer))
  environment.checkpoint('webhooks.recorded')
}

/** SQL for the list of attempts with one more. */
const MORE = `(select coalesce(jsonb_agg(a order by n), '[]') from (
  select a, n from jsonb_array_elements(attempts || $3::jsonb) with ordinality t (a, n) order by n desc limit ${ATTEMPTS_MAX}) latest)`

async function delivered(
  database: Queryable,
  { id, lease_token: token, workspace_id: workspace }: Claimed,
  shown: object,
): Promise<void> {
  await database.query(
    `with done as (
       update webhook_deliveries set status = 'delivered', attempts = ${MORE}, next_at = null,
         lease_token = null, updated_at = $4
       where workspace_id = $5 and id = $1 and lease_token = $2 returning webhook_id
     ) update webhooks set failures = 0, paused_until = null
       where workspace_id = $5 and failures > 0 and id in (select webhook_id from done)`,
    [id, token, JSON.stringify([shown]), database.now(), workspace],
  )
}

/**
 * Schedules another attempt, if any is left; disables the webhook if the receiver is gone or fails
 * repeatedly.
 */
async function failed(
  services: Services,
  tx: Queryable,
  delivery: Claimed,
  shown: object,
  answer: Answer,
): Promise<void> {
  const now = tx.now()
  const left = delivery.tries_left - 1
  const chance = Buffer.from(services.environment.bytes(4)).readUInt32BE() / CHANCES
  const next =
    left > 0 ? new Date(now.getTime() + delayBefore(left, chance, answer.retryAfterMs)) : null
  const written = await tx.query(
    `update webhook_deliveries set attempts = ${MORE}, tries_left = $4, next_at = $5,
       lease_token = null, updated_at = $6,
       status = case when $5::timestamptz is null then 'failed' else 'pending' end
     where workspace_id = $7 and id = $1 and lease_token = $2 returning 1`,
    [
      delivery.id,
      delivery.lease_token,
      JSON.stringify([shown]),
      left,
      next,
      now,
      delivery.workspace_id,
    ],
  )
  // Another process has leased the delivery since then, and its result counts.
  if (written.length === 0) return
  const { webhook_id: id, workspace_id: workspace } = delivery
  const hook = await tx.one<{
    failures: number
    disabled_at: Date | null
    sub_account_id: string
    url: string
  }>(
    `update webhooks set failures = failures + 1 where workspace_id = $2 and id = $1
     returning failures, disabled_at, sub_account_id, url`,
    [id, workspace],
  )
  if (!hook) return
  const pauseMs = pauseAfter(hook.failures)
  if (pauseMs > 0) {
    await tx.query('update webhooks set paused_until = $2 where workspace_id = $3 and id = $1', [
      id,
      new Date(now.getTime() + pauseMs),
      workspace,
    ])
  }
  const reason =
    answer.status === GONE
      ? 'the receiver responded with 410 (gone)'
      : hook.failures >= FAILURES_MAX
        ? `${hook.failures} consecutive attempts failed; the last one: ${answer.error ?? ''}`
        : null
  if (reason === null || hook.disabled_at !== null) return
  await disable(services, tx, delivery, { ...hook, reason, at: now })
}

/** Disables a webhook and emits the event about it. */
async function disable(
  services: Services,
  tx: Queryable,
  { webhook_id: id, workspace_id: workspace }: Claimed,
  hook: { failures: number; sub_account_id: string; url: string; reason: string; at: Date },
): Promise<void> {
  const { reason, at } = hook
  await tx.query(
    `update webhooks set disabled_at = $2, disabled_reason = $3, updated_at = $2
      where workspace_id = $4 and id = $1`,
    [id, at, reason, workspace],
  )
  await emit(
    tx,
    workspace,
    hook.sub_account_id,
    'webhook.disabled',
    JSON.stringify({
      id,
      url: hook.url,
      reason,
      failures: hook.failures,
      disabled_at: at.toISOString(),
    }),
  )
  services.log.warn({ webhook: id, reason }, 'a webhook was disabled')
}

/** Releases a delivery whose attempt was not completed. */
async function release(
  database: Queryable,
  { id, lease_token: token, workspace_id: workspace }: Claimed,
  waitMs: number,
): Promise<void> {
  const now = database.now()
  await database.query(
    `update webhook_deliveries set next_at = $3, lease_token = null, updated_at = $4
     where workspace_id = $5 and id = $1 and lease_token = $2`,
    [id, token, new Date(now.getTime() + waitMs), now, workspace],
  )
}
