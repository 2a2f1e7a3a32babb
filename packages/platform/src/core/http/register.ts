import { stringifyJson } from '@custody/request-auth'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { Database } from '../database/pool.ts'
import type { Environment } from '../environment.ts'
import type { LoadMonitor } from '../load-monitor.ts'
import { ApiError } from '../errors.ts'
import { decimalsOf, TEXT_AMOUNTS, wantsTexts, withTexts, type Decimals } from './amounts.ts'
import type { Authenticator, Identification, Principal } from './authentication/authenticator.ts'
import { allowBody, assertLength, type BodyBudget } from './bodies.ts'
import type { Admission, Operation, Reply } from './endpoint.ts'
import type { HeavyWork } from './heavy-work.ts'
import { Components } from './openapi/components.ts'
import type { Streams } from './streams.ts'
import { assertStorablePath, fieldsOf, readBody, readParams, readQuery } from './validate.ts'

interface Services {
  environment: Environment
  database: Database
  pressure: LoadMonitor
}

declare module 'fastify' {
  interface FastifyRequest {
    /** The sender, once it is identified by the headers. */
    identified: { by: Identification; at: number } | null
    /** Whether the sender was authenticated. */
    isAuthenticated: boolean
  }
}

/** What all endpoints of a server share. */
export interface Shared {
  streams: Streams
  bodies: BodyBudget
  heavyWork: HeavyWork
}

/**
 * Registers an endpoint as a route: authenticates the caller, validates the request and calls the
 * handler.
 */
export function register<S extends Services, O extends Operation<S>>(
  server: FastifyInstance,
  services: S,
  definition: O,
  authenticator: Authenticator<O>,
  { streams, bodies, heavyWork }: Shared,
): void {
  let decimals: Decimals | undefined
  /**
   * Returns the decimals of this endpoint's response. They are computed when a response with
   * decimals as strings is first needed.
   */
  const decimalsHere = (): Decimals => {
    const components = new Components()
    return (decimals ??= decimalsOf(
      definition.response ? components.shown(definition.response) : {},
      (schema) => components.resolve(schema),
    ))
  }
  server.route({
    method: definition.method,
    url: definition.path.replaceAll(/\{(\w+)\}/g, ':$1'),
    bodyLimit: authenticator.bodyBytesMax(definition),
    async onRequest(request, reply) {
      assertLength(request)
      const at = services.environment.now()
      // The path is checked before authentication, because authentication already queries the
      // database with parts of the path.
      assertStorablePath(request.params as Record<string, string>)
      const by = await services.pressure.during(() =>
        services.database.withShortTimeout(() => authenticator.identify(request, definition)),
      )
      request.identified = { by, at }
      if (definition.method !== 'GET') allowBody(bodies, request, reply, by.owner)
    },
    async handler(request, reply) {
      // The header is read first, so that a request with an invalid header changes nothing.
      const isText = wantsTexts(request.headers.accept)
      const { holder, answer, end } = await services.pressure.during(() =>
        answerTo(services, definition, request, heavyWork),
      )
      // A body in pieces is work until it has been sent.
      if (end && answer.pieces) reply.raw.once('finish', end).once('close', end)
      else end?.()
      for (const [name, value] of Object.entries(answer.headers ?? {})) reply.header(name, value)
      if (answer.stream)
        return streams.sendEvents(request, reply, holder, answer.stream, answer.resource)
      if (answer.pieces) return streams.sendPieces(request, reply, holder, answer.pieces)
      return sendText(reply, answer, isText ? decimalsHere : null)
    },
  })
}

/** A response, and a function that ends the heavy work of the request, if it is heavy. */
interface Answered {
  holder: Principal | null
  answer: Reply
  end?: () => void
}

/** Authenticates and validates a request with its body, and calls the handler. */
async function answerTo<S extends Services, O extends Operation<S>>(
  services: S,
  definition: O,
  request: FastifyRequest,
  heavyWork: HeavyWork,
): Promise<Answered> {
  const { by, at: askedAt } = request.identified as NonNullable<typeof request.identified>
  const rawBody = request.body instanceof Buffer ? request.body.toString('utf8') : ''
  const { admission, holder, workspaceId } = await services.database.withShortTimeout(() =>
    by.admit(rawBody),
  )
  request.isAuthenticated = holder !== null
  let body: unknown
  let end: (() => void) | undefined
  try {
    const input = readInput(definition, request, rawBody)
    body = input.body
    const context = { ...(admission as Admission), ...input, askedAt }
    if (definition.heavy && workspaceId !== null)
      end = await heavyWork.start(workspaceId, definition.heavy)
    const handled = () => definition.handler(context, services)
    // A write has a longer timeout, because after a timeout the caller would not know whether it
    // was done.
    return {
      holder,
      answer: await (definition.method === 'GET'
        ? services.database.withShortTimeout(handled)
        : handled()),
      ...(end ? { end } : {}),
    }
  } catch (refusal) {
    end?.()
    const earlier = await earlierAnswer(definition, refusal, {
      services,
      rawBody,
      body,
      params: request.params as Record<string, string>,
      caller: (admission as Admission).caller,
    })
    if (earlier) return { holder, answer: earlier }
    throw refusal
  }
}

/**
 * Reads the validated parts of a request.
 * @throws ApiError
 */
function readInput(definition: Operation, request: FastifyRequest, rawBody: string) {
  // Without a schema the body may be absent or an empty object.
  const body =
    definition.body || (definition.method !== 'GET' && rawBody.trim() !== '')
      ? readBody(definition.body ?? null, rawBody)
      : undefined
  const query = readQuery(definition.query ?? null, request.query as Record<string, unknown>)
  const params = definition.params ? readParams(definition.params, request.params) : undefined
  const lastEventId = request.headers['last-event-id']?.toString()
  return { body, query, params, lastEventId }
}

/**
 * Returns the earlier response to the request's idempotency key, which replaces the error. A lost
 * database connection is not a rejection, so it returns nothing.
 */
async function earlierAnswer<S>(
  definition: Operation<S>,
  refusal: unknown,
  {
    services,
    rawBody,
    body,
    params,
    caller,
  }: {
    services: S
    rawBody: string
    body: unknown
    params: Record<string, string>
    caller: Admission['caller']
  },
): Promise<Reply | null> {
  if (definition.earlier === undefined || !(refusal instanceof ApiError)) return null
  const fields = fieldsOf(rawBody)
  return fields && definition.earlier({ caller, fields, body, params }, services)
}

/**
 * Sends a response with its text or JSON body.
 * @param decimalsHere returns the decimals, which are sent as strings; null: they are sent as numbers
 */
function sendText(
  reply: FastifyReply,
  answer: Reply,
  decimalsHere: (() => Decimals) | null,
): FastifyReply {
  reply.code(answer.status ?? 200)
  const text = answer.text ?? stringifyJson(answer.body)
  const isJson = answer.headers?.['content-type'] === undefined
  if (isJson)
    reply.type(
      decimalsHere === null ? 'application/json; charset=utf-8' : `${TEXT_AMOUNTS}; charset=utf-8`,
    )
  return reply
    .serializer((data) => data as string)
    .send(decimalsHere !== null && isJson ? withTexts(text, decimalsHere()) : text)
}
