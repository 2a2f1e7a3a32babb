import swagger from '@fastify/swagger'
import { AuthError, JsonNumber, parseJson, stringifyJson, type SignedRequest } from '@custody/request-auth'
import Fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify'
import { STATUS_CODES } from 'node:http'
import type { z } from 'zod'
import { ApiError, ERRORS, type ErrorCode } from '../errors.ts'
import { assertNotHeld } from '../recovery/hold.ts'
import type { Services } from '../services.ts'
import { isConnectionError } from '../database/pool.ts'
import { shared } from '../work/shared.ts'
import { endpoints } from './endpoints.ts'
import { authenticate } from './authenticate.ts'
import type { Caller, Endpoint } from './endpoint.ts'
import { AddressLimit, windowOf, type RateState } from './rate-limit.ts'
import { jsonSchema } from './schemas.ts'

declare module 'fastify' {
  interface FastifyRequest { rate: RateState | null; counted: boolean; problem: { code: string; field?: string } | null }
}

const BODY_BYTES_MAX = 1024 * 1024
/** Nobody needs a key to ask, and each question is one to the database and to every signer node. */
const READINESS_KEPT_MS = 1000

/** Builds the HTTP server. It does not listen yet. */
export async function buildServer(services: Services): Promise<FastifyInstance> {
  const server = Fastify({
    bodyLimit: BODY_BYTES_MAX,
    // As many of the last hops are ours; what stands before them the client may have written itself.
    trustProxy: (_address, hop) => hop < services.settings.trustProxy,
    genReqId: () => services.environment.uuid(),
    requestTimeout: 30_000,
    keepAliveTimeout: 65_000,
    exposeHeadRoutes: false,
    routerOptions: { maxParamLength: 200, ignoreTrailingSlash: false },
    logger: false,
    frameworkErrors: (error, request, reply) => { void sendError(services, request as FastifyRequest, reply as unknown as FastifyReply, error) },
    clientErrorHandler(error, socket) {
      if (error.code === 'ECONNRESET' || !socket.writable) return
      const status = error.code === 'HPE_HEADER_OVERFLOW' ? '431 Request Header Fields Too Large' : error.code === 'ERR_HTTP_REQUEST_TIMEOUT' ? '408 Request Timeout' : '400 Bad Request'
      const body = JSON.stringify({ error: status.slice(4), message: 'The bytes received are not a valid HTTP request', code: 'INVALID_REQUEST', status: Number(status.slice(0, 3)) })
      const window = windowOf(services.environment.now())
      socket.end(`HTTP/1.1 ${status}\r\nconnection: close\r\ncontent-type: application/problem+json\r\nx-rate-limit-remaining: ${services.settings.rateLimit}\r\nx-rate-limit-limit: 1m\r\nx-rate-limit-reset: ${new Date(window.end).toISOString()}\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`)
    },
  })
  const addresses = new AddressLimit(services.settings.rateLimit)
  server.decorateRequest('rate', null)
  server.decorateRequest('counted', false)
  server.decorateRequest('problem', null)
  server.removeAllContentTypeParsers()
  // Hash first, parse after: the raw bytes are what the caller signed.
  server.addContentTypeParser('application/json', { parseAs: 'buffer' }, (_request, body, done) => done(null, body))
  server.setValidatorCompiler(() => () => true)
  server.setSerializerCompiler(() => (data) => stringifyJson(data))
  server.addHook('onSend', async (request, reply, payload) => {
    if (!request.rate) request.rate = addresses.count(request.ip, services.environment.now())
    reply.header('x-rate-limit-remaining', request.rate.remaining)
    reply.header('x-rate-limit-limit', '1m')
    reply.header('x-ratelimit-limit', '1m')
    reply.header('x-rate-limit-reset', new Date(request.rate.reset).toISOString())
    reply.header('x-request-id', request.id)
    reply.header('cache-control', 'no-store')
    reply.header('x-content-type-options', 'nosniff')
    return payload
  })
  server.addHook('onResponse', async (request, reply) => {
    services.metrics.requests.labels(request.method, request.routeOptions.url ?? 'none', String(reply.statusCode)).inc()
    if (reply.statusCode >= 400) logProblem(services, request, reply)
  })
  server.setErrorHandler((error, request, reply) => sendError(services, request, reply, error))
  server.setNotFoundHandler((request, reply) => {
    limitAddress(addresses, services, request)
    const path = request.url.split('?', 1)[0] as string
    const allowed = (['GET', 'POST', 'DELETE'] as const).filter((method) => server.findRoute({ method, url: path }) !== null || endpoints.some((each) => each.method === method && each.path === path))
    if (allowed.length > 0) {
      reply.header('allow', allowed.join(', '))
      return sendError(services, request, reply, new ApiError('METHOD_NOT_ALLOWED', `${request.method} is not supported here; use ${allowed.join(' or ')}`))
    }
    return sendError(services, request, reply, new ApiError('NOT_FOUND', `no such path: ${request.method} ${path.slice(0, 200)}`))
  })
  await server.register(swagger, {
    openapi: {
      openapi: '3.1.0',
      info: { title: 'Custody API', version: '1', description: 'Digital-asset custody: threshold-signed wallets, idempotent transfers. Amounts are exact decimals.' },
      components: { securitySchemes: { jwt: { type: 'http', scheme: 'bearer', bearerFormat: 'JWT' }, apiKey: { type: 'apiKey', in: 'header', name: 'x-api-key' } } },
    },
  })
  for (const definition of endpoints) register(server, services, definition, addresses)
  server.get('/openapi.json', { schema: openSchema('This document') }, async (request) => {
    limitAddress(addresses, services, request)
    return server.swagger()
  })
  server.get('/livez', { schema: openSchema('Whether the process runs') }, async () => ({ status: 'ok' }))
  const ready = shared(() => services.readiness(), READINESS_KEPT_MS, () => services.environment.now())
  server.get('/readyz', { schema: openSchema('Whether transfers are accepted: 200, else 503; with ?deep, whether they would also be signed') }, async (request, reply) => {
    const { ready: accepts, signing, checks } = await ready()
    const isReady = accepts && (signing || (request.query as { deep?: string }).deep === undefined)
    return reply.code(isReady ? 200 : 503).send({ status: isReady ? 'ok' : 'unavailable', checks })
  })
  server.get('/metrics', { schema: openSchema('Prometheus metrics, from loopback only') }, async (request, reply) => {
    // A request that a proxy passed on comes from outside, whatever its last hop.
    if (!isLoopback(request.ip) || request.headers['x-forwarded-for'] !== undefined || request.headers['forwarded'] !== undefined) throw new ApiError('NOT_FOUND', 'no such path: GET /metrics')
    return reply.type(services.metrics.contentType).serializer((text) => text as string).send(await services.metrics.text())
  })
  return server
}

/** One line for each answer that is an error. Without the query and the body: both are the caller's own. */
function logProblem(services: Services, request: FastifyRequest, reply: FastifyReply): void {
  const { code, field } = request.problem ?? {}
  const path = request.url.split('?', 1)[0]?.slice(0, 200)
  const line = { request_id: request.id, method: request.method, path, status: reply.statusCode, code, ...(field === undefined ? {} : { field }), ip: request.ip }
  if (reply.statusCode >= 500) services.log.warn(line, 'request not served')
  else services.log.info(line, 'request refused')
}

const openSchema = (summary: string) => ({ summary, security: [] })

/** What every error looks like; RFC 9457 with the members that stay stable. */
const PROBLEM = {
  description: 'An error',
  content: {
    'application/problem+json': {
      schema: {
        type: 'object', required: ['type', 'title', 'status', 'detail', 'error', 'message', 'code', 'request_id'],
        properties: {
          type: { type: 'string' }, title: { type: 'string' }, status: { type: 'integer' }, detail: { type: 'string' }, error: { type: 'string' }, message: { type: 'string' },
          code: { type: 'string', enum: Object.keys(ERRORS) }, field: { type: 'string', description: 'The field that failed' }, request_id: { type: 'string' },
        },
      },
    },
  },
}

/** Statuses that any endpoint may answer beside its own. */
function problems(isOpen: boolean): Record<string, typeof PROBLEM> {
  const statuses = isOpen ? [429, 500] : [400, 401, 403, 404, 429, 500, 503]
  return Object.fromEntries(statuses.map((status) => [status, { ...PROBLEM, description: STATUS_CODES[status] as string }]))
}

function isLoopback(address: string): boolean {
  return address === '127.0.0.1' || address === '::1' || address === '::ffff:127.0.0.1'
}

function limitAddress(addresses: AddressLimit, services: Services, request: FastifyRequest): void {
  const state = addresses.count(request.ip, services.environment.now())
  request.rate = state
  if (state.exceeded) throw new ApiError('RATE_LIMITED', `too many requests without a valid key in this minute; wait until ${new Date(state.reset).toISOString()}`)
}

function register(server: FastifyInstance, services: Services, definition: Endpoint, addresses: AddressLimit): void {
  const open = definition.access === 'public'
  server.route({
    method: definition.method,
    url: definition.path.replaceAll(/\{(\w+)\}/g, ':$1'),
    schema: {
      summary: definition.summary,
      ...(definition.body ? { body: jsonSchema(definition.body) } : {}),
      ...(definition.query ? { querystring: jsonSchema(definition.query) } : {}),
      ...(definition.params ? { params: jsonSchema(definition.params) } : {}),
      response: { ...(definition.response ? { 200: { description: 'Success', ...jsonSchema(definition.response) } } : {}), ...problems(open) },
      ...(open ? { security: [] } : { security: [{ jwt: [], apiKey: [] }] }),
    },
    async handler(request, reply) {
      const bytes = request.body instanceof Buffer ? request.body : Buffer.alloc(0)
      const rawBody = bytes.toString('utf8')
      let caller: Caller | undefined
      let signed: SignedRequest | undefined
      if (open) limitAddress(addresses, services, request)
      else {
        if (request.headers['content-encoding'] !== undefined) throw new ApiError('UNSUPPORTED_MEDIA_TYPE', 'Content-Encoding is not accepted: the body hash covers the bytes as sent')
        try {
          const authenticated = await authenticate(services, request.raw, rawBody, definition.path)
          caller = authenticated.caller
          signed = authenticated.signed
          request.rate = authenticated.rate
        } catch (error) {
          const rate = error instanceof ApiError ? (error.details?.['rate'] as RateState | undefined) : undefined
          if (rate) request.rate = rate
          else if (error instanceof ApiError && error.status === 401) limitAddress(addresses, services, request)
          throw error
        }
        // Text that is not UTF-8 cannot be hashed again from the stored string.
        if (!Buffer.from(rawBody, 'utf8').equals(bytes)) throw new ApiError('INVALID_JSON', 'body: is not valid UTF-8')
        if (definition.access === 'write' && caller.role !== 'full') throw new ApiError('READ_ONLY', 'this API key is read-only; the operation needs a key with the role full')
        if (definition.access === 'write') assertNotHeld(services)
      }
      const body = definition.body ? validate(definition.body, parseBody(rawBody), 'body') : undefined
      if (!definition.body && definition.method !== 'GET' && rawBody.trim() !== '') validateEmpty(rawBody)
      const query = definition.query ? validate(definition.query, request.query, 'query') : undefined
      const params = definition.params ? validate(definition.params, request.params, 'path') : undefined
      const answer = await definition.handler({ services, caller: caller as Caller, body, query, params, signed: signed as SignedRequest })
      for (const [name, value] of Object.entries(answer.headers ?? {})) reply.header(name, value)
      reply.code(answer.status ?? 200).type('application/json; charset=utf-8')
      return reply.serializer((data) => data as string).send(answer.text ?? stringifyJson(answer.body))
    },
  })
}

function parseBody(rawBody: string): unknown {
  if (rawBody.trim() === '') throw new ApiError('INVALID_JSON', 'body: is missing; send a JSON object with Content-Type: application/json', { field: 'body' })
  try {
    const value = parseJson(rawBody)
    if (typeof value !== 'object' || value === null || Array.isArray(value) || value instanceof JsonNumber) throw new ApiError('INVALID_JSON', 'body: must be a JSON object', { field: 'body' })
    return value
  } catch (error) {
    if (error instanceof AuthError) throw new ApiError('INVALID_JSON', `body: ${error.message}`, { field: 'body' })
    throw error
  }
}

function validateEmpty(rawBody: string): void {
  const value = parseBody(rawBody) as Record<string, unknown>
  const [unknown] = Object.keys(value)
  if (unknown !== undefined) throw new ApiError('UNKNOWN_FIELD', `${unknown}: is not a field of this request, which takes an empty object`, { field: unknown })
}

/** Validates and names the failed field, unknown ones by their own name. */
function validate<T>(schema: z.ZodType<T>, value: unknown, part: string): T {
  const result = schema.safeParse(value)
  if (result.success) return result.data
  const issue = result.error.issues[0]
  if (issue?.code === 'unrecognized_keys') {
    const [key] = issue.keys as [string]
    throw new ApiError('UNKNOWN_FIELD', `${key}: is not a known ${part === 'body' ? 'field' : 'parameter'} of this request`, { field: key })
  }
  const field = issue && issue.path.length > 0 ? issue.path.map(String).join('.') : part
  const missing = issue?.code === 'invalid_type' && issue.message.endsWith('received undefined')
  const isAbsent = issue?.path.length === 1 && typeof value === 'object' && value !== null && !Object.hasOwn(value, String(issue.path[0]))
  const message = missing || isAbsent ? 'is required' : (issue?.message ?? 'is not valid').replace(/^Invalid (input|option): /, '').replace('JsonNumber', 'number')
  throw new ApiError('INVALID_REQUEST', `${field}: ${message}`, { field })
}

/** Framework errors in the words of the registry. */
function translate(error: unknown): ApiError | null {
  if (error instanceof ApiError) return error
  const { code, statusCode } = (error ?? {}) as { code?: string; statusCode?: number }
  const known: Record<string, ErrorCode> = {
    FST_ERR_CTP_INVALID_MEDIA_TYPE: 'UNSUPPORTED_MEDIA_TYPE', FST_ERR_CTP_BODY_TOO_LARGE: 'PAYLOAD_TOO_LARGE',
    FST_ERR_BAD_URL: 'INVALID_REQUEST', FST_ERR_CTP_INVALID_CONTENT_LENGTH: 'INVALID_REQUEST', FST_ERR_MAX_PARAM_LENGTH: 'URI_TOO_LONG',
    FST_ERR_ROUTE_MAX_PARAM_LENGTH: 'URI_TOO_LONG',
  }
  if (code && known[code]) return new ApiError(known[code], ERRORS[known[code]][1])
  if (statusCode === 404) return new ApiError('NOT_FOUND', 'no such path')
  if (statusCode !== undefined && statusCode >= 400 && statusCode < 500) return new ApiError('INVALID_REQUEST', 'the request is not valid')
  if (isConnectionError(error)) return new ApiError('UNAVAILABLE', 'the database cannot be reached; try again')
  return null
}

async function sendError(services: Services, request: FastifyRequest, reply: FastifyReply, error: unknown): Promise<void> {
  let known = translate(error)
  if (!known) {
    services.log.error({ err: error, request_id: request.id }, 'unexpected error')
    known = new ApiError('INTERNAL', 'Unexpected server error; a retry may succeed')
  }
  request.problem = { code: known.code, ...(known.field === undefined ? {} : { field: known.field.slice(0, 100) }) }
  const [status, title] = ERRORS[known.code]
  if (status === 429) {
    const reset = request.rate?.reset ?? (known.details?.['rate'] as RateState | undefined)?.reset ?? windowOf(services.environment.now()).end
    reply.header('retry-after', Math.max(1, Math.ceil((reset - services.environment.now()) / 1000)))
  }
  if (status === 503) reply.header('retry-after', 5)
  if (status === 401) reply.header('www-authenticate', 'Bearer')
  const { rate: _, ...details } = known.details ?? {}
  const body = {
    type: `urn:custody:error:${known.code.toLowerCase()}`, title, status, detail: known.message,
    error: REASONS[status] ?? 'Error', message: known.message, code: known.code,
    ...(known.field === undefined ? {} : { field: known.field }), request_id: request.id, ...details,
  }
  await reply.code(status).type('application/problem+json; charset=utf-8').serializer((data: unknown) => data as string).send(stringifyJson(body))
}

const REASONS: Record<number, string> = {
  400: 'Bad Request', 401: 'Unauthorized', 403: 'Forbidden', 404: 'Not Found', 405: 'Method Not Allowed', 408: 'Request Timeout',
  413: 'Payload Too Large', 414: 'URI Too Long', 415: 'Unsupported Media Type', 429: 'Too Many Requests', 500: 'Internal Server Error', 503: 'Service Unavailable',
}
