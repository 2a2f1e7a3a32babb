import { parseJson, requestHeaders, signRequest, JsonNumber } from '@custody/request-auth'
import type { ErrorCode } from '../errors.ts'
import { replayNotice, replayOf } from './replay-notice.ts'

export interface User {
  apiKey: string
  privateKey: string
  name: string
}

/** What the demo's calls are made with; a test has its own. */
export interface Means {
  fetch: typeof fetch
  clock: () => number
  sleep: (ms: number) => Promise<unknown>
  say: (text: string) => void
}

/**
 * The errors at which nothing was done and that go by themselves: another 503 may come after
 * something was written.
 */
const PASSES: ReadonlySet<string> = new Set<ErrorCode>(['NETWORK_UNAVAILABLE', 'RATE_LIMITED'])
/** On a busy machine the local chains need their time to start. */
const PATIENCE_MS = 180_000
/** Where an answer does not say when to come again. */
const AGAIN_MS = 5000

/** Numbers stay the text they were: nothing is rounded on the way to the screen. */
function plain(value: unknown): unknown {
  if (value instanceof JsonNumber) return value.text
  if (Array.isArray(value)) return value.map(plain)
  if (typeof value === 'object' && value !== null) {
    return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, plain(inner)]))
  }
  return value
}

/** Seconds as `Retry-After` names them. */
function waitOf(response: Response): number {
  const seconds = Number(response.headers.get('retry-after') ?? Number.NaN)
  return Number.isFinite(seconds) && seconds > 0 ? seconds * 1000 : AGAIN_MS
}

/**
 * One request to the API, signed where a user asks; asked again for some minutes while a chain is
 * not reached or too much is asked.
 * @throws Error with status and message of any other refusal, and where the `sequence_id` is that
 *   of another request
 */
export async function callApi<T>(
  { fetch, clock, sleep, say }: Means,
  base: string,
  user: User | null,
  method: string,
  path: string,
  body?: unknown,
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
