import { readText, type Fetch } from '@custody/chains'
import type { Environment } from '../../../core/environment.ts'
import type { RiskLevel } from '../levels.ts'

/** An address to screen. */
export interface Subject {
  address: string
  network: string
}

/** Adapter for one screening service. */
export interface Provider {
  /**
   * Returns the risk level of an address; null if the provider reports no risk.
   * @throws ProviderError
   */
  screen(token: string, subject: Subject): Promise<RiskLevel | null>
  /**
   * Returns false if the provider itself rejects the token.
   * @throws ProviderError if the provider cannot be queried
   */
  verifyToken(token: string): Promise<boolean>
}

/**
 * Thrown when a provider returned nothing usable. It implies nothing about an address and contains
 * no token.
 */
export class ProviderError extends Error {
  /** Why the response cannot be used. `refused`: the token is not (or no longer) accepted. */
  readonly kind: 'unreachable' | 'rate-limited' | 'refused' | 'unusable'
  constructor(kind: ProviderError['kind'], message: string) {
    super(message)
    this.name = 'ProviderError'
    this.kind = kind
  }
}

export interface Answer {
  status: number
  text: string
}
export interface Ask {
  method: 'GET' | 'POST'
  url: string
  headers: Record<string, string>
  body?: string
}

const TIMEOUT_MS = 10_000
const TRIES = 3
const PAUSE_MS = 250
const ANSWER_BYTES_MAX = 4 * 1024 * 1024

/**
 * Sends requests with a timeout, and retries them if a provider was unreachable or had an internal
 * error.
 */
export class ProviderHttp {
  readonly #fetch: Fetch
  readonly #environment: Environment
  readonly #timeoutMs: number

  constructor(fetch: Fetch, environment: Environment, timeoutMs = TIMEOUT_MS) {
    this.#fetch = fetch
    this.#environment = environment
    this.#timeoutMs = timeoutMs
  }

  now(): number {
    return this.#environment.now()
  }

  /**
   * Sends a request and returns the response.
   * @param make creates the request for each attempt, because some providers require the time in
   *   the signature
   * @throws ProviderError `unreachable`, `rate-limited` or `unusable`
   */
  async ask(make: () => Ask): Promise<Answer> {
    let last = 'no response'
    for (let attempt = 0; attempt < TRIES; attempt++) {
      if (attempt > 0) await this.#environment.sleep(PAUSE_MS * attempt)
      const { url, ...options } = make()
      try {
        const response = await this.#fetch(url, {
          ...options,
          redirect: 'error',
          signal: AbortSignal.timeout(this.#timeoutMs),
        })
        const text = await readText(response, ANSWER_BYTES_MAX)
        if (text === null) throw new ProviderError('unusable', 'the response is too large')
        // A rate-limited request is not retried, because an immediate retry would only extend the
        // limit.
        if (response.status === 429)
          throw new ProviderError('rate-limited', 'the provider limits the request rate (429)')
        if (response.status < 500) return { status: response.status, text }
        last = `status ${response.status}`
      } catch (error) {
        if (error instanceof ProviderError) throw error
        const cause =
          error instanceof Error
            ? error.cause instanceof Error
              ? error.cause.message
              : error.name
            : 'unknown'
        last =
          error instanceof Error && error.name === 'TimeoutError'
            ? `no response within ${this.#timeoutMs / 1000} s`
            : cause
      }
    }
    throw new ProviderError('unreachable', `the provider cannot be reached: ${last}`)
  }
}

/**
 * Parses the JSON object or array of a response.
 * @throws ProviderError `unusable`
 */
export function jsonOf(text: string): unknown {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    throw new ProviderError(
      'unusable',
      text.trim() === '' ? 'the response is empty' : 'the response is not JSON',
    )
  }
  if (typeof value !== 'object' || value === null)
    throw new ProviderError('unusable', 'the response is not an object')
  return value
}

/** Returns the error for a response that is neither a result nor a known refusal. */
export const unusable = (what: string): ProviderError => new ProviderError('unusable', what)
export const refusedToken = (status: number): ProviderError =>
  new ProviderError('refused', `the provider rejected the token (${status})`)
