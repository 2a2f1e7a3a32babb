import type { SignedRequest } from '@custody/request-auth'
import { z } from 'zod'
import type { Services } from '../engine/services.ts'
import type { ErrorCode } from '../errors.ts'
import type { Tag } from './openapi/tags.ts'

/** Who makes an authenticated request. A key acts in its own sub-account only. */
export interface Caller {
  apiKey: string
  role: 'full' | 'read-only'
  workspaceId: string
  workspace: string
  subAccountId: string
  subAccount: string
  /** First element of the sub-account's derivation paths. */
  subAccountIndex: number
}

/** What the API's door knows of who asks (`http/authenticator.ts`). */
export interface Admission {
  /** Present wherever `access` is not public. */
  caller: Caller
  /** The signed request, raw, as it goes to the signer nodes. */
  signed: SignedRequest
}

export interface Context<Body, Query, Params> extends Admission {
  services: Services
  body: Body
  query: Query
  params: Params
  /**
   * When the request came, before anybody was asked who sent it: milliseconds of this process's
   * clock.
   */
  askedAt: number
  /** `Last-Event-ID`: what the client of a stream has seen already. */
  lastEventId?: string | undefined
}

/**
 * What a stream sends: see the HTML standard, server-sent events. `data` may have several lines.
 */
export interface ServerEvent {
  /** Comes back as `Last-Event-ID` when the client reconnects. */ id?: string
  event?: string
  data: string
}

/** A request that may carry an idempotency key, also one whose other fields are refused. */
export interface Repeated<Body> {
  services: Services
  caller: Caller
  /** Of the JSON body, as they were sent: their types are not checked. */
  fields: Readonly<Record<string, unknown>>
  /** Undefined where the body, the query or the path is refused. */
  body: Body | undefined
  params: Readonly<Record<string, string>>
}

export interface Reply {
  status?: number
  headers?: Record<string, string>
  body?: unknown
  /** JSON text to send as it is. */ text?: string
  /**
   * Server-sent events in place of a body. They must end soon after the signal: the client has
   * left, or the server closes.
   */
  stream?(signal: AbortSignal): AsyncIterable<ServerEvent>
  /**
   * What a stream without a key reports on, for example `invoice …`: those of one resource are
   * counted together.
   */
  resource?: string
  /**
   * A body of any length, a piece after the other, asked for no faster than the client reads. It
   * has its `content-type`.
   */
  pieces?(signal: AbortSignal): AsyncIterable<string>
}

/** What is asked for at one path by one method, whoever may ask. */
export interface Operation<
  B extends z.ZodType = z.ZodType,
  Q extends z.ZodType = z.ZodType,
  P extends z.ZodType = z.ZodType,
> {
  method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  path: string
  summary: string
  body?: B
  query?: Q
  params?: P
  /** Documentation of the 200 body. */
  response?: z.ZodType
  /** The 200 answer is a stream of server-sent events, whose data `response` describes. */
  streams?: true
  /** Of the 200 answer, where it is not JSON. */
  mediaType?: string
  handler(context: Context<z.output<B>, z.output<Q>, z.output<P>>): Promise<Reply>
  /**
   * The answer that the request's idempotency key has already; null where it is new, or cannot be
   * read. It is looked up where the request is refused, and takes the place of the refusal: what
   * was made under the key exists, whatever is wrong with this request.
   */
  earlier?(request: Repeated<z.output<B>>): Promise<Reply | null>
}

/** One endpoint of the API: one file holds its schemas and handler. */
export interface Endpoint<
  B extends z.ZodType = z.ZodType,
  Q extends z.ZodType = z.ZodType,
  P extends z.ZodType = z.ZodType,
> extends Operation<B, Q, P> {
  /** `operationId`: what generated clients call it. Never changed. */
  id: string
  tag: Tag
  /** What it does, for its caller: Markdown. */
  description: string
  /**
   * Its own codes, beside those that follow from method and access. What it answers is held against
   * them in the tests.
   */
  errors?: readonly ErrorCode[]
  /** A body as it is usually sent, where that of the schema alone says little. */
  example?: Record<string, unknown>
  /** `public`: no authentication. `read`: any key. `write`: a key with the full role. */
  access: 'public' | 'read' | 'write'
  /** It changes how things are done from now on: the audit log tells of it, whoever asks. */
  isSetting?: true
}

/** Keeps the types of one endpoint's schemas for its handler. */
export function endpoint<B extends z.ZodType, Q extends z.ZodType, P extends z.ZodType>(
  definition: Endpoint<B, Q, P>,
): Endpoint {
  return definition as unknown as Endpoint
}
