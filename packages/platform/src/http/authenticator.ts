import type { FastifyRequest } from 'fastify'
import { ApiError } from '../errors.ts'
import type { Services } from '../engine/services.ts'
import type { Operation } from './endpoint.ts'
import type { AddressLimit } from './rate-limit.ts'

/** For whom an answer without an end is open. */
export interface Principal {
  /** Those of one name are counted together. */
  name: string
  /** Workspace or person that the places for streams are divided by, for example `workspace 12`. */
  share: string
  /**
   * Asked before each piece of it: whether it may go on. Remembers for a moment what it asks of the
   * database.
   */
  stays(): Promise<boolean>
}

/** How those who ask are let in at one list of endpoints. */
export interface Authenticator<O extends Operation = Operation> {
  /** Bytes that a body may have; null: as many as everywhere. */
  bodyBytesMax(definition: O): number | null
  /**
   * Who asks, and whether he may. It counts the request: `request.rate` is what it costs.
   * @returns what handlers are told beside what was asked, and for whom streams are open: null
   *   for the client's address
   * @throws ApiError where he may not
   */
  admit(
    services: Services,
    request: FastifyRequest,
    rawBody: string,
    definition: O,
  ): Promise<{ admission: object; holder: Principal | null }>
}

/** @throws ApiError `RATE_LIMITED` where the client's address has used up this allowance */
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
