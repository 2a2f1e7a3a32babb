import type { FastifyRequest } from 'fastify'
import { ApiError } from '../../errors.ts'
import type { Environment } from '../../environment.ts'
import type { Operation } from '../endpoint.ts'
import type { AddressLimit } from '../rate-limit.ts'

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

/** Authenticates and authorizes the requests of one list of endpoints. */
export interface Authenticator<in O extends Operation = Operation> {
  /** Maximum size of a request body in bytes; null: the server's default. */
  bodyBytesMax(definition: O): number | null
  /**
   * Authenticates and authorizes a request and counts it: `request.rate` is the resulting
   * rate-limit state.
   * @returns the additional context for handlers, and the owner of streams; a null owner means that
   *   streams are counted for the client's address
   * @throws ApiError if the caller may not make the request
   */
  admit(
    request: FastifyRequest,
    rawBody: string,
    definition: O,
  ): Promise<{ admission: object; holder: Principal | null }>
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
