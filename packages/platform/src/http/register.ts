import { SIGNED_BODY_BYTES_MAX, stringifyJson, type SignedRequest } from '@custody/request-auth'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { ApiError } from '../errors.ts'
import type { Services } from '../engine/services.ts'
import { authenticate } from './authenticate.ts'
import type { Caller, Endpoint } from './endpoint.ts'
import type { EventStreams } from './event-stream.ts'
import { assertExactTarget } from './exact-target.ts'
import type { AddressLimit, AddressLimits, RateState } from './rate-limit.ts'
import { readBody, readParams, readQuery } from './validate.ts'

/** @throws ApiError `RATE_LIMITED` where the client's address has used up this allowance */
export function countAddress(limit: AddressLimit, services: Services, request: FastifyRequest): void {
  const state = limit.count(request.ip, services.environment.now())
  request.rate = state
  if (state.exceeded)
    throw new ApiError(
      'RATE_LIMITED',
      `too many requests without a valid key in this minute; wait until ${new Date(state.reset).toISOString()}`
    )
}

/** Makes an endpoint a route: authenticates, validates, calls its handler. */
export function register(
  server: FastifyInstance, services: Services, definition: Endpoint, limits: AddressLimits, streams: EventStreams
): void {
  const open = definition.access === 'public'
  server.route({
    method: definition.method,
    url: definition.path.replaceAll(/\{(\w+)\}/g, ':$1'),
    // What a caller writes is shown to the signer nodes as it came.
    ...(definition.access === 'write' ? { bodyLimit: SIGNED_BODY_BYTES_MAX } : {}),
    async handler(request, reply) {
      const rawBody = request.body instanceof Buffer ? request.body.toString('utf8') : ''
      let caller: Caller | undefined
      let signed: SignedRequest | undefined
      if (open) countAddress(limits.open, services, request)
      else ({ caller, signed } = await admit(services, limits, request, rawBody, definition))
      // Without a schema a body may be absent, or an empty object.
      const body =
        definition.body || (definition.method !== 'GET' && rawBody.trim() !== '') ? readBody(definition.body ?? null, rawBody) : undefined
      const query = readQuery(definition.query ?? null, request.query as Record<string, unknown>)
      const params = definition.params ? readParams(definition.params, request.params) : undefined
      const lastEventId = request.headers['last-event-id']?.toString()
      const answer = await definition.handler({
        services, caller: caller as Caller, body, query, params, signed: signed as SignedRequest, lastEventId,
      })
      for (const [name, value] of Object.entries(answer.headers ?? {})) reply.header(name, value)
      if (answer.stream) return streams.send(request, reply, caller, answer.stream)
      reply.code(answer.status ?? 200)
      if (answer.headers?.['content-type'] === undefined) reply.type('application/json; charset=utf-8')
      return reply.serializer((data) => data as string).send(answer.text ?? stringifyJson(answer.body))
    },
  })
}

/** Who asks, and whether he may. Only a failed authentication costs the address something. */
async function admit(
  services: Services,
  limits: AddressLimits,
  request: FastifyRequest,
  rawBody: string,
  { access, path }: Endpoint
): Promise<{ caller: Caller; signed: SignedRequest }> {
  if (request.headers['content-encoding'] !== undefined)
    throw new ApiError('UNSUPPORTED_MEDIA_TYPE', 'Content-Encoding: is not accepted; the body hash covers the bytes as sent', {
      field: 'Content-Encoding',
    })
  try {
    const { caller, signed, rate } = await authenticate(services, request.raw, rawBody, path)
    request.rate = rate
    if (access === 'write' && caller.role !== 'full')
      throw new ApiError('READ_ONLY', 'this API key is read-only; the operation needs a key with the role full')
    if (access === 'write') assertExactTarget(request.raw.url ?? '', path)
    if (access === 'write') services.hold.assertNone()
    return { caller, signed }
  } catch (error) {
    const rate = error instanceof ApiError ? (error.details?.['rate'] as RateState | undefined) : undefined
    if (rate) request.rate = rate
    else if (error instanceof ApiError && error.status === 401) countAddress(limits.strangers, services, request)
    throw error
  }
}
