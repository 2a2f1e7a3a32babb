import type { FastifyRequest } from 'fastify'
import { ApiError } from '../../errors.ts'
import type { Environment } from '../../environment.ts'
import type { Operation } from '../endpoint.ts'
import type { BodyOwner } from '../bodies.ts'
import type { AddressLimit, AddressLimits } from '../rate-limit.ts'

interface Services {
  environment: Environment
}

/** Owner of an open stream. */
export interface Principal {
  /** Streams with the same name are counted together. */
  name: string
  /** Workspace or person among which stream capacity is divided, for example `workspace 12`. */
  share: string
  /**
   * Called before each part of the stream is sent. Returns whether the stream may continue. Caches
   * the database's answer for a short time.
   */
  stays(): Promise<boolean>
}

/**
 * Result of an admission: the additional context for handlers, and the owner of streams. A null
 * owner means that streams are counted for the client's address.
 */
interface Admitted {
  admission: object
  holder: Principal | null
  /** Workspace whose heavy work excludes that of this request; null without authentication. */
  workspaceId: string | null
}

/** A request that may send its body. */
export interface Identification {
  /** Owner of the body, for which its bytes are counted. */
  owner: BodyOwner
  /**
   * Completes authentication and authorization with the body, and counts the request: `request.rate`
   * is the resulting rate-limit state.
   * @throws ApiError if the caller may not make the request
   */
  admit(rawBody: string): Promise<Admitted>
}

/** Authenticates and authorizes the requests of one list of endpoints. */
export interface Authenticator<in O extends Operation = Operation> {
  /** Maximum size of a request body in bytes. */
  bodyBytesMax(definition: O): number
  /**
   * Identifies the sender of a request by its headers, before the body is read. An address that has
   * used up its limit of failures is refused before any query.
   * @throws ApiError if the sender may not make the request
   */
  identify(request: FastifyRequest, definition: O): Promise<Identification>
}

/**
 * Counts a request against a limit of the client's address.
 * @throws ApiError `RATE_LIMITED` if the client's address has used up this limit
 */
export function countAddress(
  limit: AddressLimit,
  services: Services,
  request: FastifyRequest,
): void {
  const state = limit.count(request.ip, services.environment.now())
  request.rate = state
  if (state.exceeded)
    throw new ApiError(
      'RATE_LIMITED',
      `too many requests without a valid key in this minute; wait until ${new Date(state.reset).toISOString()}`,
    )
}

/**
 * Refuses a request of an address that has used up its limit of failed authentications, before it
 * costs a query, unless its caller was recently authenticated from there.
 * @param name API key, or hash of a session's token
 * @throws ApiError `RATE_LIMITED`
 */
export function assertNotExhausted(
  { strangers, recent }: AddressLimits,
  services: Services,
  request: FastifyRequest,
  name: string,
): void {
  const { remaining } = strangers.look(request.ip, services.environment.now())
  if (remaining === 0 && !recent.has(request.ip, name)) countAddress(strangers, services, request)
}
