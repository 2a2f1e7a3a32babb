import { IdempotencyMismatch } from './errors.ts'
import { read } from './wire.ts'

/**
 * Answers of earlier requests. By identity, so that no field is added to what the service answered.
 */
const replays = new WeakSet<object>()

/**
 * The platform's warn-code for a `sequence_id` that was used with another payload. A proxy may add
 * warnings with other codes.
 */
const MISMATCH = /(?:^|,)\s*299 custody /

/**
 * Whether an answer is that of an earlier request with the same `sequence_id`, and this request
 * created nothing. Also true after a lost answer, where the earlier request was an attempt of the
 * same call.
 * @param answer the object that a method of the client returned, not a copy of it
 */
export const isReplayed = (answer: unknown): boolean =>
  typeof answer === 'object' && answer !== null && replays.has(answer)

/** Remembers that an answer is of an earlier request, where the headers say so. */
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
 * The error for an answer to an earlier request with another payload; null where it is not one.
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
