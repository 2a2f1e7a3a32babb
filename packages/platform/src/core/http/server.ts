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
import { BodyBudget, PUBLIC_BODY_BYTES_MAX, receiveBodies } from './bodies.ts'
import { HeavyWork } from './heavy-work.ts'
import { RefusalLog } from './refusal-log.ts'
import { Streams } from './streams.ts'
import { answerMalformed, answerOnSocket, type SocketParts } from './malformed.ts'
import { OPEN_OPERATIONS, registerOpenRoutes, registerProbes } from './open-routes.ts'
import type { Components } from './openapi/components.ts'
import { openApiDocument } from './openapi/document.ts'
import { registerPage, type Page } from './page.ts'
import { hasBody, logProblem, PATH_PART_MAX, sendError } from './problems.ts'
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

/** Maximum number of open connections of one process; above it, new connections are closed. */
const CONNECTIONS_MAX = 4096
/** Maximum time in milliseconds within which a request must be received completely. */
const REQUEST_TIMEOUT_MS = 30_000
/**
 * Interval in milliseconds at which Node checks for requests that exceeded this time; Node's
 * default is 30 seconds.
 */
const REQUEST_CHECK_EVERY_MS = 1000

/** Returns the options of a server that do not depend on its services. */
const fixedOptions = () => ({
  bodyLimit: PUBLIC_BODY_BYTES_MAX,
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
  const refusals = new RefusalLog(services)
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
      logProblem(services, refusals, request as FastifyRequest, reply as unknown as FastifyReply)
    },
    clientErrorHandler: (error, socket) =>
      answerMalformed({ services, limits, refusals }, error, socket, routes),
  })
  decorateRequests(server)
  limitConnections(server, services.metrics)
  handleUnusualRequests(server, { services, limits, refusals })
  const bodies = new BodyBudget(services.metrics)
  receiveBodies(server, bodies)
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
    assertHost(request)
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
    observeResponse(services, refusals, request, reply)
    done()
  })
  server.setErrorHandler((error, request, reply) => sendError(services, request, reply, error))
  server.setNotFoundHandler((request, reply) => sendUnrouted(request, reply))
  server.addHook('onClose', async () => refusals.report())
  const parts = { endpoints, pages, webhooks, others, auditWrite, bodies }
  registerRoutes(server, services, limits, parts)
  return server
}

/** Adds the fields of requests that this module sets, and turns the framework's own schemas off. */
function decorateRequests(server: FastifyInstance): void {
  server.decorateRequest('rate', null)
  server.decorateRequest('problem', null)
  server.decorateRequest('identified', null)
  server.decorateRequest('isAuthenticated', false)
  server.setValidatorCompiler(() => () => true)
  server.setSerializerCompiler(() => (data) => stringifyJson(data))
}

/**
 * Checks that a request names one host (RFC 9112, section 3.2). Node would use the first of several.
 * @throws ApiError `INVALID_REQUEST`
 */
function assertHost({ raw }: FastifyRequest): void {
  const count = raw.rawHeaders.filter(
    (name, at) => at % 2 === 0 && name.toLowerCase() === 'host',
  ).length
  if (count > 1)
    throw new ApiError('INVALID_REQUEST', 'Host: appears more than once; send it once', {
      field: 'Host',
    })
  if (count === 0 && raw.httpVersion !== '1.0')
    throw new ApiError('INVALID_REQUEST', 'Host: header is missing', { field: 'Host' })
}

/** Limits the number of open connections. */
function limitConnections(
  { server }: FastifyInstance,
  { connectionsRefused }: Pick<Metrics, 'connectionsRefused'>,
): void {
  server.maxConnections = CONNECTIONS_MAX
  server.on('drop', () => connectionsRefused.inc())
}

/** Handles the requests that Node passes to no route: CONNECT, and unknown expectations. */
function handleUnusualRequests(server: FastifyInstance, parts: SocketParts): void {
  server.server.on('connect', (_request, socket) =>
    answerOnSocket(
      parts,
      new ApiError('METHOD_NOT_ALLOWED', 'CONNECT is not supported: this server is not a proxy'),
      socket as Parameters<typeof answerOnSocket>[2],
    ),
  )
  // An unknown expectation may be ignored (RFC 9110); Node would respond without this server's
  // headers.
  server.server.on(
    'checkExpectation',
    (request, response) => void server.server.emit('request', request, response),
  )
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
    bodies,
  }: {
    endpoints: readonly Endpoint<S>[]
    pages: readonly Page<S>[]
    webhooks: (components: Components) => Record<string, object>
    others: OtherEndpoints<O> | undefined
    auditWrite: AuditWrite | undefined
    bodies: BodyBudget
  },
): void {
  const streams = new Streams(services)
  const shared = { streams, bodies, heavyWork: new HeavyWork() }
  // Closing waits for every open response, and a stream does not end by itself.
  server.addHook('preClose', async () => streams.close())
  const authenticator = apiAuthenticator(services, limits, auditWrite ?? null)
  for (const definition of endpoints) register(server, services, definition, authenticator, shared)
  const otherAuthenticator = others?.authenticator(limits)
  if (others && otherAuthenticator)
    for (const definition of others.list)
      register(server, services, definition, otherAuthenticator, shared)
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
  refusals: RefusalLog,
  request: FastifyRequest,
  reply: FastifyReply,
): void {
  const path = request.routeOptions.url ?? 'none'
  services.metrics.requests.labels(request.method, path, String(reply.statusCode)).inc()
  services.metrics.requestSeconds.labels(request.method, path).observe(reply.elapsedTime / 1000)
  if (reply.statusCode >= 400) logProblem(services, refusals, request, reply)
  else refusals.turn()
}

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
