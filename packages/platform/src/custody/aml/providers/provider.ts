import { readText, type Fetch } from '@custody/chains'
import type { Environment } from '../../../core/environment.ts'
import type { ProviderName, RiskLevel } from '../levels.ts'
import { retryAt, type Pace } from './pace.ts'
import { ProviderError } from './provider-error.ts'

export { ProviderError } from './provider-error.ts'

/** An address to screen. */
export interface Subject {
  address: string
  network: string
}

/** Adapter for one screening service. */
export interface Provider {
  /**
   * Returns the risk level of an address; null if the provider reports no risk that decides.
   * @param alert called with a level that the provider reports and that does not decide
   * @throws ProviderError
   */
  screen(
    token: string,
    subject: Subject,
    alert?: (level: RiskLevel) => void,
  ): Promise<RiskLevel | null>
  /**
   * Returns false if the provider itself rejects the token.
   * @throws ProviderError if the provider cannot be queried
   */
  verifyToken(token: string): Promise<boolean>
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

/** The account at a provider for which a request is sent. */
export interface Account {
  provider: ProviderName
  token: string
}

/**
 * Sends requests at the provider's pace and with a timeout, and retries them if a provider was unreachable or had an internal
 * error.
 */
export class ProviderHttp {
  readonly #fetch: Fetch
  readonly #environment: Environment
  readonly #pace: Pace
  readonly #timeoutMs: number

  constructor(fetch: Fetch, environment: Environment, pace: Pace, timeoutMs = TIMEOUT_MS) {
    this.#fetch = fetch
    this.#environment = environment
    this.#pace = pace
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
  async ask({ provider, token }: Account, make: () => Ask): Promise<Answer> {
    let last = 'no response'
    for (let attempt = 0; attempt < TRIES; attempt++) {
      if (attempt > 0) await this.#environment.sleep(PAUSE_MS * attempt)
      await this.#pace.wait(provider, token)
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
        if (response.status === 429) {
          const [now, until] = [this.now(), retryAt(response.headers, this.now())]
          await this.#pace.pause(provider, token, until)
          throw new ProviderError(
            'rate-limited',
            'the provider limits the request rate (429)',
            until - now,
          )
        }
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

/**
 * Addresses that mean the same in capital and small letters: hex on EVM networks, Bech32, and
 * CashAddr. Base58 addresses distinguish them.
 */
const CASE_FREE =
  /^(0x[0-9a-f]{40}|((bc|ltc|tltc|tb|bcrt|rltc|addr|addr_test|stake)1|((bitcoincash|bchreg|bchtest):)?[qp])[02-9ac-hj-np-z]{20,})$/i

/**
 * Returns whether a provider's response is about the address of the request: letter by letter, or
 * in any letter case if the form of the address does not distinguish it.
 */
export function isSameText(response: unknown, address: string): boolean {
  if (typeof response !== 'string') return false
  if (response === address) return true
  return CASE_FREE.test(address) && response.toLowerCase() === address.toLowerCase()
}

/** Returns the error for a response that is neither a result nor a known refusal. */
export const unusable = (what: string): ProviderError => new ProviderError('unusable', what)
/**
 * Returns whether the provider itself refused the token. A page in HTML comes from a proxy or a
 * firewall in front of it, and proves nothing about the token.
 */
export const isRefusal = ({ status, text }: Answer): boolean =>
  (status === 401 || status === 403) && !text.trimStart().startsWith('<')
export const refusedToken = (status: number): ProviderError =>
  new ProviderError('refused', `the provider rejected the token (${status})`)
