import { STATUS_CODES } from 'node:http'
import type { Socket } from 'node:net'
import { ApiError, type ErrorCode } from '../errors.ts'
import type { Environment } from '../environment.ts'
import type { Logger } from 'pino'
import { problemOf } from './problems.ts'
import type { Routes } from './routes.ts'
import type { RefusalLog } from './refusal-log.ts'
import { rateHeaders, type AddressLimits } from './rate-limit.ts'

interface Services {
  environment: Environment
  log: Logger
  checkout: { base: string }
}

/** What a response on a bare socket requires. */
export interface SocketParts {
  services: Services
  limits: AddressLimits
  refusals: RefusalLog
}

const MEANINGS: Record<string, [ErrorCode, string]> = {
  HPE_HEADER_OVERFLOW: ['HEADERS_TOO_LARGE', 'the path and headers together exceed 16 KiB'],
  ERR_HTTP_REQUEST_TIMEOUT: ['REQUEST_TIMEOUT', 'the request did not arrive within 30 seconds'],
}

/**
 * Responds to bytes that cannot be parsed as a request. They never reach the framework.
 * @param routes used for requests with a method that Node does not parse
 */
export function answerMalformed(
  parts: SocketParts,
  error: { code?: string; rawPacket?: unknown },
  socket: Socket,
  routes?: Routes,
): void {
  if (error.code === 'ECONNRESET' || !socket.writable) return
  const unrouted =
    error.code === 'HPE_INVALID_METHOD' && error.rawPacket instanceof Buffer
      ? routes?.unknownMethod(error.rawPacket)
      : undefined
  if (unrouted)
    return answerOnSocket(
      parts,
      unrouted.error,
      socket,
      unrouted.allow === null ? {} : { allow: unrouted.allow },
    )
  const [code, message] = MEANINGS[error.code ?? ''] ?? [
    'INVALID_REQUEST',
    'the bytes received are not a valid HTTP request',
  ]
  answerOnSocket(parts, new ApiError(code, message), socket)
}

/** Writes an error response to a socket and closes the socket. */
export function answerOnSocket(
  { services, limits, refusals }: SocketParts,
  error: ApiError,
  socket: Socket,
  more: Readonly<Record<string, string>> = {},
): void {
  const requestId = services.environment.uuid()
  const body = JSON.stringify(problemOf(services.checkout.base, error, requestId))
  const headers = {
    connection: 'close',
    'content-type': 'application/problem+json; charset=utf-8',
    'content-length': Buffer.byteLength(body),
    'x-request-id': requestId,
    'cache-control': 'no-store',
    ...more,
    ...rateHeaders(limits.strangers.count(socket.remoteAddress ?? '', services.environment.now())),
  }
  const lines = Object.entries(headers)
    .map(([name, value]) => `${name}: ${value}\r\n`)
    .join('')
  if (refusals.admits(socket.remoteAddress ?? ''))
    services.log.info(
      { request_id: requestId, status: error.status, code: error.code, ip: socket.remoteAddress },
      'request refused',
    )
  socket.end(`HTTP/1.1 ${error.status} ${STATUS_CODES[error.status]}\r\n${lines}\r\n${body}`)
}
