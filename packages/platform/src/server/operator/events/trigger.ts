import { hasRealCoins } from '@custody/chains/mode'
import { stringifyJson } from '@custody/request-auth'
import { EVENT_TYPES, type EventType } from '../../../core/database/event-types.ts'
import type { Settings } from '../../../core/settings/settings.ts'
import type { Environment } from '../../../core/environment.ts'
import type { Database } from '../../../core/database/pool.ts'
import type { Registry } from '@custody/chains'
import type { Aml } from '../../../custody/aml/aml.ts'
import type { Webhooks } from '../../../events/webhooks/webhooks.ts'
import { typesOf } from '../../../events/events/filter.ts'
import { objectOf } from '../../../events/events/object.ts'
import { sampleData } from '../../../events/events/samples.ts'
import { suggestName } from '../../../core/suggest-name.ts'
import { classicShape } from '../../../events/webhooks/classic.ts'
import { headersFor } from '../../../events/webhooks/sign.ts'
import { isUuid, secretsAt, type WebhookRow } from '../../../events/webhooks/webhook.ts'
import type { TestEvents } from '../../../events/events/test-events.ts'
import { argument, OperatorError, type Command } from '../command.ts'

interface Services {
  settings: Pick<Settings, 'network'>
  environment: Environment
  database: Database
  registry: Registry
  aml: Aml
  webhooks: Webhooks
  testEvents: TestEvents
}

type Receiver = Pick<
  WebhookRow,
  | 'id'
  | 'workspace_id'
  | 'sub_account_id'
  | 'url'
  | 'events'
  | 'format'
  | 'disabled_at'
  | 'sealed_secret'
  | 'sealed_previous_secret'
  | 'previous_until'
> & { workspace: string; sub_account: string }

function readType(text: string | null): EventType {
  const type = EVENT_TYPES.find((each) => each === text?.toLowerCase())
  if (type) return type
  const likely = suggestName(text ?? '', EVENT_TYPES)
  throw new OperatorError(
    `EVENT: "${text ?? ''}" is not an event type; ${likely === null ? '' : `did you mean ${likely}? `}Events: ${EVENT_TYPES.join(', ')}`,
  )
}

/**
 * Returns the webhooks that receive the event.
 * @throws OperatorError if a named webhook does not exist, or if none is named, no webhook is
 *   subscribed and no listener is running
 */
async function receiversOf(
  services: Services,
  type: EventType,
  named: string[],
  workspace: string | null,
): Promise<Receiver[]> {
  const { database } = services
  const malformed = named.find((id) => !isUuid(id))
  if (malformed !== undefined)
    throw new OperatorError(`--webhook: "${malformed}" is not a webhook id (a UUID)`)
  const workspaces = await database.query<{ id: string }>(
    'select id from workspaces where $1::text is null or name = $1',
    [workspace],
  )
  if (workspace !== null && workspaces.length === 0)
    throw new OperatorError(`--workspace: workspace ${workspace} does not exist`)
  const rows = await database.query<Receiver>(
    `select h.id, h.workspace_id, h.sub_account_id, h.url, h.events, h.format, h.disabled_at,
       h.sealed_secret, h.sealed_previous_secret,
       h.previous_until, w.name workspace, s.name sub_account
     from webhooks h join workspaces w on w.id = h.workspace_id
       join sub_accounts s on s.workspace_id = h.workspace_id and s.id = h.sub_account_id
     where h.workspace_id = any($2) and h.invoice_origin is null
       and (cardinality($1::uuid[]) = 0 or h.id = any($1))
     order by h.created_at, h.id`,
    [named, workspaces.map(({ id }) => id)],
  )
  const missing = named.find((id) => !rows.some((row) => row.id === id))
  if (missing !== undefined) {
    throw new OperatorError(
      `--webhook: webhook ${missing} does not exist${workspace === null ? '' : ` in the workspace ${workspace}`}; GET /dac/v1/webhooks lists those of a sub-account`,
    )
  }
  const receivers =
    named.length > 0
      ? rows
      : rows.filter((row) => row.disabled_at === null && typesOf(row.events).includes(type))
  const { testEvents, environment } = services
  if (receivers.length > 0 || testEvents.isHeard({ type, workspace }, environment.now()))
    return receivers
  throw new OperatorError(
    `no enabled webhook${workspace === null ? '' : ` of the workspace ${workspace}`} is subscribed to ${type}, and no listener is running, so no event was sent. Create a webhook with POST /dac/v1/webhooks, select any webhook with --webhook, or start npx custody listen`,
  )
}

/** @param receiver null: a listener */
function bodyOf(
  services: Services,
  receiver: Receiver | null,
  type: EventType,
  id: string,
): string {
  const { environment } = services
  const made = sampleData(type, environment.now(), () => environment.uuid())
  const data =
    receiver !== null && type.startsWith('webhook.')
      ? { ...made, id: receiver.id, url: receiver.url }
      : made
  const isClassic =
    receiver?.format === 'classic' &&
    /^(transaction|deposit)\./.test(type) &&
    type !== 'transaction.updated'
  return stringifyJson({
    type,
    timestamp: new Date(environment.now()).toISOString(),
    data: isClassic ? classicOf(services, receiver, data) : data,
    id,
    object: objectOf(type, data, receiver?.workspace_id ?? environment.uuid()),
    version: 1,
    test: true,
  })
}

const classicOf = (
  services: Services,
  { sub_account_id, sub_account }: Receiver,
  data: Record<string, unknown>,
) =>
  classicShape(
    services,
    {
      kind: data['type'] === 'Deposit' ? 'DEPOSIT' : 'WITHDRAWAL',
      network: String(data['asset']),
      fee_asset: String(data['fee_asset']),
      sub_account_id,
      sub_account,
      fuel: null,
      request: null,
    },
    data as Parameters<typeof classicShape>[2],
  )

/**
 * Sends a test event to webhooks, once and marked as a test. Only available with the local chains,
 * because a receiver that books deposits may not check the mark, and the local chains hold nothing
 * of value. Nothing is stored: the event is neither in the event log nor in the deliveries.
 */
export const triggerEvent: Command<Services> = async (services, input) => {
  if (hasRealCoins(services.settings.network)) {
    throw new OperatorError(
      'trigger: sends events that did not happen, which a receiver on a real network could credit, so it works only with CUSTODY_NETWORK=local; POST /dac/v1/webhooks/{id}/test sends webhook.test to a webhook on every network',
    )
  }
  const type = readType(argument(input, 'event'))
  const workspace = argument(input, 'workspace')
  const named = (argument(input, 'webhooks') ?? '')
    .split('\n')
    .map((id) => id.trim().toLowerCase())
    .filter((id) => id !== '')
  const receivers = await receiversOf(services, type, [...new Set(named)], workspace)
  const key = (await services.webhooks.key()).privateKey
  const id = services.environment.uuid()
  const sent = await Promise.all(
    receivers.map(async (receiver) => {
      const body = bodyOf(services, receiver, type, id)
      const now = services.environment.now()
      const headers = await headersFor({
        id,
        body,
        now,
        key,
        secrets: secretsAt(services, receiver, now),
        test: true,
      })
      const answer = await services.webhooks.sender.post(
        receiver.url,
        headers,
        body,
        new AbortController().signal,
      )
      return {
        webhook: receiver.id,
        workspace: receiver.workspace,
        sub_account: receiver.sub_account,
        url: receiver.url,
        status: answer?.status ?? null,
        error: answer?.error ?? null,
        answer: answer?.text ?? null,
        duration_ms: answer?.durationMs ?? 0,
        body,
      }
    }),
  )
  // A named webhook is the only receiver.
  const isListened =
    named.length === 0 &&
    services.testEvents.isHeard({ type, workspace }, services.environment.now())
  if (isListened) {
    const body = bodyOf(services, null, type, id)
    const { object, timestamp } = JSON.parse(body) as { object: string; timestamp: string }
    services.testEvents.add({ id, type, workspace, object, timestamp, body })
  }
  return { event: type, id, sent, listened: isListened }
}
