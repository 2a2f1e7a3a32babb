import { z } from 'zod'
import type { ErrorCode } from '../../errors.ts'
import type { Endpoint } from '../endpoint.ts'
import { withBounds } from './bounds.ts'
import { Components, type JsonSchema } from './components.ts'
import { exampleOf } from './examples.ts'
import { codesOf, HEADERS, headersOf, nameProblem, problemsOf } from './problems.ts'
import { responseName } from './schema-names.ts'
import { TAGS, type Tag } from './tags.ts'

/** A route in the OpenAPI document that is not an endpoint of the API. */
export interface OpenOperation {
  path: string
  id: string
  summary: string
  description: string
  query?: z.ZodType
  response: z.ZodType | null
  /** Media type of the response, if it is not JSON. */ mediaType?: string
  errors?: readonly ErrorCode[]
  /** The 503 response of a service that is not ready has the same schema. */ alsoUnavailable?: true
}

export interface DocumentParts {
  /** Origin of the server, for example `https://custody.example.com`. */
  base: string
  endpoints: readonly Endpoint[]
  open: readonly OpenOperation[]
  /** Returns the requests that the server sends itself (webhooks). */
  webhooks(components: Components): Record<string, object>
}

const INTRODUCTION = `Digital-asset custody: threshold-signed wallets, idempotent transfers.

**Authentication.** Each request has two headers: \`authorization: Bearer JWT\` and \`x-api-key\`. The JWT is signed with RS256 by
your RSA key of at least 4096 bits. Its claims are \`{uri, nonce, iat, exp, sub, bodyHash}\`: the path with the query, a new nonce,
the issue time, an expiry less than 30 seconds after \`iat\`, the API key, and the lower-case hex SHA-256 of the body's bytes (of the
empty string if there is no body). The optional claim \`method\` binds the token to the method; with it, \`uri\` must contain the
query. Each attempt requires a new token.

**Amounts** are JSON numbers with their exact digits: parse them as decimals, never as doubles. If your JSON parser cannot do that,
request strings of digits with \`accept: application/json; amounts=string\`, as
[this document](/openapi.json?amounts=string) describes.

**Idempotency.** Operations that move money take a \`sequence_id\`. A repeated request with the same \`sequence_id\` is carried out
once; the later responses repeat the first one and have the header \`idempotent-replayed: true\`. If the payload differs, the later
request is not carried out either: the response is that of the earlier request, with a \`warning\` header that begins with
\`299 custody\`. Check for this header and stop if it is present.

**Limits.** Each key has a limit of requests per minute. After a 429 response, wait until \`x-rate-limit-reset\`.

**Errors** are RFC 9457 problems; \`type\` is the URL of the page of the code, which explains what to do and whether to retry.`

const pascal = (id: string) => id[0]?.toUpperCase() + id.slice(1)
const requestName = (id: string) => `${pascal(id)}Request`

/**
 * Returns the OpenAPI document (3.1) of all requests that this server accepts and sends.
 * @throws Error if two schemas have the same name
 */
export function openApiDocument({ base, endpoints, open, webhooks }: DocumentParts): JsonSchema {
  const components = new Components()
  nameProblem(components)
  const responses: Record<string, JsonSchema> = {}
  const paths: Record<string, Record<string, JsonSchema>> = {}
  const operations = endpoints.map(
    (each) => [each, operationOf(base, components, responses, each)] as const,
  )
  for (const [{ path, method }, operation] of operations)
    (paths[path] ??= {})[method.toLowerCase()] = operation
  for (const each of open)
    paths[each.path] = { get: openOperation(base, components, responses, each) }
  const sent = webhooks(components)
  const used = new Set<string>([
    ...endpoints.map(({ tag }) => tag),
    'Service',
    ...(Object.keys(sent).length > 0 ? ['Webhooks'] : []),
  ])
  const ids = [...endpoints, ...open].map(({ id }) => id)
  const twice = ids.find((id, at) => ids.indexOf(id) !== at)
  if (twice !== undefined) throw new Error(`two operations have the name ${twice}`)
  const taken = new Set(operations.flatMap(([{ id, body }]) => (body ? [requestName(id)] : [])))
  const schemas = Object.entries(components.schemas)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, schema]) => [name, taken.has(name) ? schema : withBounds(schema, name)])
  return {
    openapi: '3.1.0',
    info: {
      title: 'Custody API',
      version: '1',
      description: INTRODUCTION,
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    servers: [{ url: base, description: 'This installation' }],
    tags: Object.entries(TAGS)
      .filter(([name]) => used.has(name))
      .map(([name, description]) => ({ name, description })),
    security: [{ jwt: [], apiKey: [] }],
    paths,
    webhooks: sent,
    components: {
      securitySchemes: {
        jwt: {
          type: 'http',
          scheme: 'bearer',
          bearerFormat: 'JWT',
          description: 'RS256 token that is valid for one request and its body only',
        },
        apiKey: {
          type: 'apiKey',
          in: 'header',
          name: 'x-api-key',
          description: 'UUID of the API user; the same as `sub` in the JWT',
        },
      },
      headers: HEADERS,
      responses: Object.fromEntries(Object.entries(responses).sort(([a], [b]) => (a < b ? -1 : 1))),
      schemas: Object.fromEntries(schemas),
    },
  }
}

function operationOf(
  base: string,
  components: Components,
  shared: Record<string, JsonSchema>,
  definition: Endpoint,
): JsonSchema {
  const {
    id,
    tag,
    summary,
    description,
    access,
    body,
    example,
    query,
    params,
    response,
    streams,
    mediaType,
  } = definition
  const parameters = [
    ...parametersOf(components, params, 'path'),
    ...parametersOf(components, query, 'query'),
  ]
  const isOnce = body instanceof z.ZodObject && 'sequence_id' in body.shape
  const taken = body && components.named(requestName(id), components.taken(body))
  return {
    operationId: id,
    tags: [tag satisfies Tag],
    summary,
    description,
    ...(parameters.length > 0 ? { parameters } : {}),
    ...(taken && body
      ? {
          requestBody: {
            required: true,
            content: {
              'application/json': {
                schema: taken,
                example: example ?? exampleOf(components, taken, requestName(id)),
              },
            },
          },
        }
      : {}),
    responses: {
      200: success(
        components,
        id,
        response ?? null,
        streams ? 'text/event-stream' : (mediaType ?? 'application/json'),
        isOnce,
      ),
      ...problemsOf(base, codesOf(definition), shared),
    },
    ...(access === 'public' ? { security: [] } : {}),
  }
}

function openOperation(
  base: string,
  components: Components,
  shared: Record<string, JsonSchema>,
  { id, summary, description, query, response, ...rest }: OpenOperation,
): JsonSchema {
  const parameters = parametersOf(components, query, 'query')
  const { 503: away, ...problems } = problemsOf(
    base,
    codesOf({ method: 'GET', access: 'public', errors: rest.errors }),
    shared,
  )
  const answer = success(components, id, response, rest.mediaType ?? 'application/json')
  return {
    operationId: id,
    tags: ['Service' satisfies Tag],
    summary,
    description,
    ...(parameters.length > 0 ? { parameters } : {}),
    responses: {
      200: answer,
      ...problems,
      503: rest.alsoUnavailable ? { ...answer, description: 'The service is not ready' } : away,
    },
    security: [],
  }
}

/** Maximum number of characters of a response that is neither JSON nor has a schema: metrics. */
const TEXT_MAX = 64 * 1024 * 1024

/** Returns the 200 response. A schema without a name gets a name derived from its operation. */
function success(
  components: Components,
  id: string,
  response: z.ZodType | null,
  mediaType: string,
  isOnce = false,
): JsonSchema {
  const plain = response ? components.shown(response) : { type: 'string', maxLength: TEXT_MAX }
  const isNamed = plain['type'] !== 'object' || mediaType === 'text/event-stream'
  const schema = isNamed ? plain : components.named(responseName(id), plain)
  const example = exampleOf(components, schema, isNamed ? '' : responseName(id))
  const bounded = withBounds(schema, id)
  return {
    description:
      mediaType === 'text/event-stream'
        ? 'An event stream; this schema describes the data of each event'
        : 'Success',
    headers: headersOf(200, isOnce),
    content: {
      [mediaType]:
        mediaType === 'text/event-stream' ? { schema: bounded } : { schema: bounded, example },
    },
  }
}

function parametersOf(
  components: Components,
  schema: z.ZodType | undefined,
  place: 'path' | 'query',
): JsonSchema[] {
  if (!schema) return []
  const { properties = {}, required = [] } = components.shown(schema) as {
    properties?: Record<string, JsonSchema>
    required?: string[]
  }
  return Object.entries(properties).map(([name, { description, examples, ...plain }]) => ({
    name,
    in: place,
    required: place === 'path' || required.includes(name),
    description:
      description ??
      (place === 'path'
        ? 'Id of the object'
        : `Only records with this ${name.replaceAll('_', ' ')}`),
    schema: plain,
    example: exampleOf(
      components,
      { ...plain, ...(examples === undefined ? {} : { examples }) },
      '',
      name,
    ),
  }))
}
