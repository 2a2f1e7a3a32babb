import {
  requestHeaders,
  requestSigner,
  stringifyJson,
  transactionId,
  type PrivateKey,
  type RequestSigner,
} from '@custody/request-auth/web'
import { CustodyError } from './errors.ts'
import { framesOf } from './frames.ts'
import { mismatchOf, noteReplay } from './replay.ts'
import { backoff, KEY_ATTEMPTS_MAX, keyWait, rateLimitWait, type RetryOptions } from './retry.ts'
import { plainJson, read, refusal, target } from './wire.ts'

/** Options of a call with a `sequence_id`. */
export interface OnceOptions {
  /**
   * Behavior if the `sequence_id` was used before with another payload, so that nothing is created:
   * `throw` an {@link IdempotencyMismatch} (default), or `return` the response of the earlier
   * request.
   */
  idempotencyMismatch?: 'throw' | 'return'
}

/** Connection, credentials and retry policy of a client. */
export interface TransportOptions extends OnceOptions {
  /** URL of the service, e.g. `https://custody.example.com`. */
  baseUrl: string
  /** UUID of the API user. */
  apiKey: string
  /**
   * RSA key of at least 4096 bits: PEM, Node's KeyObject, or a CryptoKey, which need not be
   * extractable. It is used only locally and never sent.
   */
  privateKey: PrivateKey
  /** Implementation of `fetch`, by default the global one. */
  fetch?: typeof globalThis.fetch
  /** Timeout of each attempt in milliseconds, 30,000 by default. */
  timeoutMs?: number
  /**
   * Retry policy. Default: 5 attempts, with a wait of 1 s that doubles up to 60 s. `attemptsMax: 1`
   * disables retries.
   */
  retry?: Partial<RetryOptions>
  /**
   * If true (default), a 429 response makes the client wait until the window ends and repeat the
   * request; otherwise it throws.
   */
  waitOnRateLimit?: boolean
  /** Clock, delay and random source, replaceable for tests. */
  now?: () => number
  sleep?: (ms: number) => Promise<void>
  random?: () => number
}

/** Options of one request. */
export interface RequestOptions extends OnceOptions {
  /** The request is idempotent and may be repeated. By default only GET is. */
  repeatable?: boolean
  /** The request is sent without a signature. */
  public?: boolean
  /**
   * Called with each signed request before it is sent. `id` is the id of the transaction that the
   * request creates; store it to verify a failure later.
   */
  onSigned?: (request: { nonce: string; id: string }) => void
  /** Aborts the call, including its waits between attempts. */
  signal?: AbortSignal
  /** Format of the result, `json` by default. */
  as?: 'json' | 'text'
}

/** Options of a stream of server-sent events. */
export interface StreamOptions {
  /** Ends the stream. */
  signal?: AbortSignal
  /** Id of the last event that was received; the stream begins with the next one. */
  lastEventId?: string
  /** The request is sent without a signature. */
  public?: boolean
}

/** One event of a stream. Amounts in its data are decimal strings. */
export interface StreamEvent<T> {
  id: string
  event: string
  data: T
}

const REPEAT_STATUS = new Set([500, 502, 503, 504])
/**
 * Maximum number of consecutive rate-limit waits of one call. A window lasts a minute, so more of
 * them mean that too many clients share the key.
 */
const RATE_LIMIT_WAITS_MAX = 5
/** Maximum number of attempts while another request of the workspace is in progress. */
const CONCURRENT_ATTEMPTS_MAX = 30
/**
 * Time in milliseconds without data after which a stream reconnects. The service sends data at
 * least every 15 seconds.
 */
const STREAM_SILENCE_MS = 45_000

/**
 * Attempts of one call, by their result: no response or an error, the rate limit, a missing key,
 * another request of the workspace in progress.
 */
interface Attempts {
  failed: number
  limited: number
  pending: number
  concurrent: number
}

/**
 * Returns the deepest known reason of a failed fetch, such as `ECONNREFUSED`. Node reports it as the
 * cause of `fetch failed`; an attempt at several addresses has one error for each.
 */
function causeOf(error: unknown): string {
  const { cause, code, errors, message } = error as {
    cause?: unknown
    code?: string
    errors?: unknown[]
    message?: string
  }
  if (cause instanceof Error) return causeOf(cause)
  if (code !== undefined) return String(code)
  return errors?.[0] instanceof Error ? causeOf(errors[0]) : (message ?? '')
}

/** Interface by which the parts of the client send requests. */
export interface RequestSender {
  request<T = unknown>(
    method: string,
    path: string,
    body?: unknown,
    options?: RequestOptions,
  ): Promise<T>
  stream<T = unknown>(path: string, options?: StreamOptions): AsyncGenerator<StreamEvent<T>>
}

/** Signs, sends and repeats requests. Each attempt has its own token. */
export class Transport {
  readonly baseUrl: string
  readonly apiKey: string
  readonly now: () => number
  readonly sleep: (ms: number) => Promise<void>
  readonly #sign: RequestSigner
  readonly #fetch: typeof globalThis.fetch
  readonly #timeoutMs: number
  readonly #retry: RetryOptions
  readonly #waitOnRateLimit: boolean
  readonly #mismatch: 'throw' | 'return'
  readonly #random: () => number
  /** Called with the id that each signed write creates. */
  readonly #signed: (id: string) => void

  /**
   * @throws AuthError if the private key cannot sign requests; TypeError if the base URL is invalid
   */
  constructor(options: TransportOptions, signed: (id: string) => void) {
    const url = new URL(options.baseUrl)
    if (url.search !== '' || url.hash !== '' || url.username !== '') {
      throw new TypeError('baseUrl must be an origin, optionally with a path prefix')
    }
    if (/\/da[cv]\/v1(\/|$)/.test(url.pathname))
      throw new TypeError(
        `baseUrl must not contain ${url.pathname}: the client adds the paths of the API, and a proxy's path prefix comes before them`,
      )
    this.baseUrl = `${url.origin}${url.pathname.replace(/\/+$/, '')}`
    this.apiKey = options.apiKey
    this.#sign = requestSigner(options.privateKey)
    // A browser's fetch throws if it is called as a method of another object.
    const fetch = options.fetch ?? globalThis.fetch
    this.#fetch = (input, init) => fetch(input, init)
    this.#timeoutMs = options.timeoutMs ?? 30_000
    this.#retry = { attemptsMax: 5, backoffMs: 1000, backoffMaxMs: 60_000, ...options.retry }
    this.#waitOnRateLimit = options.waitOnRateLimit ?? true
    this.#mismatch = options.idempotencyMismatch ?? 'throw'
    this.now = options.now ?? Date.now
    this.sleep =
      options.sleep ??
      ((ms) =>
        new Promise((resolve) => {
          setTimeout(resolve, ms)
        }))
    this.#random = options.random ?? Math.random
    this.#signed = signed
  }

  /**
   * Sends a request, and repeats it as the retry policy and `options.repeatable` allow.
   * @throws CustodyError; IdempotencyMismatch; the reason of `options.signal` if it aborts
   */
  async request<T>(
    method: string,
    path: string,
    body: unknown,
    options: RequestOptions,
  ): Promise<T> {
    const verb = method.toUpperCase()
    const text = body === undefined ? '' : stringifyJson(body)
    const repeatable = options.repeatable ?? verb === 'GET'
    const uri = target(path)
    const made: Attempts = { failed: 0, limited: 0, pending: 0, concurrent: 0 }
    for (;;) {
      let failure: CustodyError
      let wait: number | null = null
      try {
        const response = await this.#answer(verb, uri, text, options)
        if (response.ok) {
          const mismatch =
            (options.idempotencyMismatch ?? this.#mismatch) === 'throw'
              ? await mismatchOf(response)
              : null
          if (mismatch) throw mismatch
          return options.as === 'text'
            ? ((await response.text()) as T)
            : noteReplay(await read<T>(response), response.headers)
        }
        failure = await refusal(response)
        wait = this.#waitAfter(response, failure.code, repeatable, made)
      } catch (error) {
        if (!(error instanceof CustodyError) || error.code !== 'NETWORK') throw error
        failure = error
        if (repeatable) wait = this.#backoff(++made.failed)
      }
      if (wait === null) throw failure
      await this.#pause(wait, options.signal)
    }
  }

  /**
   * Returns the delay in milliseconds before the next attempt after an error response; null: the
   * request is not repeated.
   */
  #waitAfter(
    { status, headers }: Response,
    code: string,
    repeatable: boolean,
    made: Attempts,
  ): number | null {
    // The service rejected these requests before it changed anything, so repeating is safe for every
    // method.
    if (
      status === 429 &&
      code !== 'CONCURRENT_REQUEST' &&
      this.#waitOnRateLimit &&
      made.limited < RATE_LIMIT_WAITS_MAX
    ) {
      made.limited++
      return rateLimitWait(headers, this.now(), this.#random)
    }
    if (code === 'CONCURRENT_REQUEST')
      return this.#retry.attemptsMax > 1 && ++made.concurrent < CONCURRENT_ATTEMPTS_MAX
        ? keyWait(headers, this.#random)
        : null
    if (code === 'KEY_PENDING') {
      const attemptsMax = this.#retry.attemptsMax > 1 ? KEY_ATTEMPTS_MAX : 1
      return ++made.pending < attemptsMax ? keyWait(headers, this.#random) : null
    }
    return REPEAT_STATUS.has(status) && repeatable ? this.#backoff(++made.failed) : null
  }

  /** @throws CustodyError if the service rejects the request; lost connections are reopened */
  async *stream<T>(
    path: string,
    { signal, lastEventId, public: isPublic }: StreamOptions,
  ): AsyncGenerator<StreamEvent<T>> {
    const uri = target(path)
    let seen = lastEventId ?? ''
    for (let attempt = 1; signal?.aborted !== true;) {
      const silence = new AbortController()
      const ends = AbortSignal.any([silence.signal, ...(signal ? [signal] : [])])
      let timer = setTimeout(() => silence.abort(), STREAM_SILENCE_MS)
      try {
        const more = {
          accept: 'text/event-stream',
          ...(seen === '' ? {} : { 'last-event-id': seen }),
        }
        const response = await this.#send(
          'GET',
          uri,
          '',
          { signal: ends, ...(isPublic === undefined ? {} : { public: isPublic }) },
          more,
        )
        if (!response.ok || response.body === null) throw await refusal(response)
        for await (const frame of framesOf(response.body)) {
          clearTimeout(timer)
          timer = setTimeout(() => silence.abort(), STREAM_SILENCE_MS)
          if (frame === null) continue
          attempt = 1
          seen = frame.id === '' ? seen : frame.id
          yield { ...frame, data: plainJson(frame.data) as T }
        }
      } catch (error) {
        if (signal?.aborted) return
        if (
          error instanceof CustodyError &&
          error.status !== 0 &&
          error.status !== 429 &&
          !REPEAT_STATUS.has(error.status)
        )
          throw error
      } finally {
        clearTimeout(timer)
        silence.abort()
      }
      await this.#pause(backoff(this.#retry, attempt++, this.#random), signal).catch(
        () => undefined,
      )
    }
  }

  #backoff(attempt: number): number | null {
    return attempt < this.#retry.attemptsMax ? backoff(this.#retry, attempt, this.#random) : null
  }

  async #pause(ms: number, signal: AbortSignal | undefined): Promise<void> {
    signal?.throwIfAborted()
    if (!signal) return this.sleep(ms)
    // The listener is removed after the pause, because a signal may exist for days.
    const ended = new AbortController()
    const stop = new Promise<never>((_resolve, reject) => {
      signal.addEventListener('abort', () => reject(signal.reason as Error), {
        once: true,
        signal: ended.signal,
      })
    })
    await Promise.race([this.sleep(ms), stop]).finally(() => ended.abort())
  }

  /** Reads the complete response. A connection that breaks before its end counts as no response. */
  async #answer(
    method: string,
    uri: string,
    body: string,
    options: RequestOptions,
  ): Promise<Response> {
    const timeout = AbortSignal.timeout(this.#timeoutMs)
    const signal = options.signal ? AbortSignal.any([timeout, options.signal]) : timeout
    const response = await this.#send(method, uri, body, { ...options, signal })
    try {
      const bytes = await response.arrayBuffer()
      return new Response(bytes.byteLength > 0 ? bytes : null, {
        status: response.status,
        headers: response.headers,
      })
    } catch (error) {
      throw this.#unanswered(method, uri, error, options.signal)
    }
  }

  async #send(
    method: string,
    uri: string,
    body: string,
    options: RequestOptions,
    more: Record<string, string> = {},
  ): Promise<Response> {
    // The signature covers the path below the base URL, which is the path that the service
    // receives: a proxy removes its own prefix.
    const headers = {
      ...(options.public ? {} : await this.#headers(method, uri, body, options)),
      ...more,
    }
    try {
      return await this.#fetch(`${this.baseUrl}${uri}`, {
        method,
        headers,
        redirect: 'error',
        ...(options.signal ? { signal: options.signal } : {}),
        ...(body === '' ? {} : { body }),
      })
    } catch (error) {
      throw this.#unanswered(method, uri, error, options.signal)
    }
  }

  async #headers(
    method: string,
    uri: string,
    body: string,
    options: RequestOptions,
  ): Promise<Record<string, string>> {
    const nonce = globalThis.crypto.randomUUID()
    const signed = await this.#sign({
      apiKey: this.apiKey,
      method,
      uri,
      body,
      nonce,
      now: Math.floor(this.now() / 1000),
    })
    const id = transactionId(this.apiKey, nonce)
    if (method !== 'GET') this.#signed(id)
    options.onSigned?.({ nonce, id })
    return requestHeaders(signed, this.apiKey)
  }

  /**
   * Returns the error for a missing response; if the caller aborted, the reason of their signal.
   */
  #unanswered(
    method: string,
    uri: string,
    error: unknown,
    signal: AbortSignal | undefined,
  ): unknown {
    const isTimeout = error instanceof Error && error.name === 'TimeoutError'
    if (signal?.aborted && !isTimeout) return signal.reason
    const cause = isTimeout ? '' : causeOf(error)
    const reason = isTimeout ? ` within ${this.#timeoutMs} ms` : cause && ` (${cause})`
    const from = new URL(this.baseUrl).host
    return new CustodyError(
      `${method} ${uri.split('?', 1)[0]}: no response from ${from}${reason}`,
      {
        status: 0,
        code: 'NETWORK',
        cause: error,
      },
    )
  }
}
