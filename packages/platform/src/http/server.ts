import { isUtf8 } from 'node:buffer'
import { stringifyJson } from '@custody/request-auth'
import Fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify'
import { ApiError } from '../errors.ts'
import type { Services } from '../engine/services.ts'
import { apiAuthenticator, type AuditWrite } from './api-authenticator.ts'
import { countAddress, type Authenticator } from './authenticator.ts'
import type { Endpoint, Operation } from './endpoint.ts'
import { Streams } from './streams.ts'
import { answerMalformed, answerOnSocket } from './malformed.ts'
import { OPEN_OPERATIONS, registerOpenRoutes, registerProbes } from './open-routes.ts'
import type { Components } from './openapi/components.ts'
import { openApiDocument } from './openapi/document.ts'
import { registerPage, type Page } from './page.ts'
import { logProblem, PATH_PART_MAX, sendError } from './problems.ts'
import { AddressLimits, rateHeaders, type RateState } from './rate-limit.ts'
import { parseQuery } from './query.ts'
import { register } from './register.ts'
import { Routes } from './routes.ts'
import { originForm } from './target.ts'

declare module 'fastify' {
  interface FastifyRequest {
    rate: RateState | null
    problem: { code: string; field?: string } | null
  }
}

const BODY_BYTES_MAX = 1024 * 1024
/** A request has to arrive within this time. */
const REQUEST_TIMEOUT_MS = 30_000
/** How often Node looks for requests that did not; 30 seconds where it is not set. */
const REQUEST_CHECK_EVERY_MS = 1000

/** Endpoints with a door of their own, that are none of the API. */
export interface OtherEndpoints<O extends Operation = never> {
  list: readonly O[]
  door(limits: AddressLimits): Authenticator<O>
}

/**
 * What the server has beside the API's endpoints. `webhooks`: of the OpenAPI document, what it
 * sends by itself.
 */
export interface Beside<O extends Operation = never> {
  pages?: readonly Page[]
  webhooks?(components: Components): Record<string, object>
  others?: OtherEndpoints<O>
  auditWrite?: AuditWrite
}

/**
 * Builds the HTTP server. It does not listen yet. Without endpoints it tells how the process is,
 * and nothing else.
 */
export async function buildServer<O extends Operation = never>(
  services: Services,
  endpoints: readonly Endpoint[],
  { pages = [], webhooks = () => ({}), others, auditWrite }: Beside<O> = {},
): Promise<FastifyInstance> {
  const limits = new AddressLimits(services.settings.rateLimit)
  const finish = (request: FastifyRequest, reply: FastifyReply): void => {
    request.rate ??= limits.strangers.count(request.ip, services.environment.now())
    void reply.headers({
      ...rateHeaders(request.rate),
      'x-request-id': request.id,
      'cache-control': reply.getHeader('cache-control') ?? 'no-store',
      'x-content-type-options': 'nosniff',
    })
  }
  const server = Fastify({
    bodyLimit: BODY_BYTES_MAX,
    // As many of the last hops are ours; what stands before them the client may have written
    // itself.
    trustProxy: (_address, hop) => hop < services.settings.trustProxy,
    genReqId: () => services.environment.uuid(),
    requestTimeout: REQUEST_TIMEOUT_MS,
    keepAliveTimeout: 65_000,
    exposeHeadRoutes: true,
    // What still arrives while the server closes is answered: everything it needs is closed after
    // it.
    return503OnClosing: false,
    // Node answers such a request itself, without our headers; so it is refused below.
    http: {
      requireHostHeader: false,
      connectionsCheckingInterval: REQUEST_CHECK_EVERY_MS,
      // Where it is longer than the request's, as it is by default, Node takes each for the other.
      headersTimeout: REQUEST_TIMEOUT_MS,
    },
    rewriteUrl: originForm,
    routerOptions: {
      maxParamLength: PATH_PART_MAX,
      ignoreTrailingSlash: false,
      querystringParser: parseQuery,
    },
    logger: false,
    frameworkErrors(error, request, reply) {
      // No hook runs for these.
      finish(request as FastifyRequest, reply as unknown as FastifyReply)
      void sendError(services, request as FastifyRequest, reply as unknown as FastifyReply, error)
      logProblem(services, request as FastifyRequest, reply as unknown as FastifyReply)
    },
    clientErrorHandler: (error, socket) => answerMalformed(services, limits, error, socket, routes),
  })
  server.decorateRequest('rate', null)
  server.decorateRequest('problem', null)
  server.server.on('connect', (_request, socket) =>
    answerOnSocket(
      services,
      limits,
      new ApiError('METHOD_NOT_ALLOWED', 'CONNECT is not supported: this server is not a proxy'),
      socket as Parameters<typeof answerOnSocket>[3],
    ),
  )
  // An expectation that nobody knows may be passed over (RFC 9110); Node would answer it without
  // our headers.
  server.server.on(
    'checkExpectation',
    (request, response) => void server.server.emit('request', request, response),
  )
  server.removeAllContentTypeParsers()
  // Hash first, parse after: the raw bytes are what the caller signed.
  server.addContentTypeParser('application/json', { parseAs: 'buffer' }, (request, body, done) =>
    done(refusedBytes(request, body as Buffer), body),
  )
  server.setValidatorCompiler(() => () => true)
  server.setSerializerCompiler(() => (data) => stringifyJson(data))
  const routes = new Routes(server)
  const sendUnrouted = async (
    request: FastifyRequest,
    reply: FastifyReply,
  ): Promise<FastifyReply> => {
    countAddress(limits.strangers, services, request)
    const { error, allow } = routes.unrouted(request.method, request.url)
    if (allow !== null) reply.header('allow', allow)
    await sendError(services, request, reply, error)
    return reply
  }
  server.addHook('onRequest', async (request, reply) => {
    if (request.headers.host === undefined && request.raw.httpVersion !== '1.0')
      throw new ApiError('INVALID_REQUEST', 'Host: header is missing', { field: 'Host' })
    // Before its body is read, which may be of any type.
    if (request.is404 || routes.lacks(request.method, request.url))
      return sendUnrouted(request, reply)
    if (!request.url.startsWith('/'))
      throw new ApiError(
        'INVALID_REQUEST',
        'path: must begin with a slash, or with http:// or https:// and a host',
        { field: 'path' },
      )
    if ((request.method === 'GET' || request.method === 'HEAD') && hasBody(request)) {
      throw new ApiError(
        'INVALID_REQUEST',
        `body: must be empty for ${request.method}; send the values as query parameters`,
        {
          field: 'body',
        },
      )
    }
    assertPlainBody(request)
    return undefined
  })
  server.addHook('onSend', (request, reply, payload, done) => {
    finish(request, reply)
    done(null, payload)
  })
  server.addHook('onResponse', (request, reply, done) => {
    const path = request.routeOptions.url ?? 'none'
    services.metrics.requests.labels(request.method, path, String(reply.statusCode)).inc()
    services.metrics.requestSeconds.labels(request.method, path).observe(reply.elapsedTime / 1000)
    if (reply.statusCode >= 400) logProblem(services, request, reply)
    done()
  })
  server.setErrorHandler((error, request, reply) => sendError(services, request, reply, error))
  server.setNotFoundHandler((request, reply) => sendUnrouted(request, reply))
  const streams = new Streams(services)
  // Closing waits for every open answer, and a stream has no end of its own.
  server.addHook('preClose', async () => streams.close())
  const door = apiAuthenticator(limits, auditWrite ?? null)
  for (const definition of endpoints) register(server, services, definition, door, streams)
  const otherDoor = others?.door(limits)
  if (others && otherDoor)
    for (const definition of others.list) register(server, services, definition, otherDoor, streams)
  for (const page of pages) registerPage(server, services, page, limits)
  registerProbes(server, services, limits)
  if (endpoints.length > 0) {
    registerOpenRoutes(server, services, limits, (base) =>
      openApiDocument({ base, endpoints, open: OPEN_OPERATIONS, webhooks }),
    )
  }
  return server
}

const hasBody = ({ headers }: FastifyRequest): boolean =>
  headers['transfer-encoding'] !== undefined || !/^0*$/.test(headers['content-length'] ?? '')

/**
 * Nothing here decompresses: the signed hash covers the bytes as sent. @throws ApiError
 * `UNSUPPORTED_MEDIA_TYPE`
 */
function assertPlainBody({ headers }: FastifyRequest): void {
  const coding = headers['content-encoding']
  if (coding === undefined || /^identity$/i.test(coding)) return
  throw new ApiError(
    'UNSUPPORTED_MEDIA_TYPE',
    'Content-Encoding: must be absent or identity; send the body without compression, because the body hash covers the bytes as sent',
    { field: 'Content-Encoding' },
  )
}

/**
 * Bytes that are no text cannot be hashed again from the stored request, nor shown to a signer
 * node.
 */
function refusedBytes(request: FastifyRequest, body: Buffer): ApiError | null {
  const charset = /;\s*charset\s*=\s*"?([^\s;"]+)/i.exec(request.headers['content-type'] ?? '')?.[1]
  if (charset !== undefined && !/^utf-?8$/i.test(charset))
    return new ApiError('UNSUPPORTED_MEDIA_TYPE', 'Content-Type: its charset must be utf-8', {
      field: 'Content-Type',
    })
  return isUtf8(body)
    ? null
    : new ApiError('INVALID_JSON', 'body: must be UTF-8 text', {
        field: 'body',
      })
}
