import { API_ROLES } from '@custody/request-auth/roles'
import { STATUS_CODES } from 'node:http'
import {
  ADDRESS_MAX,
  HASH_MAX,
  ID_MAX,
  MESSAGE_MAX,
  NAME_MAX,
  URL_MAX,
  WORD_MAX,
} from '../../bounds.ts'
import { ERRORS, type ErrorCode } from '../../errors.ts'
import { rolesOf, type Endpoint } from '../endpoint.ts'
import { EXAMPLE_ID } from './examples.ts'
import type { Components, JsonSchema } from './components.ts'

const text = (maxLength: number, description: string): JsonSchema => ({
  type: 'string',
  maxLength,
  description,
})

/** Schema of an error response: RFC 9457 with this API's additional members. */
const PROBLEM: JsonSchema = {
  type: 'object',
  description: 'An error (RFC 9457). `code` is for programs, `message` for people.',
  required: ['type', 'title', 'status', 'detail', 'error', 'message', 'code', 'request_id'],
  properties: {
    type: { ...text(URL_MAX, 'URL of this code’s page on this server'), format: 'uri' },
    title: text(NAME_MAX, 'Meaning of the code; always the same'),
    status: { type: 'integer', minimum: 100, maximum: 999, description: 'The HTTP status' },
    detail: text(MESSAGE_MAX, 'The same as `message`'),
    error: text(MESSAGE_MAX, 'The reason phrase of the HTTP status'),
    message: text(MESSAGE_MAX, 'What is wrong in this request, with the field and the limit'),
    code: {
      type: 'string',
      description: 'Error code; stable, never renamed or reused',
      enum: Object.keys(ERRORS),
    },
    field: text(NAME_MAX, 'Field, parameter, header or JWT claim that failed'),
    request_id: text(ID_MAX, 'The same as x-request-id; include it when you contact the operator'),
    id: text(ID_MAX, 'Id of the existing object'),
    wallet_id: text(ID_MAX, 'Id of the existing wallet'),
    max_spendable: {
      type: 'number',
      minimum: 0,
      description: 'The largest amount that one transfer can pay from the wallet’s coins now',
    },
    asset: text(WORD_MAX, 'The asset that failed, if the request contains several'),
    inv_status: text(WORD_MAX, 'Status of the invoice'),
    address: text(ADDRESS_MAX, 'The exchange’s current deposit address for the asset'),
    address_tag: {
      type: ['string', 'null'],
      maxLength: NAME_MAX,
      description: 'Tag of the address',
    },
    locked_until: {
      type: 'string',
      format: 'date-time',
      description: 'When the lock of a control-panel sign-in ends',
    },
    policy: {
      type: 'object',
      description: 'The policy document that denies the transfer',
      required: ['number', 'hash'],
      properties: {
        number: { type: 'integer', minimum: 1, maximum: 1_000_000_000 },
        hash: text(HASH_MAX, 'SHA-256 of the document, in hex'),
      },
    },
    tried: {
      type: 'array',
      maxItems: 20,
      description: 'Rules of the policy, with the reason why each does not fit or restricts it',
      items: {
        type: 'object',
        required: ['rule', 'effect', 'fits', 'why'],
        properties: {
          rule: text(ID_MAX, 'ID of the rule'),
          effect: { type: 'string', enum: ['allow', 'deny', 'require', 'limit'] },
          fits: { type: 'boolean' },
          why: { type: ['string', 'null'], maxLength: MESSAGE_MAX },
        },
      },
    },
    previous: {
      type: ['object', 'null'],
      description: 'The exchange’s deposit address at the last transfer',
      required: ['address', 'tag'],
      properties: {
        address: text(ADDRESS_MAX, 'The address'),
        tag: { type: ['string', 'null'], maxLength: NAME_MAX, description: 'Tag of the address' },
      },
    },
  },
}

const header = (description: string, schema: JsonSchema, example: unknown): JsonSchema => ({
  description,
  schema,
  example,
})

/** Upper bound of the rate-limit headers. No key or address is allowed more requests. */
const REQUESTS_MAX = 2_147_483_647

/** Headers of every response. */
export const HEADERS: Readonly<Record<string, JsonSchema>> = {
  'x-request-id': header(
    'Id of the request, also in the operator’s log',
    { type: 'string', format: 'uuid', maxLength: 36 },
    EXAMPLE_ID,
  ),
  'x-rate-limit-remaining': header(
    'Remaining requests in this minute',
    { type: 'integer', minimum: 0, maximum: REQUESTS_MAX },
    998,
  ),
  'x-rate-limit-limit': header(
    'Length of the rate-limit window',
    { type: 'string', const: '1m' },
    '1m',
  ),
  'x-ratelimit-limit': header(
    'The same as x-rate-limit-limit, in another spelling',
    { type: 'string', const: '1m' },
    '1m',
  ),
  'x-rate-limit-reset': header(
    'When the window ends',
    { type: 'string', format: 'date-time', maxLength: 30 },
    '2026-11-22T10:01:00.000Z',
  ),
  'retry-after': header('Seconds to wait', { type: 'integer', minimum: 1, maximum: 60 }, 20),
  'www-authenticate': header(
    'The required authentication scheme',
    { type: 'string', maxLength: 100 },
    'Bearer',
  ),
  'idempotent-replayed': header(
    'The `sequence_id` was used before: this is the response to the earlier request, and this request created nothing',
    { type: 'string', const: 'true' },
    'true',
  ),
  warning: header(
    'Together with `idempotent-replayed`, a warning that begins with `299 custody`: the earlier request had another payload or was of another kind. **This request was not carried out.** Stop, and use a new `sequence_id` if this request is also to be carried out',
    { type: 'string', maxLength: 200 },
    '299 custody "sequence_id was used before with another payload"',
  ),
}

const EVERY = Object.keys(HEADERS).slice(0, 5)

/**
 * Returns references to the headers of a response.
 * @param isOnce whether the request has a `sequence_id`
 */
export function headersOf(status: number, isOnce = false): Record<string, JsonSchema> {
  const names = [
    ...EVERY,
    ...(isOnce ? ['idempotent-replayed', 'warning'] : []),
    ...(status === 429 || status === 503 ? ['retry-after'] : []),
    ...(status === 401 ? ['www-authenticate'] : []),
  ]
  return Object.fromEntries(names.map((name) => [name, { $ref: `#/components/headers/${name}` }]))
}

const EXAMPLE_MESSAGES: Partial<Record<ErrorCode, [string, string?]>> = {
  INVALID_REQUEST: ['destination_type: must be EXTERNAL or EXCHANGE', 'destination_type'],
  UNAUTHORIZED: [
    'signature: does not match the public key registered for this API key',
    'signature',
  ],
  NOT_FOUND: ['id: there is no such object', 'id'],
  RATE_LIMITED: ['more than 1000 requests in this minute; wait until 2026-11-22T10:01:00.000Z'],
}

/** Returns one error response with these codes. */
function problemResponse(base: string, status: number, codes: readonly ErrorCode[]): JsonSchema {
  const [code] = codes as [ErrorCode]
  const [message, field] = EXAMPLE_MESSAGES[code] ?? [ERRORS[code][1]]
  return {
    description: codes.map((each) => `\`${each}\`: ${ERRORS[each][1]}.`).join('\n'),
    headers: headersOf(status),
    // All errors share one schema, so that a generated client has one error class.
    'x-codes': codes,
    content: {
      'application/problem+json': {
        schema: { $ref: '#/components/schemas/Problem' },
        example: {
          type: problemType(base, code),
          title: ERRORS[code][1],
          status,
          detail: message,
          error: reasonOf(status),
          message,
          code,
          ...(field === undefined ? {} : { field }),
          request_id: EXAMPLE_ID,
        },
      },
    },
  }
}

/** Returns the reason phrase of a status. */
export const reasonOf = (status: number): string =>
  status === 413 ? 'Payload Too Large' : (STATUS_CODES[status] ?? 'Error')

/** Returns the URL of an error code's documentation page. */
export const problemType = (base: string, code: ErrorCode): string =>
  `${base}/reference/errors#${code}`

/** Codes that can be returned before an endpoint is reached. */
const BEFORE: readonly ErrorCode[] = [
  'REQUEST_TIMEOUT',
  'URI_TOO_LONG',
  'HEADERS_TOO_LARGE',
  'RATE_LIMITED',
  'INTERNAL',
  'UNAVAILABLE',
]

/**
 * Returns every code that an endpoint can return: its own codes, and those that follow from its
 * method and access.
 */
export function codesOf({
  method,
  access,
  roles,
  params,
  errors = [],
  heavy,
}: Pick<Endpoint, 'method' | 'access' | 'roles' | 'params' | 'errors' | 'heavy'>): ErrorCode[] {
  const codes = new Set<ErrorCode>(['INVALID_REQUEST', 'UNKNOWN_FIELD', ...errors, ...BEFORE])
  if (method !== 'GET')
    for (const code of ['INVALID_JSON', 'PAYLOAD_TOO_LARGE'] as const) codes.add(code)
  if (method !== 'GET' || access !== 'public') codes.add('UNSUPPORTED_MEDIA_TYPE')
  if (access !== 'public')
    for (const code of ['UNAUTHORIZED', 'IP_NOT_ALLOWED'] as const) codes.add(code)
  if (rolesOf({ access, roles }).length < API_ROLES.length) codes.add('READ_ONLY')
  if (heavy) codes.add('CONCURRENT_REQUEST')
  if (params) codes.add('NOT_FOUND')
  // The order is fixed, so that operations with the same codes share their responses.
  return (Object.keys(ERRORS) as ErrorCode[]).filter((code) => codes.has(code))
}

/**
 * Returns the error responses of an operation by status. Each response is defined once, under
 * `components.responses`, with a name derived from its codes.
 * @param shared map to which the responses are added
 */
export function problemsOf(
  base: string,
  codes: readonly ErrorCode[],
  shared: Record<string, JsonSchema>,
): Record<string, JsonSchema> {
  const byStatus = Map.groupBy(codes, (code) => ERRORS[code][0])
  return Object.fromEntries(
    [...byStatus]
      .sort(([a], [b]) => a - b)
      .map(([status, own]) => {
        const name = own.join('.')
        shared[name] ??= problemResponse(base, status, own)
        return [status, { $ref: `#/components/responses/${name}` }]
      }),
  )
}

export const nameProblem = (components: Components): void =>
  void components.named('Problem', PROBLEM)
