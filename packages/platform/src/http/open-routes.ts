import type { FastifyInstance, FastifyRequest } from 'fastify'
import { z } from 'zod'
import { ApiError } from '../errors.ts'
import type { Services } from '../engine/services.ts'
import { jsonSchema } from './schemas.ts'
import { shared } from '../engine/shared.ts'
import type { AddressLimits } from './rate-limit.ts'
import { countAddress } from './door.ts'
import { readQuery } from './validate.ts'

/** Nobody needs a key to ask, and each question is one to the database and to every signer node. */
const READINESS_KEPT_MS = 1000

/** Where a caller finds what. */
const INDEX = {
  name: 'Custody API',
  description: 'Digital-asset custody: threshold-signed wallets, idempotent transfers',
  links: { openapi: '/openapi.json', assets: '/assets', live: '/livez', ready: '/readyz' },
  authentication: 'Two headers: Authorization: Bearer <JWT>, x-api-key: <UUID>; README.md says how to make them',
  documentation: [
    'README.md',
    'ARCHITECTURE.md',
    'SECURITY.md',
    'CHANGELOG.md',
    'docs/mainnet.md',
    'docs/enrolment.md',
    'docs/invoices.md',
    'docs/checkout.md',
    'docs/console.md',
    'docs/events.md',
    'docs/webhooks.md',
    'docs/adding-a-chain.md',
    'docs/restoring-a-database.md',
    'docs/decisions',
    'packages/client/README.md',
  ],
}

const DEEP = z.strictObject({
  deep: z.enum(['', '1', 'true']).optional().meta({ description: 'Given: 503 also where fewer than two signer nodes can sign' }),
})

const openSchema = (summary: string) => ({ summary, security: [] })

/** What needs no key and is no endpoint of the API: where things are, and how the process is. */
export function registerOpenRoutes(server: FastifyInstance, services: Services, limits: AddressLimits): void {
  const takesNoQuery = (request: FastifyRequest) => void readQuery(null, request.query as Record<string, unknown>)
  // A probe is never refused, and costs its address nothing.
  const look = async (request: FastifyRequest) => {
    request.rate = limits.open.look(request.ip, services.environment.now())
  }
  const probe = async (request: FastifyRequest) => {
    await look(request)
    takesNoQuery(request)
  }
  const counted = async (request: FastifyRequest) => {
    countAddress(limits.open, services, request)
    takesNoQuery(request)
  }
  server.get('/', { schema: openSchema('Where things are'), preHandler: counted }, async () => INDEX)
  server.get('/openapi.json', { schema: openSchema('This document'), preHandler: counted }, async () => server.swagger())
  server.get('/livez', { schema: openSchema('Whether the process runs'), preHandler: probe }, async () => ({ status: 'ok' }))
  const ready = shared(
    () => services.readiness(),
    READINESS_KEPT_MS,
    () => services.environment.now()
  )
  const readyz = openSchema('Whether transfers are accepted: 200, else 503; with ?deep, whether they would also be signed')
  server.get('/readyz', { schema: { ...readyz, querystring: jsonSchema(DEEP) }, preHandler: look }, async (request, reply) => {
    const { deep } = readQuery(DEEP, request.query as Record<string, unknown>)
    const { ready: accepts, signing, checks } = await ready()
    const isReady = accepts && (signing || deep === undefined)
    return reply.code(isReady ? 200 : 503).send({ status: isReady ? 'ok' : 'unavailable', checks })
  })
  server.get('/metrics', { schema: openSchema('Prometheus metrics, from loopback only'), preHandler: probe }, async (request, reply) => {
    // A request that a proxy passed on comes from outside, whatever its last hop.
    if (!isLoopback(request.ip) || request.headers['x-forwarded-for'] !== undefined || request.headers['forwarded'] !== undefined)
      throw new ApiError('NOT_FOUND', 'no such path: GET /metrics')
    return reply
      .type(services.metrics.contentType)
      .serializer((text) => text as string)
      .send(await services.metrics.text())
  })
}

function isLoopback(address: string): boolean {
  return address === '127.0.0.1' || address === '::1' || address === '::ffff:127.0.0.1'
}
