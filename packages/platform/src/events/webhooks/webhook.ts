import { hasRealCoins } from '@custody/chains/mode'
import { z } from 'zod'
import { ID_MAX, INT_MAX, KEY_MAX, MESSAGE_MAX, TIME_MAX, WORD_MAX } from '../../core/bounds.ts'
import type { Queryable } from '../../core/database/pool.ts'
import type { Settings } from '../../core/settings/settings.ts'
import type { Environment } from '../../core/environment.ts'
import type { Aml } from '../../custody/aml/aml.ts'
import type { Webhooks } from './webhooks.ts'
import { ApiError } from '../../core/errors.ts'
import { eventPattern } from '../events/filter.ts'
import type { Caller } from '../../core/http/endpoint.ts'
import { pathId } from '../../core/http/schemas.ts'
import { newSecret, SECRET_BYTES } from './sign.ts'
import { EgressDenied } from './egress-policy.ts'

interface Services {
  settings: Pick<Settings, 'network'>
  environment: Environment
  aml: Aml
  webhooks: Webhooks
}

/** Maximum number of webhooks of one sub-account. */
export const WEBHOOKS_MAX = 20
const EVENTS_MAX = 50
const URL_MAX = 2000
const FORMATS = ['standard', 'classic'] as const
/**
 * Time in milliseconds within which a repeated request, whose first response was lost, returns the
 * same secret.
 */
export const SHOWN_AGAIN_MS = 60_000

/** A row of `webhooks`. */
export interface WebhookRow {
  id: string
  workspace_id: string
  sub_account_id: string
  url: string
  events: string[]
  description: string | null
  format: (typeof FORMATS)[number]
  disabled_at: Date | null
  disabled_reason: string | null
  sealed_secret: Buffer
  secret_made_at: Date
  sealed_previous_secret: Buffer | null
  previous_until: Date | null
  failures: number
  created_at: Date
  updated_at: Date
}

export const webhookShape = z
  .object({
    id: z.string().max(ID_MAX),
    url: z.string().max(URL_MAX),
    events: z.array(z.string().max(WORD_MAX)).max(EVENTS_MAX),
    description: z.string().max(MESSAGE_MAX).nullable(),
    format: z.enum(FORMATS),
    disabled: z.boolean(),
    disabled_reason: z.string().max(MESSAGE_MAX).nullable(),
    failures: z
      .int()
      .min(0)
      .max(INT_MAX)
      .meta({ description: 'Consecutive failed attempts; the webhook is disabled after 50' }),
    previous_secret_until: z
      .string()
      .max(TIME_MAX)
      .nullable()
      .meta({ description: 'Until this time, the secret from before the rotation signs as well' }),
    created_at: z.string(),
    updated_at: z.string(),
  })
  .meta({ id: 'Webhook' })

const secretShape = z
  .string()
  .max(KEY_MAX)
  .meta({ description: '`whsec_` and 32 bytes in base64. Returned only in this response' })
export const webhookWithSecretShape = webhookShape
  .extend({ secret: secretShape })
  .meta({ id: 'WebhookWithSecret' })

export const idParam = z.strictObject({ id: pathId })

export function presentWebhook(row: WebhookRow, now: number) {
  const overlaps = row.previous_until !== null && row.previous_until.getTime() > now
  return {
    id: row.id,
    url: row.url,
    events: row.events,
    description: row.description,
    format: row.format,
    disabled: row.disabled_at !== null,
    disabled_reason: row.disabled_reason,
    failures: row.failures,
    previous_secret_until: overlaps ? (row.previous_until?.toISOString() ?? null) : null,
    created_at: row.created_at.toISOString(),
    updated_at: row.updated_at.toISOString(),
  }
}

export const fields = {
  url: z.string().max(URL_MAX).meta({
    format: 'uri',
    minLength: 1,
    pattern: '^[hH][tT][tT][pP][sS]?://',
    description: 'An https URL at a public address; on the local network also http and loopback',
  }),
  events: z
    .array(eventPattern)
    .min(1, 'must contain at least one event; use * for all events')
    .max(EVENTS_MAX, `must have at most ${EVENTS_MAX} names`)
    .transform((patterns) => [...new Set(patterns)].sort())
    .meta({ description: 'Event types, `group.*` or `*`' }),
  description: z
    .string()
    .max(500)
    .refine((value) => !value.includes('\0'), 'must not contain NUL')
    .meta({ pattern: String.raw`^[^\u0000]*$` }),
  disabled: z.boolean(),
  format: z.enum(FORMATS, { error: `must be one of ${FORMATS.join(', ')}` }).meta({
    description:
      'classic: transactions in the format of earlier integrations; docs/webhooks.md lists its fields',
  }),
}

/**
 * Checks a webhook's URL.
 * @returns the URL in its parsed form, as it is stored and requested
 * @throws ApiError `INVALID_REQUEST` that names the field if events may not be sent to the URL
 */
export function checkUrl(
  services: Pick<Services, 'settings' | 'webhooks'>,
  input: string,
  field = 'url',
): string {
  const wrong = (reason: string) =>
    new ApiError('INVALID_REQUEST', `${field}: ${reason}`, { field })
  if (input.includes('\0') || input !== input.trim())
    throw wrong('must be a URL without leading or trailing spaces')
  let url: URL
  try {
    url = new URL(input)
  } catch {
    throw wrong('must be a URL such as https://example.com/webhooks')
  }
  // Receivers of test coins may be programs on the developer's machine.
  const local = !hasRealCoins(services.settings.network)
  if (url.protocol !== 'https:' && !(local && url.protocol === 'http:'))
    throw wrong(local ? 'must begin with https:// or http://' : 'must begin with https://')
  if (url.username !== '' || url.password !== '')
    throw wrong('must not contain a user name or password; deliveries are signed instead')
  if (url.port === '0') throw wrong('must not have port 0')
  if (url.hash !== '') throw wrong('must have no part after #, which is never sent')
  try {
    services.webhooks.reach.check(url)
  } catch (error) {
    if (error instanceof EgressDenied) throw wrong(error.message)
    throw error
  }
  if (url.href.length > URL_MAX)
    throw wrong(`must have at most ${URL_MAX} characters, with percent-encoding`)
  return url.href
}

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/
export const isUuid = (text: string): boolean => UUID.test(text)

/** Returns the error for an ID that belongs to another workspace. */
export const anothers = (): ApiError =>
  new ApiError('FORBIDDEN', 'id: the webhook belongs to another workspace', { field: 'id' })

/**
 * Returns a webhook of the caller's sub-account.
 * @throws ApiError `NOT_FOUND`, `FORBIDDEN` (another workspace's)
 */
export async function findWebhook(
  database: Queryable,
  caller: Caller,
  input: string,
  locked = false,
): Promise<WebhookRow> {
  const missing = () =>
    new ApiError(
      'NOT_FOUND',
      `id: webhook ${input.slice(0, 100)} does not exist in this sub-account`,
      { field: 'id' },
    )
  const id = input.toLowerCase()
  if (!isUuid(id)) throw missing()
  const row = await database.one<WebhookRow>(
    `select * from webhooks where workspace_id = $2 and id = $1${locked ? ' for update' : ''}`,
    [id, caller.workspaceId],
  )
  if (!row && (await database.one('select 1 from webhooks where id::text = $1', [id])))
    throw anothers()
  if (!row || row.sub_account_id !== caller.subAccountId) throw missing()
  return row
}

/** Returns the context that a webhook's secrets are encrypted for. */
export const webhookOwner = (id: string): string => `webhook ${id}`
/** Generates a secret; `sealed` is its encrypted, stored form. */
export function makeSecret(
  services: Pick<Services, 'environment' | 'aml'>,
  id: string,
): { secret: string; sealed: Buffer } {
  const secret = newSecret(services.environment.bytes(SECRET_BYTES))
  return { secret, sealed: services.aml.secrets.seal(webhookOwner(id), secret) }
}
export const openSecret = (
  services: Pick<Services, 'aml'>,
  id: string,
  sealed: Uint8Array,
): string => services.aml.secrets.open(webhookOwner(id), sealed)

/**
 * Returns the secrets that sign a delivery; during a rotation there are two.
 * @param at milliseconds since the Unix Epoch
 */
export const secretsAt = (
  services: Pick<Services, 'aml'>,
  hook: Pick<WebhookRow, 'id' | 'sealed_secret' | 'sealed_previous_secret' | 'previous_until'>,
  at: number,
): string[] =>
  [
    hook.sealed_secret,
    ...(hook.sealed_previous_secret && hook.previous_until && hook.previous_until.getTime() > at
      ? [hook.sealed_previous_secret]
      : []),
  ].map((sealed) => openSecret(services, hook.id, sealed))

/** ID of the newest event. Events up to it are not delivered to a webhook that is created now. */
export const LAST_EVENT = `coalesce(pg_sequence_last_value(pg_get_serial_sequence('events', 'id')), 0)`
