import { asInstalled } from '@custody/chains/terminal'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import ipaddr from 'ipaddr.js'
import { z } from 'zod'
import { MESSAGE_MAX, NAME_MAX } from '../bounds.ts'
import { ApiError } from '../errors.ts'
import type { Settings } from '../settings/settings.ts'
import type { Environment } from '../environment.ts'
import type { Metrics } from '../metrics.ts'
import type { Readiness } from './readiness.ts'
import { shared } from '../engine/shared.ts'
import type { JsonSchema } from './openapi/components.ts'
import type { OpenOperation } from './openapi/document.ts'
import { withTextAmounts } from './openapi/text-amounts.ts'
import { isLoopbackAddress, isLoopbackHost } from './loopback.ts'
import type { AddressLimits } from './rate-limit.ts'
import { countAddress } from './authentication/authenticator.ts'
import { readQuery } from './validate.ts'

interface Services {
  settings: Pick<Settings, 'metricsAllow'>
  environment: Environment
  metrics: Metrics
  checkout: { base: string }
  readiness(): Promise<Readiness>
}

/**
 * Cache time of the readiness checks, in milliseconds. Requests for readiness need no key, and each
 * check queries the database and every signer node.
 */
const READINESS_KEPT_MS = 1000

/** Body of the index, which lists the locations of the API's resources. */
const INDEX = {
  name: 'Custody API',
  description: 'Digital-asset custody: threshold-signed wallets, idempotent transfers',
  links: {
    reference: '/reference',
    openapi: '/openapi.json',
    assets: '/assets',
    live: '/livez',
    ready: '/readyz',
  },
  authentication:
    'Two headers: Authorization: Bearer <JWT>, x-api-key: <UUID>; /reference signs requests for you, docs/requests.md describes the signature',
  documentation: [
    'README.md',
    'docs/index.md',
    'docs/requests.md',
    'SECURITY.md',
    'ARCHITECTURE.md',
    'CHANGELOG.md',
  ],
}

const DEEP = z.strictObject({
  deep: z.enum(['', '1', 'true']).optional().meta({
    description:
      'If present, 503 is also returned if fewer than two signer nodes can sign, or if no worker or no scanner runs',
  }),
})

const DOCUMENT = z.strictObject({
  amounts: z.enum(['number', 'string']).optional().meta({
    description: 'How the document describes decimals; by default `number`',
  }),
})

const INDEX_SHAPE = z.object({
  name: z.string().max(NAME_MAX),
  description: z.string().max(MESSAGE_MAX),
  links: z
    .record(z.string().max(NAME_MAX), z.string().max(MESSAGE_MAX))
    .meta({ maxProperties: Object.keys(INDEX.links).length }),
  authentication: z.string().max(MESSAGE_MAX),
  documentation: z.array(z.string().max(NAME_MAX)).max(INDEX.documentation.length),
})
/** Maximum number of readiness checks: the database, each signer node, and the roles. */
const CHECKS_MAX = 50
const READINESS_SHAPE = z.object({
  status: z.enum(['ok', 'unavailable']),
  checks: z
    .record(z.string().max(NAME_MAX), z.string().max(MESSAGE_MAX))
    .meta({ maxProperties: CHECKS_MAX }),
})

/** The routes that need no key, for the OpenAPI document. */
export const OPEN_OPERATIONS: readonly OpenOperation[] = [
  {
    path: '/',
    id: 'readIndex',
    summary: 'Read the index',
    description: 'Returns the links of this API and the versions of its documents.',
    response: INDEX_SHAPE,
  },
  {
    path: '/openapi.json',
    id: 'readOpenApi',
    summary: 'Read this document',
    description:
      'Returns this document in OpenAPI 3.1; /reference displays it. With `amounts=string`, decimals are described as strings, for generated clients whose numbers are doubles.',
    query: DOCUMENT,
    response: z.looseObject({ openapi: z.literal('3.1.0') }).meta({ maxProperties: 20 }),
  },
  {
    path: '/livez',
    id: 'readLiveness',
    summary: 'Check that the process runs',
    description: 'Liveness check for process supervisors; causes no load.',
    response: z.object({ status: z.literal('ok') }),
  },
  {
    path: '/readyz',
    id: 'readReadiness',
    summary: 'Check that transfers are accepted',
    description:
      'Returns 200 if POST /dac/v1/transaction would be accepted, otherwise 503; with `deep`, also checks that the transfer would be processed and signed.',
    query: DEEP,
    response: READINESS_SHAPE,
    alsoUnavailable: true,
  },
  {
    path: '/metrics',
    id: 'readMetrics',
    summary: 'Read metrics',
    response: null,
    description:
      'Returns metrics in the Prometheus text format. Accessible from loopback and from the addresses in CUSTODY_METRICS_ALLOW.',
    mediaType: 'text/plain',
    errors: ['NOT_FOUND'],
  },
]

const takesNoQuery = (request: FastifyRequest) =>
  void readQuery(null, request.query as Record<string, unknown>)

/** Registers the routes that need no key and are not endpoints of the API: index and documents. */
export function registerOpenRoutes(
  server: FastifyInstance,
  services: Pick<Services, 'environment' | 'checkout'>,
  limits: AddressLimits,
  document: (base: string) => JsonSchema,
): void {
  const counted = async (request: FastifyRequest) => {
    countAddress(limits.open, services, request)
    takesNoQuery(request)
  }
  server.get('/', { preHandler: counted }, async () => INDEX)
  // The documents are generated on the first request, once for each origin of this server.
  const texts = new Map<string, string>()
  const ask = async (request: FastifyRequest) => countAddress(limits.open, services, request)
  server.get('/openapi.json', { preHandler: ask }, async (request, reply) => {
    const { amounts = 'number' } = readQuery(DOCUMENT, request.query as Record<string, unknown>)
    const { base } = services.checkout
    const made = () => (amounts === 'string' ? withTextAmounts(document(base)) : document(base))
    const text = texts.get(`${amounts} ${base}`) ?? asInstalled(JSON.stringify(made()))
    texts.set(`${amounts} ${base}`, text)
    return reply
      .type('application/json; charset=utf-8')
      .serializer((each) => each as string)
      .send(text)
  })
}

/** Registers the health probes, which every role serves. */
export function registerProbes(
  server: FastifyInstance,
  services: Services,
  limits: AddressLimits,
): void {
  // A probe is never rate-limited and does not count against its address.
  const look = async (request: FastifyRequest) => {
    request.rate = limits.open.look(request.ip, services.environment.now())
  }
  const probe = async (request: FastifyRequest) => {
    await look(request)
    takesNoQuery(request)
  }
  server.get('/livez', { preHandler: probe }, async () => ({ status: 'ok' }))
  const ready = shared(
    () => services.readiness(),
    READINESS_KEPT_MS,
    () => services.environment.now(),
  )
  server.get('/readyz', { preHandler: look }, async (request, reply) => {
    const { deep } = readQuery(DEEP, request.query as Record<string, unknown>, ['deep'])
    const { ready: accepts, signing, attended, checks } = await ready()
    const isReady = accepts && ((signing && attended) || deep === undefined)
    return reply.code(isReady ? 200 : 503).send({ status: isReady ? 'ok' : 'unavailable', checks })
  })
  server.get('/metrics', { preHandler: probe }, async (request, reply) => {
    // A request forwarded by a proxy comes from outside, even if its last hop is local.
    const isForwarded =
      request.headers['x-forwarded-for'] !== undefined || request.headers['forwarded'] !== undefined
    // A browser on this machine must not read metrics for a page whose name resolves to loopback.
    const isForeignName = isLoopbackAddress(request.ip) && !isLoopbackHost(request.headers.host)
    if (isForwarded || isForeignName || !isWithin(services.settings.metricsAllow, request.ip))
      throw new ApiError('NOT_FOUND', 'no such path: GET /metrics')
    return reply
      .type(services.metrics.contentType)
      .serializer((text) => text as string)
      .send(await services.metrics.text())
  })
}

/**
 * Returns whether the address is in one of the ranges. An IPv4 address received on an IPv6 socket
 * is compared as IPv4.
 */
function isWithin(ranges: readonly string[], address: string): boolean {
  const parsed = ipaddr.process(address)
  return ranges.some((range) => {
    const [base, bits] = ipaddr.parseCIDR(range)
    return base.kind() === parsed.kind() && parsed.match(base, bits)
  })
}
