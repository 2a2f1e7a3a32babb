import { z } from 'zod'
import { EVENT_TYPES } from '../database/event-types.ts'
import { withBounds } from '../http/openapi/bounds.ts'
import type { Components } from '../http/openapi/components.ts'
import { exampleOf } from '../http/openapi/examples.ts'
import { eventShape, EVENTS } from './registry.ts'

const header = (name: string, maxLength: number, description: string, required = true) => ({
  name,
  in: 'header',
  required,
  schema: { type: 'string', maxLength },
  description,
})

const HEADERS = [
  header('webhook-id', 36, 'The event; the same on every try'),
  header('webhook-timestamp', 12, 'Of the try, in Unix seconds'),
  header(
    'webhook-signature',
    100,
    '`v1,` and the base64 HMAC-SHA256 of `id.timestamp.body`; during a rotation two, separated by a space',
  ),
  header(
    'x-signature',
    512,
    'Base64 RSA-SHA512 (PKCS #1 v1.5) over the body, under /.well-known/custody-webhook-key.pem',
  ),
  header('custody-test', 4, '`true`: the event did not happen; see `test`', false),
]

const test = z.literal(true).optional().meta({
  description:
    'The event did not happen: `npx custody trigger` sent it, on the local network alone. Absent from every other event',
})

/** `webhooks` of the OpenAPI document (3.1): each event, as it is sent. */
export const openApiWebhooks = (components: Components): Record<string, object> =>
  Object.fromEntries(
    EVENT_TYPES.map((type) => {
      const { says, object, data } = EVENTS[type]
      const schema = withBounds(
        components.shown(eventShape(data, z.literal(type)).extend({ test })),
        { name: type, parent: '' },
      )
      return [
        type,
        {
          post: {
            operationId: type,
            tags: ['Webhooks'],
            summary: says,
            description: `Its versions count the ${object}.`,
            parameters: HEADERS,
            requestBody: {
              required: true,
              content: { 'application/json': { schema, example: exampleOf(components, schema) } },
            },
            responses: {
              '2XX': { description: 'It was taken; anything else, and it comes again' },
            },
            // What signs a delivery stands in its headers.
            security: [],
          },
        },
      ]
    }),
  )
