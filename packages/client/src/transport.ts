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
import { backoff, rateLimitWait, type RetryOptions } from './retry.ts'
import { plainJson, read, refusal, target } from './wire.ts'

/** Of a call with a `sequence_id`. */
export interface OnceOptions {
  /**
   * What happens where the `sequence_id` was used before with another payload, so that nothing is
   * created: `throw` an {@link IdempotencyMismatch} (default), or `return` what the earlier request
   * was answered.
   */
  idempotencyMismatch?: 'throw' | 'return'
}

export interface TransportOptions extends OnceOptions {
  /** E.g. `https://custody.example.com`. */
  baseUrl: string
  /** UUID of the API user. */
  apiKey: string
  /**
   * RSA, at least 4096 bits: PEM, Node's KeyObject, or a CryptoKey, which need not be extractable.
   * It signs here and is never sent.
   */
  privateKey: PrivateKey
  fetch?: typeof globalThis.fetch
  /** Per attempt. 30 s by default. */
  timeout_ms?: number
  /** Default: 5 attempts, 1 s doubled up to 60 s. `attemptsMax: 1` turns retries off. */
  retry?: Partial<RetryOptions>
  /** On 429 wait until the window ends and go on (default), or throw. */
  waitOnRateLimit?: boolean
  /** Clock, waiting and chance, for tests. */
  now?: () => number
  sleep?: (ms: number) => Promise<void>
  random?: () => number
}

export interface RequestOptions extends OnceOptions {
  /** Repeating it cannot do it twice. Default: GET only. */
  repeatable?: boolean
  /** Sent without a signature. */
  public?: boolean
  /**
   * Told of each signed request before it leaves: `id` is what follows for the transaction it
   * makes. Keep it to verify a failure later.
   */
  onSigned?: (request: { nonce: string; id: string }) => void
  /** Gives up, also while it waits to try again. */
  signal?: AbortSignal
  /** What is answered. `json` by default. */
  as?: 'json' | 'text'
}

export interface StreamOptions {
  /** Ends the stream. */
  signal?: AbortSignal
  /** What was seen already: what came after it comes first. */
  lastEventId?: string
  /** Sent without a signature. */
  public?: boolean
}

/** One of a stream. Amounts in its data are decimal strings. */
export interface StreamEvent<T> {
  id: string
  event: string
  data: T
}

const REPEAT_STATUS = new Set([500, 502, 503, 504])
/** A window lasts a minute: whoever is refused this often in a row shares the key with too many. */
const RATE_LIMIT_WAITS_MAX = 5
/** The service says something every 15 seconds at least. */
const STREAM_SILENCE_MS = 45_000

/** What the parts of the client send their requests by. */
export interface RequestSender {
  request<T = unknown>(
    method: string,
    path: string,
    body?: unknown,
    options?: RequestOptions,
  ): Promise<T>
  stream<T = unknown>(path: string, options?: StreamOptions): AsyncGenerator<StreamEvent<T>>
}

/** Signs, sends, and sends again. Each attempt carries a token of its own. */
export class Transport {
  readonly baseUrl: string
  readonly apiKey: string
  readonly now: () => number
  readonly sleep: (ms: number) => Promise<void>
  readonly #sign: RequestSigner
  readonly #fetch: typeof globalThis.fetch
  readonly #timeout_ms: number
  readonly #retry: RetryOptions
  readonly #waitOnRateLimit: boolean
  readonly #mismatch: 'throw' | 'return'
  readonly #random: () => number
  /** Told the id of what each signed write makes. */
  readonly #signed: (id: string) => void

  /**
   * @throws AuthError for a private key that signs no requests; TypeError for a base URL that is
   *   none
   */
  constructor(options: TransportOptions, signed: (id: string) => void) {
    const url = new URL(options.baseUrl)
    if (url.search !== '' || url.hash !== '' || url.username !== '') {
      throw new TypeError('baseUrl must be an origin, optionally with a path prefix')
    }
    this.baseUrl = `${url.origin}${url.pathname.replace(/\/+$/, '')}`
    this.apiKey = options.apiKey
    this.#sign = requestSigner(options.privateKey)
    // A browser's own fetch refuses to be called as anyone's method.
    const fetch = options.fetch ?? globalThis.fetch
    this.#fetch = (input, init) => fetch(input, init)
    this.#timeout_ms = options.timeout_ms ?? 30_000
    this.#retry = { attemptsMax: 5, backoff_ms: 1000, backoffMax_ms: 60_000, ...options.retry }
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
    let waits = 0
    for (let attempt = 1; ;) {
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
        if (response.status === 429 && this.#waitOnRateLimit && waits < RATE_LIMIT_WAITS_MAX) {
          // Refused before anything was done: repeating is safe whatever the method.
          waits++
          wait = rateLimitWait(response.headers, this.now(), this.#random)
        } else if (REPEAT_STATUS.has(response.status) && repeatable) wait = this.#backoff(attempt++)
      } catch (error) {
        if (!(error instanceof CustodyError) || error.code !== 'NETWORK') throw error
        failure = error
        if (repeatable) wait = this.#backoff(attempt++)
      }
      if (wait === null) throw failure
      await this.#pause(wait, options.signal)
    }
  }

  /** @throws CustodyError where the service refuses; connections that break are made again */
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
    // A signal may live for days: nothing of a pause stays with it.
    const over = new AbortController()
    const stop = new Promise<never>((_resolve, reject) => {
      signal.addEventListener('abort', () => reject(signal.reason as Error), {
        once: true,
        signal: over.signal,
      })
    })
    await Promise.race([this.sleep(ms), stop]).finally(() => over.abort())
  }

  /** A whole answer: a connection that breaks in the middle of one counts as none. */
  async #answer(
    method: string,
    uri: string,
    body: string,
    options: RequestOptions,
  ): Promise<Response> {
    const timeout = AbortSignal.timeout(this.#timeout_ms)
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
    // The path below the base is what the service sees and what is signed: a proxy's prefix ends at
    // the proxy.
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

  /** What no answer is told as; a caller's own abort is his. */
  #unanswered(
    method: string,
    uri: string,
    error: unknown,
    signal: AbortSignal | undefined,
  ): unknown {
    const isTimeout = error instanceof Error && error.name === 'TimeoutError'
    if (signal?.aborted && !isTimeout) return signal.reason
    const reason = isTimeout ? `no response within ${this.#timeout_ms} ms` : 'no answer'
    return new CustodyError(`${method} ${uri.split('?', 1)[0]}: ${reason}`, {
      status: 0,
      code: 'NETWORK',
      cause: error,
    })
  }
}
