import { parseJson, requestHeaders, signRequest, JsonNumber } from '@custody/request-auth'
import type { ErrorCode } from '../../../core/errors.ts'
import { replayNotice, replayOf } from '../replay-notice.ts'

export interface User {
  apiKey: string
  privateKey: string
  name: string
}

/** Dependencies of the demo's API calls, which tests replace. */
export interface Means {
  fetch: typeof fetch
  clock: () => number
  sleep: (ms: number) => Promise<unknown>
  say: (text: string) => void
}

/**
 * Temporary errors after which nothing was changed. Other 503 errors may be returned after
 * something was written.
 */
const PASSES: ReadonlySet<string> = new Set<ErrorCode>([
  'NETWORK_UNAVAILABLE',
  'KEY_PENDING',
  'RATE_LIMITED',
])
/**
 * Time limit of all attempts in milliseconds. On a busy machine the local chains need time to
 * start.
 */
const PATIENCE_MS = 180_000
/** Delay in milliseconds if a response has no `Retry-After`. */
const AGAIN_MS = 5000

/** Converts numbers to their original text, so that they are shown without rounding. */
function plain(value: unknown): unknown {
  if (value instanceof JsonNumber) return value.text
  if (Array.isArray(value)) return value.map(plain)
  if (typeof value === 'object' && value !== null) {
    return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, plain(inner)]))
  }
  return value
}

/** Returns the delay of `Retry-After`, in milliseconds. */
function waitOf(response: Response): number {
  const seconds = Number(response.headers.get('retry-after') ?? Number.NaN)
  return Number.isFinite(seconds) && seconds > 0 ? seconds * 1000 : AGAIN_MS
}

/** An API request; without a user it is not signed. */
interface ApiCall {
  base: string
  user: User | null
  method: string
  path: string
  body?: unknown
}

/**
 * Makes one API request, signed if there is a user. Repeats it for some minutes while a chain is
 * unreachable or the rate limit is exceeded.
 * @throws Error with status and message for any other error, and if the `sequence_id` belongs to
 *   another request
 */
export async function callApi<T>(
  { fetch, clock, sleep, say }: Means,
  { base, user, method, path, body }: ApiCall,
): Promise<T> {
  const text = body === undefined ? '' : JSON.stringify(body)
  const until = clock() + PATIENCE_MS
  for (;;) {
    const headers = user
      ? requestHeaders(
          await signRequest({
            apiKey: user.apiKey,
            privateKey: user.privateKey,
            method,
            uri: path,
            body: text,
          }),
          user.apiKey,
        )
      : {}
    const response = await fetch(`${base}${path}`, {
      method,
      headers,
      ...(text === '' ? {} : { body: text }),
    })
    const answer = plain(parseJson(await response.text())) as T & {
      message?: string
      code?: string
    }
    const replay = replayOf(response.headers)
    if (replay.mismatch) throw new Error(`${method} ${path}: ${String(replayNotice(replay))}`)
    if (response.ok) return answer
    const wait = waitOf(response)
    if (
      !PASSES.has(answer.code ?? '') ||
      ![429, 503].includes(response.status) ||
      clock() + wait > until
    ) {
      throw new Error(`${method} ${path}: ${response.status} ${answer.message ?? ''}`)
    }
    say(`${method} ${path}: ${answer.message ?? ''}; retried in ${wait / 1000} s`)
    await sleep(wait)
  }
}
