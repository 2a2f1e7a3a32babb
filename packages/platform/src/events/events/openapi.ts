import { z } from 'zod'
import { EVENT_TYPES } from '../../core/database/event-types.ts'
import { withBounds } from '../../core/http/openapi/bounds.ts'
import type { Components } from '../../core/http/openapi/components.ts'
import { exampleOf } from '../../core/http/openapi/examples.ts'
import { eventShape, EVENTS } from './registry.ts'

const header = (name: string, maxLength: number, description: string, required = true) => ({
  name,
  in: 'header',
  required,
  schema: { type: 'string', maxLength },
  description,
})

const HEADERS = [
  header('webhook-id', 36, 'Id of the event, the same in every delivery attempt'),
  header('webhook-timestamp', 12, 'Time of the attempt in Unix seconds'),
  header(
    'webhook-signature',
    100,
    '`v1,` and the base64 HMAC-SHA256 of `id.timestamp.body`; two signatures, separated by a space, during a rotation',
  ),
  header(
    'x-signature',
    512,
    'Base64 RSA-SHA512 (PKCS #1 v1.5) over the body; the public key is at /.well-known/custody-webhook-key.pem',
  ),
  header('custody-test', 4, '`true` for a test event without a real change; see `test`', false),
]

const test = z.literal(true).optional().meta({
  description:
    'Present if `npx custody trigger` sent the event without a real change, on the local network only. Absent from every other event',
})

/** Returns `webhooks` of the OpenAPI document (3.1): each event as it is sent. */
export const openApiWebhooks = (components: Components): Record<string, object> =>
  Object.fromEntries(
    EVENT_TYPES.map((type) => {
      const { says, object, data } = EVENTS[type]
      const schema = withBounds(
        components.shown(eventShape(data, z.literal(type)).extend({ test })),
        type,
      )
      return [
        type,
        {
          post: {
            operationId: type,
            tags: ['Webhooks'],
            summary: says,
            description: `Each event about the ${object} increases \`version\`.`,
            parameters: HEADERS,
            requestBody: {
              required: true,
              content: { 'application/json': { schema, example: exampleOf(components, schema) } },
            },
            responses: {
              '2XX': {
                description:
                  'The receiver accepted the event. The platform retries after any other response',
              },
            },
            // The signatures of a delivery are in its headers, not in a security scheme.
            security: [],
          },
        },
      ]
    }),
  )
