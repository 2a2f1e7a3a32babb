import { isUtf8 } from 'node:buffer'
import { stringifyJson } from '@custody/request-auth'
import Fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify'
import { ApiError } from '../errors.ts'
import type { Environment } from '../environment.ts'
import type { Metrics } from '../metrics.ts'
import type { Logger } from 'pino'
import type { Database } from '../database/pool.ts'
import type { DatabaseHold } from '../engine/database-hold.ts'
import type { LoadMonitor } from '../load-monitor.ts'
import type { Settings } from '../settings/settings.ts'
import type { Callers } from './authentication/callers.ts'
import type { Readiness } from './readiness.ts'
import { apiAuthenticator, type AuditWrite } from './authentication/api-authenticator.ts'
import { countAddress, type Authenticator } from './authentication/authenticator.ts'
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

interface Services {
  settings: Pick<Settings, 'authLegacy' | 'metricsAllow' | 'rateLimit' | 'rateScope' | 'trustProxy'>
  environment: Environment
  database: Database
  callers: Callers
  hold: DatabaseHold
  pressure: LoadMonitor
  metrics: Metrics
  log: Logger
  checkout: { base: string }
  readiness(): Promise<Readiness>
}

declare module 'fastify' {
  interface FastifyRequest {
    rate: RateState | null
    problem: { code: string; field?: string } | null
  }
}

const BODY_BYTES_MAX = 1024 * 1024
/** Maximum time in milliseconds within which a request must be received completely. */
const REQUEST_TIMEOUT_MS = 30_000
/**
 * Interval in milliseconds at which Node checks for requests that exceeded this time; Node's
 * default is 30 seconds.
 */
const REQUEST_CHECK_EVERY_MS = 1000

/** Returns the options of a server that do not depend on its services. */
const fixedOptions = () => ({
  bodyLimit: BODY_BYTES_MAX,
  requestTimeout: REQUEST_TIMEOUT_MS,
  keepAliveTimeout: 65_000,
  exposeHeadRoutes: true,
  // Requests that arrive while the server closes are still answered, because their dependencies
  // are closed after the server.
  return503OnClosing: false,
  // Node would respond to a request without a `Host` header itself, without this server's headers;
  // the request is rejected below instead.
  http: {
    requireHostHeader: false,
    connectionsCheckingInterval: REQUEST_CHECK_EVERY_MS,
    // If this timeout is longer than the request timeout, as by default, Node swaps the two.
    headersTimeout: REQUEST_TIMEOUT_MS,
  },
  rewriteUrl: originForm,
  routerOptions: {
    maxParamLength: PATH_PART_MAX,
    ignoreTrailingSlash: false,
    querystringParser: parseQuery,
  },
  logger: false as const,
})

/** Endpoints with their own authenticator, which are not part of the API. */
export interface OtherEndpoints<O extends Operation = never> {
  list: readonly O[]
  authenticator(limits: AddressLimits): Authenticator<O>
}

/**
 * Parts of the server besides the API's endpoints. `webhooks`: the requests that it sends itself,
 * for the OpenAPI document.
 */
export interface ServerOptions<S, O extends Operation<S> = never> {
  pages?: readonly Page<S>[]
  webhooks?(components: Components): Record<string, object>
  others?: OtherEndpoints<O>
  auditWrite?: AuditWrite
}

/**
 * Builds the HTTP server, which does not listen yet. Without endpoints it serves only the health
 * probes.
 */
export async function buildServer<S extends Services, O extends Operation<S> = never>(
  services: S,
  endpoints: readonly Endpoint<S>[],
  { pages = [], webhooks = () => ({}), others, auditWrite }: ServerOptions<S, O> = {},
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
    ...fixedOptions(),
    // Trusts the configured number of proxies. A client can forge the addresses that precede those
    // of the trusted proxies.
    trustProxy: (_address, hop) => hop < services.settings.trustProxy,
    genReqId: () => services.environment.uuid(),
    frameworkErrors(error, request, reply) {
      // The headers are set and the error is logged here, because no hook runs for these requests.
      finish(request as FastifyRequest, reply as unknown as FastifyReply)
      void sendError(services, request as FastifyRequest, reply as unknown as FastifyReply, error)
      logProblem(services, request as FastifyRequest, reply as unknown as FastifyReply)
    },
    clientErrorHandler: (error, socket) => answerMalformed(services, limits, error, socket, routes),
  })
  server.decorateRequest('rate', null)
  server.decorateRequest('problem', null)
  handleUnusualRequests(server, services, limits)
  setBodyHandling(server)
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
    // The route is checked before the body is read, because the body may be of any type.
    if (request.is404 || routes.lacks(request.method, request.url))
      return sendUnrouted(request, reply)
    assertForm(request)
    return undefined
  })
  server.addHook('onSend', (request, reply, payload, done) => {
    finish(request, reply)
    done(null, payload)
  })
  server.addHook('onResponse', (request, reply, done) => {
    observeResponse(services, request, reply)
    done()
  })
  server.setErrorHandler((error, request, reply) => sendError(services, request, reply, error))
  server.setNotFoundHandler((request, reply) => sendUnrouted(request, reply))
  registerRoutes(server, services, limits, { endpoints, pages, webhooks, others, auditWrite })
  return server
}

/** Handles the requests that Node passes to no route: CONNECT, and unknown expectations. */
function handleUnusualRequests(
  server: FastifyInstance,
  services: Pick<Services, 'environment' | 'log' | 'checkout'>,
  limits: AddressLimits,
): void {
  server.server.on('connect', (_request, socket) =>
    answerOnSocket(
      services,
      limits,
      new ApiError('METHOD_NOT_ALLOWED', 'CONNECT is not supported: this server is not a proxy'),
      socket as Parameters<typeof answerOnSocket>[3],
    ),
  )
  // An unknown expectation may be ignored (RFC 9110); Node would respond without this server's
  // headers.
  server.server.on(
    'checkExpectation',
    (request, response) => void server.server.emit('request', request, response),
  )
}

/** Sets how bodies are received and sent; endpoints validate them. */
function setBodyHandling(server: FastifyInstance): void {
  server.removeAllContentTypeParsers()
  // The body is hashed before it is parsed, because the caller signed the raw bytes.
  server.addContentTypeParser('application/json', { parseAs: 'buffer' }, (request, body, done) =>
    done(refusedBytes(request, body as Buffer), body),
  )
  server.setValidatorCompiler(() => () => true)
  server.setSerializerCompiler(() => (data) => stringifyJson(data))
}

/** Registers all endpoints, pages and probes. */
function registerRoutes<S extends Services, O extends Operation<S>>(
  server: FastifyInstance,
  services: S,
  limits: AddressLimits,
  {
    endpoints,
    pages,
    webhooks,
    others,
    auditWrite,
  }: {
    endpoints: readonly Endpoint<S>[]
    pages: readonly Page<S>[]
    webhooks: (components: Components) => Record<string, object>
    others: OtherEndpoints<O> | undefined
    auditWrite: AuditWrite | undefined
  },
): void {
  const streams = new Streams(services)
  // Closing waits for every open response, and a stream does not end by itself.
  server.addHook('preClose', async () => streams.close())
  const authenticator = apiAuthenticator(services, limits, auditWrite ?? null)
  for (const definition of endpoints) register(server, services, definition, authenticator, streams)
  const otherAuthenticator = others?.authenticator(limits)
  if (others && otherAuthenticator)
    for (const definition of others.list)
      register(server, services, definition, otherAuthenticator, streams)
  for (const page of pages) registerPage(server, services, page, limits)
  registerProbes(server, services, limits)
  if (endpoints.length > 0) {
    registerOpenRoutes(server, services, limits, (base) =>
      openApiDocument({ base, endpoints, open: OPEN_OPERATIONS, webhooks }),
    )
  }
}

/**
 * Checks the form of a request's target and body.
 * @throws ApiError
 */
function assertForm(request: FastifyRequest): void {
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
}

/** Counts a response in the metrics, and logs an error response. */
function observeResponse(
  services: Pick<Services, 'metrics' | 'log'>,
  request: FastifyRequest,
  reply: FastifyReply,
): void {
  const path = request.routeOptions.url ?? 'none'
  services.metrics.requests.labels(request.method, path, String(reply.statusCode)).inc()
  services.metrics.requestSeconds.labels(request.method, path).observe(reply.elapsedTime / 1000)
  if (reply.statusCode >= 400) logProblem(services, request, reply)
}

const hasBody = ({ headers }: FastifyRequest): boolean =>
  headers['transfer-encoding'] !== undefined || !/^0*$/.test(headers['content-length'] ?? '')

/**
 * Rejects compressed bodies: the signed hash covers the bytes as sent, and the server does not
 * decompress them.
 * @throws ApiError `UNSUPPORTED_MEDIA_TYPE`
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
 * Returns the error for a body that is not valid UTF-8. It could not be hashed again from the
 * stored request, nor sent to a signer node.
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
