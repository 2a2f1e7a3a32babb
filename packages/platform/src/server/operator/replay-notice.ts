/** Information in a response's headers about the request's `sequence_id`. */
export interface Replay {
  replayed: boolean
  /** Another payload was sent with this `sequence_id` before, so this request had no effect. */
  mismatch: boolean
}

/** The platform's warn-code (http/replay.ts). A proxy may add warnings with other codes. */
const MISMATCH = /(?:^|,)\s*299 custody /

export function replayOf(headers: Headers): Replay {
  const replayed = headers.get('idempotent-replayed') === 'true'
  return { replayed, mismatch: replayed && MISMATCH.test(headers.get('warning') ?? '') }
}

/** Returns the notice for the person at the terminal; null for the response to a new request. */
export function replayNotice({ replayed, mismatch }: Replay): string | null {
  if (mismatch) {
    return 'warning: sequence_id: was used before with another payload. The response is that of the earlier request, and nothing was created for this one. To execute this request as well, send it with a new sequence_id'
  }
  return replayed
    ? 'note: sequence_id: the same request was sent before. The response is that of the earlier request, and nothing new was created'
    : null
}
