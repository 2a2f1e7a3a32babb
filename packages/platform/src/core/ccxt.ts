import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { readText, type Fetch } from '@custody/chains/basics'

/** Maximum size of a response in bytes. Lists of all markets are the longest responses. */
const ANSWER_BYTES_MAX = 32 * 1024 * 1024
const TIMEOUT_MS = 10_000

/**
 * The part of a ccxt exchange that all modules use here; each module declares the further parts
 * that it uses. Numbers are strings (`number = String`).
 */
export interface CcxtClient {
  id: string
  hostname?: string
  urls: Record<string, unknown>
  has: Record<string, unknown>
  options: Record<string, unknown>
  timeout: number
  number: unknown
  fetchImplementation: unknown
  markets: Record<string, unknown> | undefined
  loadMarkets(reload?: boolean): Promise<unknown>
}

/**
 * A response, for callers that need more than ccxt's error. `text`: null if the body was too long
 * or incomplete.
 */
export interface RawAnswer {
  method: string
  url: string
  status: number | null
  text: string | null
}

export interface ClientOptions {
  /** ccxt's name of the exchange. */
  id: string
  /** Base URL in place of the exchange's own host; null: its own host. */
  url: string | null
  fetch: Fetch
  /** Time limit in milliseconds of a complete response, including its body. */
  timeoutMs?: number
  rateLimited?: boolean
  /** Further options of the client: credentials, and ccxt's `options`. */
  more?: Record<string, unknown>
  /** Called before a request is sent (`status` null), and with the response. */
  onAnswer?(answer: RawAnswer): void
}

/** Returns whether ccxt supports an exchange of this name, without loading ccxt. */
export const isExchange = (id: string): boolean =>
  /^[a-z0-9]{2,40}$/.test(id) &&
  existsSync(fileURLToPath(new URL(`./src/${id}.js`, import.meta.resolve('ccxt'))))

/**
 * Returns the URL at which the local chains emulate an exchange. ccxt's `urls.api` start there as
 * they do at the exchange's own host (docs/local-exchange.md).
 */
export const localExchangeUrl = (devnetUrl: string, id: string): string =>
  `${devnetUrl}/exchanges/${id}`

/** A request was not sent, because its host does not belong to the exchange. */
class ForeignHost extends Error {
  constructor(host: string) {
    super(`a request to ${host} was not sent: it is not a host of this exchange`)
    this.name = 'ForeignHost'
  }
}

/**
 * Returns a client of one exchange. Only its module is loaded, because all hundred take 100 MB of
 * memory. Requests are only sent through `fetch`, only to hosts of the exchange (a base URL
 * replaces all of them), follow no redirects, and have a time limit that includes the body.
 */
export async function openClient<T extends CcxtClient>(o: ClientOptions): Promise<T> {
  const module = (await import(new URL(`./src/${o.id}.js`, import.meta.resolve('ccxt')).href)) as {
    default: new (options: Record<string, unknown>) => T
  }
  const client = new module.default({
    timeout: o.timeoutMs ?? TIMEOUT_MS,
    enableRateLimit: o.rateLimited ?? false,
    ...o.more,
  })
  client.number = String
  const hosts = new Set<string>()
  client.urls['api'] = rebased(client.urls['api'], client.hostname, o.url, hosts)
  client.fetchImplementation = guarded(o, hosts, client.timeout)
  return client
}

/**
 * Replaces the host of every URL in ccxt's tree by the base URL. Overriding only some keys would
 * leave others, such as withdrawals, at the real exchange. Records the resulting hosts.
 */
function rebased(
  tree: unknown,
  hostname: string | undefined,
  base: string | null,
  hosts: Set<string>,
): unknown {
  if (typeof tree === 'string') {
    const whole = tree.replaceAll('{hostname}', hostname ?? '')
    const url = new URL(whole)
    if (base === null) {
      hosts.add(url.host)
      return whole
    }
    hosts.add(new URL(base).host)
    return `${base}${url.pathname === '/' ? '' : url.pathname}`
  }
  if (typeof tree !== 'object' || tree === null) return tree
  return Object.fromEntries(
    Object.entries(tree).map(([key, value]) => [key, rebased(value, hostname, base, hosts)]),
  )
}

/**
 * Returns a `fetch` that reads the complete response within a size and a time limit before ccxt
 * receives it. ccxt itself reads responses without a size limit, and its timeout ends with the
 * headers.
 */
function guarded(o: ClientOptions, hosts: ReadonlySet<string>, timeoutMs: number): Fetch {
  return async (argument, init) => {
    const url = String(argument)
    const { host } = new URL(url)
    if (!hosts.has(host)) throw new ForeignHost(host)
    const method = init?.method ?? 'GET'
    o.onAnswer?.({ method, url, status: null, text: null })
    const ends = AbortSignal.timeout(timeoutMs)
    const response = await o.fetch(url, {
      ...init,
      redirect: 'error',
      signal: init?.signal ? AbortSignal.any([init.signal, ends]) : ends,
    })
    const text = await readText(response, ANSWER_BYTES_MAX)
    o.onAnswer?.({ method, url, status: response.status, text })
    if (text === null) throw new TypeError('the response is too large')
    return new Response(text === '' ? null : text, {
      status: response.status,
      statusText: response.statusText,
      headers: response.headers,
    })
  }
}

/**
 * Returns an error's message without URLs, which contain keys and signatures, and without request
 * bodies. At most `most` characters.
 */
export function redacted(error: unknown, most = 200): string {
  const text = error instanceof Error ? `${error.name}: ${error.message}` : String(error)
  return text
    .replaceAll(/https?:\/\/\S+/g, '[url]')
    .replaceAll(/[A-Za-z0-9+/=_-]{40,}/g, '[…]')
    .slice(0, most)
}
