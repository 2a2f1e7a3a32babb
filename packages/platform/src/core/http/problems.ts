import { stringifyJson } from '@custody/request-auth'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { MESSAGE_MAX } from '../bounds.ts'
import { CommitUnknown, isConnectionError, shortageOfDatabase } from '../database/pool.ts'
import { ApiError, ERRORS, type ErrorCode } from '../errors.ts'
import type { Environment } from '../environment.ts'
import type { Logger } from 'pino'
import { problemType, reasonOf } from './openapi/problems.ts'
import { windowOf, type RateState } from './rate-limit.ts'
import type { RefusalLog } from './refusal-log.ts'

interface Services {
  environment: Environment
  log: Logger
  checkout: { base: string }
}

/** `Retry-After` of a 503 response whose error states no other time. */
const RETRY_AFTER_S = 5
const FIELD_LOGGED_MAX = 100
const PATH_LOGGED_MAX = 200

/** Returns the body of an error response. */
export function problemOf(
  base: string,
  error: ApiError,
  requestId: string,
): Record<string, unknown> {
  const [status, title] = ERRORS[error.code]
  const { rate: _, ...details } = error.details ?? {}
  const message = error.message.slice(0, MESSAGE_MAX)
  return {
    type: problemType(base, error.code),
    title,
    status,
    detail: message,
    error: reasonOf(status),
    message,
    code: error.code,
    ...(error.field === undefined ? {} : { field: error.field }),
    request_id: requestId,
    ...details,
  }
}

/**
 * Sends an error response. An error that is not in the registry is logged, and the response does
 * not contain its details.
 */
export async function sendError(
  services: Services,
  request: FastifyRequest,
  reply: FastifyReply,
  error: unknown,
): Promise<void> {
  let existing = translate(error, request)
  if (!existing) {
    services.log.error({ err: error, request_id: request.id }, 'unexpected error')
    existing = new ApiError('INTERNAL', 'Unexpected server error; a retry may succeed')
  }
  request.problem = {
    code: existing.code,
    ...(existing.field === undefined ? {} : { field: existing.field.slice(0, FIELD_LOGGED_MAX) }),
  }
  const { status } = existing
  if (status === 429) {
    const reset =
      (existing.details?.['rate'] as RateState | undefined)?.reset ??
      request.rate?.reset ??
      windowOf(services.environment.now()).end
    const seconds = Math.max(1, Math.ceil((reset - services.environment.now()) / 1000))
    reply.header('retry-after', existing.retryAfterS ?? seconds)
  }
  if (status === 503) reply.header('retry-after', existing.retryAfterS ?? RETRY_AFTER_S)
  if (status === 401) reply.header('www-authenticate', 'Bearer')
  // The rest of the body is not awaited: its sender may send it slowly, or never.
  if (!request.raw.complete && hasBody(request)) reply.header('connection', 'close')
  await reply
    .code(status)
    .type('application/problem+json; charset=utf-8')
    .serializer((data: unknown) => data as string)
    .send(stringifyJson(problemOf(services.checkout.base, existing, request.id)))
}

/**
 * Logs one line for each error response, unless clients without a key cause too many. Query and body
 * are omitted, because they are private to the caller.
 */
export function logProblem(
  services: Pick<Services, 'log'>,
  refusals: RefusalLog,
  request: FastifyRequest,
  reply: FastifyReply,
): void {
  // The requests of an authenticated caller are limited by the rate limit of the key, if served.
  const isLimited = !request.isAuthenticated || reply.statusCode === 429
  if (isLimited && !refusals.admits(request.ip)) return
  const { code, field } = request.problem ?? {}
  const path = (request.url.split('?', 1)[0] as string).slice(0, PATH_LOGGED_MAX)
  const line = {
    request_id: request.id,
    method: request.method,
    path,
    status: reply.statusCode,
    code,
    ...(field === undefined ? {} : { field }),
    ip: request.ip,
  }
  if (reply.statusCode >= 500) services.log.warn(line, 'request not served')
  else services.log.info(line, 'request refused')
}

/** Returns whether a request announces a body. */
export const hasBody = ({ headers }: FastifyRequest): boolean =>
  headers['transfer-encoding'] !== undefined || !/^0*$/.test(headers['content-length'] ?? '')

/** Maximum length of a path parameter, in characters. */
export const PATH_PART_MAX = 200
const TOO_LONG: [ErrorCode, string, string] = [
  'URI_TOO_LONG',
  `path: one part has more than ${PATH_PART_MAX} characters`,
  'path',
]

/** Error codes and messages for the errors of the framework. */
const FRAMEWORK: Record<string, [ErrorCode, string, field?: string]> = {
  FST_ERR_CTP_INVALID_MEDIA_TYPE: [
    'UNSUPPORTED_MEDIA_TYPE',
    'Content-Type: must be application/json',
    'Content-Type',
  ],
  FST_ERR_CTP_INVALID_CONTENT_LENGTH: [
    'INVALID_REQUEST',
    'body: its length differs from Content-Length',
    'body',
  ],
  FST_ERR_BAD_URL: [
    'INVALID_REQUEST',
    'path: contains a percent sign without two hexadecimal digits, or bytes that are not UTF-8',
    'path',
  ],
  FST_ERR_MAX_PARAM_LENGTH: TOO_LONG,
  FST_ERR_ROUTE_MAX_PARAM_LENGTH: TOO_LONG,
}

function translate(error: unknown, request: FastifyRequest): ApiError | null {
  if (error instanceof ApiError) return error
  const { code, statusCode } = (error ?? {}) as { code?: string; statusCode?: number }
  if (code === 'FST_ERR_CTP_BODY_TOO_LARGE')
    return new ApiError(
      'PAYLOAD_TOO_LARGE',
      `body: must have at most ${request.routeOptions.bodyLimit} bytes`,
      { field: 'body' },
    )
  const existing =
    code === undefined || !Object.hasOwn(FRAMEWORK, code) ? undefined : FRAMEWORK[code]
  if (existing)
    return new ApiError(
      existing[0],
      existing[1],
      existing[2] === undefined ? {} : { field: existing[2] },
    )
  if (statusCode === 404) return new ApiError('NOT_FOUND', 'no such path')
  if (statusCode !== undefined && statusCode >= 400 && statusCode < 500)
    return new ApiError('INVALID_REQUEST', 'the request is not valid')
  const shortage = shortageOfDatabase(error)
  if (shortage !== null)
    return new ApiError(
      'UNAVAILABLE',
      `the database cannot process this now: ${shortage}; try again`,
    )
  if (error instanceof CommitUnknown) {
    return new ApiError(
      'UNAVAILABLE',
      'the database did not confirm whether this was written; send the request again with the same sequence_id',
    )
  }
  if (isConnectionError(error))
    return new ApiError('UNAVAILABLE', 'the database cannot be reached; try again')
  return null
}
