import { request as httpRequest } from 'node:http'
import { request as httpsRequest } from 'node:https'
import { setTimeout as sleep } from 'node:timers/promises'
import { KekError } from './errors.ts'

const ANSWER_BYTES_MAX = 65_536
const TRIES = 3
const PAUSE_MS = 200
const TIMEOUT_MS = 10_000

export interface Call {
  /** Prefix of every message: the provider's name. */
  provider: string
  method: 'GET' | 'POST' | 'PUT'
  url: URL
  headers?: Record<string, string>
  body?: string
  /** PEM of the authority that issued the service's certificate, if it is not a public one. */
  ca?: string | undefined
  timeoutMs?: number | undefined
}
export interface Answer {
  status: number
  text: string
}

/**
 * Parses a service's URL: https, or http on this machine only.
 * @throws {KekError} SETTING
 */
export function addressOf(setting: string, text: string): URL {
  const url = URL.canParse(text) ? new URL(text) : null
  const isLocal = url && ['127.0.0.1', '[::1]', 'localhost'].includes(url.hostname)
  if (
    !url ||
    !(url.protocol === 'https:' || (url.protocol === 'http:' && isLocal)) ||
    url.username ||
    url.password
  ) {
    throw new KekError(
      'SETTING',
      `${setting}: must be an https:// URL (http:// only on this machine) without a user name or password`,
    )
  }
  return url
}

/**
 * Sends one request. The response is limited to 64 KiB, and one time limit covers everything until
 * its last byte.
 * @throws {KekError} AWAY
 */
function once({
  provider,
  method,
  url,
  headers = {},
  body,
  ca,
  timeoutMs = TIMEOUT_MS,
}: Call): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const ask = url.protocol === 'https:' ? httpsRequest : httpRequest
    const away = (why: string): void => {
      reject(new KekError('AWAY', `${provider}: ${url.host} ${why}`))
    }
    const request = ask(
      url,
      {
        method,
        agent: false,
        signal: AbortSignal.timeout(timeoutMs),
        ...(ca ? { ca } : {}),
        headers: {
          ...headers,
          ...(body === undefined ? {} : { 'content-length': String(Buffer.byteLength(body)) }),
        },
      },
      (response) => {
        const chunks: Buffer[] = []
        let length = 0
        response.on('data', (chunk: Buffer) => {
          length += chunk.length
          if (length > ANSWER_BYTES_MAX) {
            away(`returned more than ${ANSWER_BYTES_MAX} bytes`)
            response.destroy()
          } else chunks.push(chunk)
        })
        response.on('end', () => {
          resolve({ status: response.statusCode!, text: Buffer.concat(chunks).toString('utf8') })
        })
        response.on('error', () => {
          away('interrupted its response')
        })
        response.on('aborted', () => {
          away('interrupted its response')
        })
      },
    )
    request.on('error', (error: NodeJS.ErrnoException) => {
      const isLate = error.name === 'AbortError' || error.name === 'TimeoutError'
      away(
        isLate
          ? `did not respond within ${timeoutMs} ms`
          : `cannot be reached (${error.code ?? error.name})`,
      )
    })
    request.end(body)
  })
}

/**
 * Sends a request, and repeats it if there was no response or the service is busy. Repeated
 * wrapping and unwrapping does no harm.
 * @param make creates the request for each attempt, because its signature contains the time
 */
export async function call(make: () => Call): Promise<Answer> {
  for (let left = TRIES - 1; ; left--) {
    try {
      const answer = await once(make())
      if (left === 0 || (answer.status !== 429 && answer.status < 500) || answer.status === 503)
        return answer
    } catch (error) {
      if (left === 0 || !(error instanceof KekError) || error.code !== 'AWAY') throw error
    }
    await sleep(PAUSE_MS * 2 ** (TRIES - 1 - left))
  }
}

/** Returns a response's JSON object; null if it is not one. */
export function jsonOf({ text }: Answer): Record<string, unknown> | null {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null && !Array.isArray(value)
      ? (value as Record<string, unknown>)
      : null
  } catch {
    return null
  }
}
