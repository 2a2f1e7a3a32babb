import { z } from 'zod'
import { input, readList } from '../../core/database/counted.ts'
import { endpoint } from '../../core/http/endpoint.ts'
import { oneOf, pageOf, pageQuery } from '../../core/http/schemas.ts'
import { typeFilter } from '../events/log.ts'
import { DELIVERY_STATUSES, deliveryShape, presentDelivery, type DeliveryRow } from './delivery.ts'
import { findWebhook, idParam } from './webhook.ts'
import type { Database } from '../../core/database/pool.ts'

interface Services {
  database: Database
}

/** Lists the deliveries to a webhook with the receiver's responses, newest first. */
export const listDeliveries = endpoint({
  id: 'listDeliveries',
  tag: 'Webhooks',
  description: 'Returns the deliveries to the webhook and the responses to them, newest first.',
  errors: ['FORBIDDEN', 'NOT_FOUND'],
  method: 'GET',
  path: '/dac/v1/webhooks/{id}/deliveries',
  summary: 'List the deliveries of a webhook',
  access: 'read',
  params: idParam,
  query: z.strictObject({
    status: oneOf(DELIVERY_STATUSES).optional(),
    type: typeFilter.optional(),
    ...pageQuery,
  }),
  response: pageOf(deliveryShape),
  async handler({ caller, params, query: { status, type, page, limit } }, { database }: Services) {
    const { id } = await findWebhook(database, caller, params.id)
    const values: unknown[] = [id, caller.workspaceId]
    const conditions = ['workspace_id = $2 and webhook_id = $1']
    if (status !== undefined) conditions.push(`status = $${values.push(status)}`)
    if (type) conditions.push(`type = any($${values.push(type)}::text[])`)
    const { rows, total } = await readList<DeliveryRow>(
      database,
      {
        list: 'webhook_deliveries',
        columns: '*',
        where: conditions.join(' and '),
        values,
        filters: input({ status, type: type ?? undefined }),
        from: null,
        before: null,
      },
      page,
      limit,
    )
    return { body: { data: rows.map(presentDelivery), page, limit, total } }
  },
})
