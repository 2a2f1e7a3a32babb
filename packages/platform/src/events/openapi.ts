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
  header('webhook-id', 36, 'Id of the event; the same for every attempt'),
  header('webhook-timestamp', 12, 'Time of the attempt, in Unix seconds'),
  header(
    'webhook-signature',
    100,
    '`v1,` and the base64 HMAC-SHA256 of `id.timestamp.body`; during a rotation two signatures, separated by a space',
  ),
  header(
    'x-signature',
    512,
    'Base64 RSA-SHA512 (PKCS #1 v1.5) of the body, verified with /.well-known/custody-webhook-key.pem',
  ),
  header('custody-test', 4, '`true`: the event did not happen; see `test`', false),
]

const test = z.literal(true).optional().meta({
  description:
    'The event did not happen: it was sent by `npx custody trigger`, on the local network only. Absent from all other events',
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
            description: `\`version\` counts the versions of the ${object}.`,
            parameters: HEADERS,
            requestBody: {
              required: true,
              content: { 'application/json': { schema, example: exampleOf(components, schema) } },
            },
            responses: {
              '2XX': {
                description: 'The delivery was accepted; after any other response, it is retried',
              },
            },
            // What signs a delivery stands in its headers.
            security: [],
          },
        },
      ]
    }),
  )
