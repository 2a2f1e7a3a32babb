import { IdempotencyMismatch } from './errors.ts'
import { read } from './wire.ts'

/**
 * Responses of earlier requests. They are identified by object identity, so no field is added to a
 * response.
 */
const replays = new WeakSet<object>()

/**
 * The platform's warn-code for a `sequence_id` that was used with another payload. A proxy may add
 * warnings with other codes.
 */
const MISMATCH = /(?:^|,)\s*299 custody /

/**
 * Returns whether a response is that of an earlier request with the same `sequence_id`, so that
 * this request created nothing. It is also true if the response to an earlier attempt of the same
 * call was lost.
 * @param answer the object that a method of the client returned, not a copy of it
 */
export const isReplayed = (answer: unknown): boolean =>
  typeof answer === 'object' && answer !== null && replays.has(answer)

/** Marks a response as that of an earlier request if the headers say so, and returns it. */
export function noteReplay<T>(answer: T, headers: Headers): T {
  if (
    headers.get('idempotent-replayed') === 'true' &&
    typeof answer === 'object' &&
    answer !== null
  )
    replays.add(answer)
  return answer
}

/**
 * Returns the error for a response to an earlier request with another payload; null if it is not
 * one.
 * @throws CustodyError `PROTOCOL`
 */
export async function mismatchOf(response: Response): Promise<IdempotencyMismatch | null> {
  const warning = response.headers.get('warning')
  if (
    response.headers.get('idempotent-replayed') !== 'true' ||
    warning === null ||
    !MISMATCH.test(warning)
  )
    return null
  const answer = noteReplay(await read<Record<string, unknown>>(response), response.headers)
  return new IdempotencyMismatch(answer, {
    status: response.status,
    requestId: response.headers.get('x-request-id') ?? undefined,
  })
}
