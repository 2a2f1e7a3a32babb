import { stringifyJson } from '@custody/request-auth'
import type { Queryable } from '../../core/database/pool.ts'
import type { Environment } from '../../core/environment.ts'
import type { Registry } from '@custody/chains'
import type { Logger } from 'pino'
import type { Aml } from '../../custody/aml/aml.ts'
import type { Webhooks } from './webhooks.ts'
import { typesOf } from '../events/filter.ts'
import { messageOf } from '../events/log.ts'
import type { Distributor, Published } from '../events/publish.ts'
import { classicData } from './classic.ts'
import { invoiceReceivers } from './invoice-urls.ts'
import { TRIES_MAX } from './schedule.ts'
import type { WebhookRow } from './webhook.ts'

interface Services {
  environment: Environment
  registry: Registry
  log: Logger
  aml: Aml
  webhooks: Webhooks
}

type Receiver = Pick<
  WebhookRow,
  'id' | 'workspace_id' | 'sub_account_id' | 'url' | 'events' | 'format' | 'disabled_at'
> & { after_event: string }

/**
 * Stores a delivery for each webhook that is subscribed to an event, in the transaction that
 * publishes the event.
 */
async function distribute(
  services: Services,
  tx: Queryable,
  events: readonly Published[],
): Promise<void> {
  const receivers = await tx.query<Receiver>(
    `select id, workspace_id, sub_account_id, url, events, format, disabled_at, after_event::text
      from webhooks
     where workspace_id = any($1) and invoice_origin is null for key share`,
    [[...new Set(events.map(({ workspaceId }) => workspaceId))]],
  )
  const listening = events.flatMap((event) =>
    receivers
      .filter((each) => wants(each, event))
      .map((receiver) => ({ event, receiver, url: null })),
  )
  // Returns whether a webhook with the same URL receives the event already.
  const isSubscribed = (event: Published, url: string) =>
    listening.some((each) => each.event === event && each.receiver.url === url)
  const wanted = [
    ...listening,
    ...(await invoiceReceivers(services, tx, events)).filter(
      ({ event, url }) => !isSubscribed(event, url),
    ),
  ]
  if (wanted.length === 0) return
  const classic = await classicData(
    services,
    tx,
    wanted.filter(({ receiver }) => receiver.format === 'classic').map(({ event }) => event),
  )
  const bodies = new Map<string, string>()
  const bodyOf = (event: Published, format: Receiver['format']): string => {
    const data = format === 'classic' ? classic.get(event.uid) : undefined
    const key = `${event.uid} ${data === undefined ? 'standard' : 'classic'}`
    const existing = bodies.get(key) ?? stringifyJson(messageOf(reportOf(event), data))
    bodies.set(key, existing)
    return existing
  }
  const now = tx.now()
  await tx.query(
    `insert into webhook_deliveries
       (id, webhook_id, workspace_id, event_uid, type, object, position, body, status, tries_left,
         next_at, created_at, updated_at, url)
     select d.id, d.webhook, d.workspace, d.uid, d.type, d.object, d.position, d.body, 'pending',
       d.tries, $10, $10, $10, d.url
     from unnest($1::uuid[], $2::uuid[], $3::uuid[], $4::uuid[], $5::text[], $6::text[],
       $7::bigint[], $8::text[], $9::int[], $11::text[])
       d (id, webhook, workspace, uid, type, object, position, body, tries, url)
     on conflict do nothing`,
    [
      wanted.map(() => services.environment.uuid()),
      wanted.map(({ receiver }) => receiver.id),
      wanted.map(({ event }) => event.workspaceId),
      wanted.map(({ event }) => event.uid),
      wanted.map(({ event }) => event.type),
      wanted.map(({ event }) => event.object),
      wanted.map(({ event }) => event.position),
      wanted.map(({ event, receiver }) => bodyOf(event, receiver.format)),
      wanted.map(({ event }) => (event.type === 'webhook.test' ? 1 : TRIES_MAX)),
      now,
      wanted.map(({ url }) => url),
    ],
  )
}

/** Returns the part of publishing that creates the deliveries of events. */
export const distributorOf = (services: Services): Distributor => ({
  write: (tx, events) => distribute(services, tx, events),
  done: () => services.webhooks.due.ring(),
})

const reportOf = (event: Published) => ({
  uid: event.uid,
  type: event.type,
  created_at: event.createdAt,
  object: event.object,
  version: event.version.toString(),
  payload: event.payload,
})

function wants(receiver: Receiver, event: Published): boolean {
  if (receiver.workspace_id !== event.workspaceId) return false
  // A test event is only sent to its own webhook, whatever that is subscribed to.
  if (event.type === 'webhook.test') return event.object === receiver.id
  return (
    (event.subAccountId === null || event.subAccountId === receiver.sub_account_id) &&
    receiver.disabled_at === null &&
    event.id > BigInt(receiver.after_event) &&
    typesOf(receiver.events).includes(event.type)
  )
}
