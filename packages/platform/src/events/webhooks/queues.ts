import type { Queryable } from '../../core/database/pool.ts'
import { SLOTS, type Queue, type Share } from './fair-queue.ts'

/**
 * Duration of a lease in milliseconds: maximum time of an attempt with its database writes, before
 * another process may repeat it.
 */
const LEASE_MS = 60_000

/** A delivery that is about to be sent, with the data of its webhook. */
export interface Claimed {
  id: string
  webhook_id: string
  workspace_id: string
  event_uid: string
  type: string
  object: string
  body: string
  tries: number
  tries_left: number
  lease_token: string
  url: string
  sealed_secret: Buffer
  sealed_previous_secret: Buffer | null
  previous_until: Date | null
  failures: number
}

/** SQL that counts the attempts in progress in every process. An expired lease does not count. */
const UNDER_WAY = `select d.webhook_id, d.workspace_id,
    count(*) filter (where d.tries = 1) fresh, count(*) filter (where d.tries > 1) again
  from webhook_deliveries d where d.lease_token is not null and d.next_at > $1 group by 1, 2`

/**
 * SQL condition for a first attempt that may start. Deliveries about one object are sent in order,
 * so none may start while an earlier one has not been attempted. It is a scalar subquery, which the
 * index of objects answers directly; a join would be planned over all waiting deliveries.
 */
const IS_FRESH = `d.status = 'pending' and d.tries = 0 and d.position = (
  select e.position from webhook_deliveries e where e.workspace_id = d.workspace_id and e.webhook_id = d.webhook_id and e.object = d.object
    and e.status = 'pending' and e.tries <= 1 and (e.tries = 0 or e.lease_token is not null) order by e.position limit 1)`

/**
 * SQL condition for a later attempt that is due. During an attempt, `next_at` is the end of its
 * lease.
 */
const IS_DUE = `d.status = 'pending' and d.tries > 0 and d.next_at <= $1`

/** Condition that a delivery `d` belongs to a webhook `r`. */
const OF_ROOM = 'd.workspace_id = r.workspace_id and d.webhook_id = r.id'

/** SQL expression for whether any delivery is waiting, now or for a later time. */
export const MAY_BE_DUE = `exists (select 1 from webhook_deliveries where status = 'pending')`

/**
 * Returns the webhooks with free slots, their waiting deliveries, and the number of attempts in
 * progress of their workspaces. Reads each webhook once.
 */
export async function readQueues(
  database: Queryable,
): Promise<{ queues: Queue[]; ofWorkspace: Map<string, number> }> {
  const rows = await database.query<{
    id: string
    workspace_id: string
    failures: number
    fresh: number
    again: number
    whole: number
    fresh_waits: number
    again_waits: number
  }>(
    `with recursive waiting as (
       (select workspace_id, webhook_id from webhook_deliveries where status = 'pending'
         order by workspace_id, webhook_id limit 1)
       union all
       select next.workspace_id, next.webhook_id from waiting w cross join lateral (
         select d.workspace_id, d.webhook_id from webhook_deliveries d
         where d.status = 'pending' and (d.workspace_id, d.webhook_id) > (w.workspace_id,
           w.webhook_id)
         order by d.workspace_id, d.webhook_id limit 1) next
     ), busy as materialized (${UNDER_WAY}), some_room as (
       select w.id, w.workspace_id, w.failures, coalesce(b.fresh, 0) fresh,
         coalesce(b.again, 0) again,
         (select coalesce(sum(o.fresh + o.again), 0) from busy o
           where o.workspace_id = w.workspace_id) whole
       from waiting join webhooks w on w.workspace_id = waiting.workspace_id
         and w.id = waiting.webhook_id
         left join busy b on b.webhook_id = w.id
       where w.disabled_at is null and (w.paused_until is null or w.paused_until <= $1)
     )
     select r.id, r.workspace_id, r.failures, r.fresh::int, r.again::int, r.whole::int,
       case when r.fresh >= case when r.failures > 0 then $4::int else $2::int end then 0 else (
         select count(*) from (select 1 from webhook_deliveries d where ${OF_ROOM} and ${IS_FRESH}
           limit $2::int) few
       ) end::int fresh_waits,
       case when r.again >= $3::int then 0 else (
         select count(*) from (select 1 from webhook_deliveries d where ${OF_ROOM} and ${IS_DUE}
           limit $3::int) few
       ) end::int again_waits
     from some_room r where r.whole < $5::int`,
    [database.now(), SLOTS.webhook, SLOTS.again, SLOTS.failingWebhook, SLOTS.workspace],
  )
  return {
    queues: rows
      .map((row) => ({
        webhook: row.id,
        workspace: row.workspace_id,
        failures: row.failures,
        inFlight: { fresh: row.fresh, again: row.again },
        waits: { fresh: row.fresh_waits, again: row.again_waits },
      }))
      .filter(({ waits }) => waits.fresh + waits.again > 0),
    ofWorkspace: new Map(rows.map(({ workspace_id, whole }) => [workspace_id, whole])),
  }
}

const TAKEN = `d.id, d.webhook_id, d.workspace_id, d.event_uid, d.type, d.object, d.body, d.tries, d.tries_left, d.lease_token,
  coalesce(d.url, w.url) url, w.sealed_secret, w.sealed_previous_secret, w.previous_until, w.failures`

/**
 * Leases the deliveries that the shares allow. If a process crashes, the lease expires and the
 * delivery is attempted again.
 */
export async function claim(
  database: Queryable,
  shares: readonly Share[],
  token: string,
): Promise<Claimed[]> {
  const now = database.now()
  const lease = new Date(now.getTime() + LEASE_MS)
  const take = (lane: 'fresh' | 'again', which: string, order: string) =>
    database.query<Claimed>(
      // The selection is materialized, so that it is evaluated once, whatever the plan of the join.
      `with mine as materialized (
       select share.workspace, c.id from unnest($6::uuid[], $3::uuid[], $4::int[]) share (workspace,
         webhook, places) cross join lateral (
         select d.id from webhook_deliveries d where d.workspace_id = share.workspace
           and d.webhook_id = share.webhook and ${which}
         order by ${order} limit share.places for update skip locked
       ) c
     ) update webhook_deliveries d set tries = d.tries + 1, lease_token = $5, next_at = $2,
       updated_at = $1
     from mine, webhooks w where d.workspace_id = mine.workspace and d.id = mine.id
       and w.workspace_id = mine.workspace and w.id = d.webhook_id and w.disabled_at is null
     returning ${TAKEN}`,
      [
        now,
        lease,
        shares.map(({ webhook }) => webhook),
        shares.map((share) => share[lane]),
        token,
        shares.map(({ workspace }) => workspace),
      ],
    )
  const [fresh, again] = await Promise.all([
    shares.some((share) => share.fresh > 0) ? take('fresh', IS_FRESH, 'd.position') : [],
    shares.some((share) => share.again > 0) ? take('again', IS_DUE, 'd.next_at, d.position') : [],
  ])
  return [...fresh, ...again]
}

/**
 * Leases one delivery for an immediate attempt, whatever its turn; null if an attempt is in
 * progress, or the webhook has no free slot.
 */
export async function claimOne(
  database: Queryable,
  workspace: string,
  id: string,
  token: string,
): Promise<Claimed | null> {
  const now = database.now()
  return (
    (await database.one<Claimed>(
      `update webhook_deliveries d set tries = d.tries + 1, lease_token = $3, next_at = $4,
        updated_at = $1
     from webhooks w where d.workspace_id = $6 and d.id = $2 and w.workspace_id = $6
       and w.id = d.webhook_id
       and d.status = 'pending' and (d.lease_token is null or d.next_at <= $1)
       and (select count(*) from webhook_deliveries o
         where o.workspace_id = $6 and o.webhook_id = d.webhook_id and o.lease_token is not null
           and o.next_at > $1) < $5
     returning ${TAKEN}`,
      [now, id, token, new Date(now.getTime() + LEASE_MS), SLOTS.webhook, workspace],
    )) ?? null
  )
}
