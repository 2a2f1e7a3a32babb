import { z } from 'zod'
import { endpoint } from '../http/endpoint.ts'
import { oneOf, pageQuery } from '../http/schemas.ts'
import { typeFilter } from '../events/log.ts'
import { DELIVERY_STATUSES, deliveryShape, presentDelivery, type DeliveryRow } from './delivery.ts'
import { findWebhook, idParam } from './webhook.ts'

/** What was sent to a webhook and what it answered, the newest first. */
export const listDeliveries = endpoint({
  id: 'listDeliveries', tag: 'Webhooks',
  description: 'What was sent to it and what it answered, newest first.',
  errors: ['FORBIDDEN', 'NOT_FOUND'],
  method: 'GET', path: '/dac/v1/webhooks/{id}/deliveries', summary: 'List the deliveries of a webhook', access: 'read', params: idParam,
  query: z.strictObject({ status: oneOf(DELIVERY_STATUSES).optional(), type: typeFilter.optional(), ...pageQuery }),
  response: z.object({ data: z.array(deliveryShape), page: z.int(), limit: z.int(), total: z.int() }),
  async handler({ services: { database }, caller, params, query: { status, type, page, limit } }) {
    const { id } = await findWebhook(database, caller, params.id)
    const where = 'webhook_id = $1 and ($2::text is null or status = $2) and ($3::text[] is null or type = any($3))'
    const values = [id, status ?? null, type ?? null]
    const [rows, count] = await Promise.all([
      database.query<DeliveryRow>(
        `select * from webhook_deliveries where ${where} order by created_at desc, id desc limit $4 offset $5`,
        [...values, limit, (page - 1) * limit]),
      database.one<{ total: number }>(`select count(*)::int total from webhook_deliveries where ${where}`, values),
    ])
    return { body: { data: rows.map(presentDelivery), page, limit, total: count?.total ?? 0 } }
  },
})
