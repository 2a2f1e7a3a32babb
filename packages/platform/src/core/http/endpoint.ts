import { API_ROLES, type ApiRole } from '@custody/request-auth/roles'
import type { SignedRequest } from '@custody/request-auth'
import { z } from 'zod'
import type { ErrorCode } from '../errors.ts'
import type { Heavy } from './heavy-work.ts'
import type { Tag } from './openapi/tags.ts'

/** Caller of an authenticated request. A key acts only in its own sub-account. */
export interface Caller {
  apiKey: string
  role: ApiRole
  workspaceId: string
  workspace: string
  subAccountId: string
  subAccount: string
  /** First element of the derivation paths of the sub-account's addresses. */
  subAccountIndex: number
}

/** What `authentication/authenticator.ts` adds to a handler's context. */
export interface Admission {
  /** The authenticated caller; present unless `access` is `public`. */
  caller: Caller
  /** The raw signed request, as it is sent to the signer nodes. */
  signed: SignedRequest
}

export interface Context<Body, Query, Params> extends Admission {
  body: Body
  query: Query
  params: Params
  /**
   * Time at which the request arrived, before authentication, in milliseconds of this process's
   * clock.
   */
  askedAt: number
  /** `Last-Event-ID`: the last event that the client of a stream has received. */
  lastEventId?: string | undefined
}

/** One event of a stream (HTML standard, server-sent events). `data` may have several lines. */
export interface ServerEvent {
  /** ID of the event. The client sends it as `Last-Event-ID` when it reconnects. */ id?: string
  event?: string
  data: string
}

/**
 * A request that may have an idempotency key, including a request whose other fields are rejected.
 */
export interface Repeated<Body> {
  caller: Caller
  /** Fields of the JSON body as sent; their types are not validated. */
  fields: Readonly<Record<string, unknown>>
  /** Undefined if the body, the query or the path is rejected. */
  body: Body | undefined
  params: Readonly<Record<string, string>>
}

export interface Reply {
  status?: number
  headers?: Record<string, string>
  body?: unknown
  /** JSON text to send unchanged. */ text?: string
  /**
   * Server-sent events in place of a body. The iteration must end soon after the signal, which
   * means that the client has disconnected or the server is closing.
   */
  stream?(signal: AbortSignal): AsyncIterable<ServerEvent>
  /**
   * Subject of a stream that needs no key, for example `invoice …`. Streams with the same subject
   * are counted together.
   */
  resource?: string
  /**
   * A body of unlimited length, sent in pieces. Pieces are requested no faster than the client
   * reads. The reply must set its `content-type`.
   */
  pieces?(signal: AbortSignal): AsyncIterable<string>
}

/**
 * An operation: one method of one path, for any kind of caller. `Services`: what its handler needs
 * of the platform; `never`: unknown, so that it can be described but not called.
 */
export interface Operation<
  in Services = never,
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
  /** Schema of the body of the 200 response, for the documentation. */
  response?: z.ZodType
  /** The 200 response is a stream of server-sent events whose data has the schema `response`. */
  streams?: true
  /** Media type of the 200 response, if it is not JSON. */
  mediaType?: string
  /** The operation takes much more time than others. */
  heavy?: Heavy
  handler(
    context: Context<z.output<B>, z.output<Q>, z.output<P>>,
    services: Services,
  ): Promise<Reply>
  /**
   * Returns the earlier response to the request's idempotency key, or null if the key is new or
   * cannot be read. It is called when the request is rejected, and its result replaces the error:
   * the object that was made under the key exists, whatever is wrong with this request.
   */
  earlier?(request: Repeated<z.output<B>>, services: Services): Promise<Reply | null>
}

/**
 * Whether an operation that changes something leaves an entry in the audit log. `not`: why it does not.
 * Requests that people's API keys sign are always recorded.
 */
export type Audited = 'entry' | { not: string }

/**
 * Required authorization. `public`: no authentication. `read`: any key. `write`: a key with the
 * full role; its requests change something.
 */
/** `roles`: roles of API keys that may do it, if not only `full`. */
type Access =
  | { access: 'public' | 'read'; audit?: undefined; roles?: undefined }
  | { access: 'write'; audit: Audited; roles?: readonly ApiRole[] }

/** Roles for requests whose content a person signed: the API key only carries it. */
export const CARRIERS: readonly ApiRole[] = API_ROLES
/** Roles for proposals about the policy. */
export const PROPOSERS: readonly ApiRole[] = ['full', 'approve']
const PAYERS: readonly ApiRole[] = ['full']

/** Returns the roles of API keys that may use an endpoint. */
export const rolesOf = ({ access, roles }: Pick<Access, 'access' | 'roles'>): readonly ApiRole[] =>
  access === 'write' ? (roles ?? PAYERS) : API_ROLES

/** One endpoint of the API. Each endpoint has a file with its schemas and handler. */
export type Endpoint<
  Services = never,
  B extends z.ZodType = z.ZodType,
  Q extends z.ZodType = z.ZodType,
  P extends z.ZodType = z.ZodType,
> = Described<Services, B, Q, P> & Access

interface Described<
  in Services = never,
  B extends z.ZodType = z.ZodType,
  Q extends z.ZodType = z.ZodType,
  P extends z.ZodType = z.ZodType,
> extends Operation<Services, B, Q, P> {
  /**
   * `operationId` of the OpenAPI document: the method's name in generated clients. Never changed.
   */
  id: string
  tag: Tag
  /** Description of the endpoint for its callers, in Markdown. */
  description: string
  /**
   * Error codes of this endpoint, in addition to those that follow from method and access. Tests
   * compare them with the responses.
   */
  errors?: readonly ErrorCode[]
  /** A typical request body, if the example from the schema alone is not useful. */
  example?: Record<string, unknown>
  /** The body contains a document, such as a policy, and may have up to 1 MiB. */
  hasDocument?: true
}

/** Preserves the types of an endpoint's schemas for its handler. */
export function endpoint<Services, B extends z.ZodType, Q extends z.ZodType, P extends z.ZodType>(
  definition: Endpoint<Services, B, Q, P>,
): Endpoint<Services> {
  return definition as unknown as Endpoint<Services>
}
