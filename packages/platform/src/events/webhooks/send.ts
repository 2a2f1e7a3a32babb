import {
  Agent as HttpAgent,
  request as httpRequest,
  type ClientRequest,
  type IncomingMessage,
} from 'node:http'
import { Agent as HttpsAgent, request as httpsRequest } from 'node:https'
import { reasonOf } from '@custody/chains/reason'
import type { Environment } from '../../core/environment.ts'
import { EgressDenied, type EgressPolicy } from './egress-policy.ts'

/** Time limit in milliseconds for connection, headers and body together. */
const DEADLINE_MS = 15_000
const ANSWER_READ_BYTES = 16_384
const ANSWER_SHOWN_CHARS = 1000
const ERROR_SHOWN_CHARS = 300
const IDLE_SOCKETS_PER_HOST = 8
const IDLE_MS = 20_000

/** Result of an attempt. `error`: why it failed, as a sentence. */
export interface Answer {
  status: number | null
  error: string | null
  /** Beginning of the response body. */ text: string | null
  /** The receiver's `Retry-After`, in milliseconds. */ retryAfterMs: number | null
  durationMs: number
}

/**
 * Sends deliveries to allowed addresses. It follows no redirects, and limits the time and the size
 * of the response.
 */
export class Sender {
  readonly #environment: Environment
  readonly #reach: EgressPolicy
  readonly #agents: { http: HttpAgent; https: HttpsAgent }

  constructor(environment: Environment, reach: EgressPolicy) {
    this.#environment = environment
    this.#reach = reach
    const options = { keepAlive: true, maxFreeSockets: IDLE_SOCKETS_PER_HOST, timeout: IDLE_MS }
    this.#agents = { http: new HttpAgent(options), https: new HttpsAgent(options) }
  }

  close(): void {
    this.#agents.http.destroy()
    this.#agents.https.destroy()
  }

  /**
   * Sends one delivery.
   * @returns null if the signal aborted it; the outcome is unknown
   */
  async post(
    address: string,
    headers: Record<string, string>,
    body: string,
    signal: AbortSignal,
  ): Promise<Answer | null> {
    const from = this.#environment.now()
    const ended = new AbortController()
    const late = this.#environment
      .sleep(DEADLINE_MS, AbortSignal.any([ended.signal, signal]))
      .then(() => {
        if (!ended.signal.aborted && !signal.aborted)
          ended.abort(new Error(`no complete response within ${DEADLINE_MS / 1000} s`))
      })
    const end = AbortSignal.any([ended.signal, signal])
    const answer = await this.#attempt(address, headers, body, end, true).catch(
      (error: unknown) => ({
        status: null,
        text: null,
        retryAfterMs: null,
        error: reasonOf(ended.signal.aborted ? ended.signal.reason : error).slice(
          0,
          ERROR_SHOWN_CHARS,
        ),
      }),
    )
    ended.abort()
    await late
    if (signal.aborted && answer.status === null) return null
    return { ...answer, durationMs: Math.max(0, Math.round(this.#environment.now() - from)) }
  }

  async #attempt(
    address: string,
    headers: Record<string, string>,
    body: string,
    signal: AbortSignal,
    mayRepeat: boolean,
  ): Promise<Omit<Answer, 'durationMs'>> {
    const url = new URL(address)
    this.#reach.check(url)
    const https = url.protocol === 'https:'
    const send = https ? httpsRequest : httpRequest
    const outgoing = send(url, {
      method: 'POST',
      headers,
      signal,
      lookup: this.#reach.lookup,
      agent: https ? this.#agents.https : this.#agents.http,
    })
    this.#watch(outgoing)
    try {
      const response = await new Promise<IncomingMessage>((resolve, reject) => {
        outgoing.on('response', resolve).on('error', reject).end(body)
      })
      const text = await readSome(response)
      const status = response.statusCode as number
      const isGood = status >= 200 && status < 300
      const redirects = status >= 300 && status < 400
      return {
        status,
        text: text.slice(0, ANSWER_SHOWN_CHARS).replaceAll('\0', ''),
        retryAfterMs: retryAfter(response.headers['retry-after'], this.#environment.now()),
        error: isGood ? null : `status ${status}${redirects ? '; redirects are not followed' : ''}`,
      }
    } catch (error) {
      // The other side may have closed a kept-alive connection at the moment of its use; the
      // outcome is unknown.
      const isStale =
        outgoing.reusedSocket &&
        ['ECONNRESET', 'EPIPE'].includes(String((error as { code?: unknown }).code))
      if (isStale && mayRepeat && !signal.aborted)
        return await this.#attempt(address, headers, body, signal, false)
      throw error
    } finally {
      // The connection is closed if its response is incomplete, because the rest of the response is
      // not awaited.
      if (
        !outgoing.destroyed &&
        !(outgoing as ClientRequest & { res?: IncomingMessage }).res?.complete
      )
        outgoing.destroy()
    }
  }

  /** Checks the address of the established connection once more, before its response is used. */
  #watch(outgoing: ClientRequest): void {
    outgoing.on('socket', (socket) => {
      const look = () => {
        const { remoteAddress } = socket
        if (remoteAddress !== undefined && !this.#reach.allows(remoteAddress))
          outgoing.destroy(new EgressDenied(remoteAddress))
      }
      if (socket.connecting) socket.once('connect', look)
      else look()
    })
  }
}

/** Reads the first bytes of a body and ignores the rest. */
async function readSome(response: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = []
  let bytes = 0
  for await (const chunk of response as AsyncIterable<Buffer>) {
    chunks.push(chunk)
    bytes += chunk.length
    if (bytes >= ANSWER_READ_BYTES) break
  }
  return Buffer.concat(chunks).subarray(0, ANSWER_READ_BYTES).toString('utf8')
}

/** Parses `Retry-After`, which is in seconds or a date. */
function retryAfter(header: string | undefined, now: number): number | null {
  if (header === undefined) return null
  if (/^\d{1,9}$/.test(header.trim())) return Number(header) * 1000
  const at = Date.parse(header)
  return Number.isNaN(at) ? null : Math.max(0, at - now)
}
