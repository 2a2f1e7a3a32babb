import { z } from 'zod'
import {
  ID_MAX,
  INT_MAX,
  MESSAGE_MAX,
  SIGNED_MAX,
  TIME_MAX,
  URL_MAX,
  WORD_MAX,
} from '../../core/bounds.ts'
import type { Queryable } from '../../core/database/pool.ts'
import { ApiError } from '../../core/errors.ts'
import type { Caller } from '../../core/http/endpoint.ts'
import { anothers, findWebhook, isUuid } from './webhook.ts'

export const DELIVERY_STATUSES = ['pending', 'delivered', 'failed'] as const

interface Attempt {
  at: string
  duration_ms: number
  url: string
  status: number | null
  error: string | null
  answer: string | null
}

/** A row of `webhook_deliveries`. */
export interface DeliveryRow {
  id: string
  webhook_id: string
  event_uid: string
  type: string
  object: string
  body: string
  status: (typeof DELIVERY_STATUSES)[number]
  tries: number
  tries_left: number
  attempts: Attempt[]
  next_at: Date | null
  lease_token: string | null
  created_at: Date
  updated_at: Date
}

/** Maximum number of attempts that are stored of a delivery. */
export const ATTEMPTS_MAX = 12

export const deliveryShape = z
  .object({
    id: z.string().max(ID_MAX),
    webhook_id: z.string().max(ID_MAX),
    event_id: z.string().max(ID_MAX).meta({ description: 'The same as `webhook-id`' }),
    type: z.string().max(WORD_MAX),
    object: z.string().max(ID_MAX),
    status: z.enum(DELIVERY_STATUSES),
    tries: z.int().min(0).max(INT_MAX),
    tries_left: z.int().min(0).max(INT_MAX),
    next_try_at: z.string().nullable(),
    request: z.object({
      body: z
        .string()
        .max(SIGNED_MAX)
        .meta({ description: 'The exact bytes that are signed and sent' }),
    }),
    attempts: z
      .array(
        z.object({
          at: z.string().max(TIME_MAX),
          url: z.string().max(URL_MAX),
          duration_ms: z.int().min(0),
          status: z.int().min(100).max(999).nullable(),
          error: z.string().max(MESSAGE_MAX).nullable(),
          answer: z
            .string()
            .max(MESSAGE_MAX)
            .nullable()
            .meta({ description: 'The first 1,000 characters' }),
        }),
      )
      .max(ATTEMPTS_MAX)
      .meta({ description: `The latest ${ATTEMPTS_MAX}, oldest first` }),
    created_at: z.string(),
    updated_at: z.string(),
  })
  .meta({ id: 'Delivery' })

export function presentDelivery(row: DeliveryRow) {
  return {
    id: row.id,
    webhook_id: row.webhook_id,
    event_id: row.event_uid,
    type: row.type,
    object: row.object,
    status: row.status,
    tries: row.tries,
    tries_left: row.status === 'pending' ? row.tries_left : 0,
    next_try_at: row.lease_token === null ? (row.next_at?.toISOString() ?? null) : null,
    request: { body: row.body },
    attempts: row.attempts,
    created_at: row.created_at.toISOString(),
    updated_at: row.updated_at.toISOString(),
  }
}

/**
 * Returns a delivery of one of the caller's webhooks.
 * @param webhook null: any webhook
 * @throws ApiError `NOT_FOUND`, `FORBIDDEN` (another workspace's)
 */
export async function findDelivery(
  tx: Queryable,
  caller: Caller,
  webhook: string | null,
  input: string,
): Promise<DeliveryRow> {
  const missing = () =>
    new ApiError(
      'NOT_FOUND',
      `delivery: delivery ${input.slice(0, 100)} of this webhook does not exist`,
      { field: 'delivery' },
    )
  const id = input.toLowerCase()
  if (webhook !== null) await findWebhook(tx, caller, webhook)
  if (!isUuid(id)) throw missing()
  const row = await tx.one<DeliveryRow>(
    'select * from webhook_deliveries where workspace_id = $2 and id = $1',
    [id, caller.workspaceId],
  )
  if (
    !row &&
    webhook === null &&
    (await tx.one('select 1 from webhook_deliveries where id::text = $1', [id]))
  )
    throw anothers()
  if (!row || (webhook !== null && row.webhook_id !== webhook.toLowerCase())) throw missing()
  await findWebhook(tx, caller, row.webhook_id)
  return row
}
