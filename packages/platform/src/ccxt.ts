import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { readText, type Fetch } from '@custody/chains/basics'

/** The lists of all markets are the longest answers. */
const ANSWER_BYTES_MAX = 32 * 1024 * 1024
const TIMEOUT_MS = 10_000

/**
 * What is used of a ccxt exchange here; each room declares what it calls beyond that. Numbers come
 * as text (`number = String`).
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
 * What one answer was, for whoever must know more than ccxt's error says. `text`: null where it was
 * too long or none came whole.
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
  /** Base URL in place of the exchange's own host; null: its own. */
  url: string | null
  fetch: Fetch
  /** Of a whole answer, its body included. */
  timeoutMs?: number
  rateLimited?: boolean
  /** Further options of the client: credentials, and what ccxt calls `options`. */
  more?: Record<string, unknown>
  /** Called before a request leaves (`status` null), and with what came back. */
  onAnswer?(answer: RawAnswer): void
}

/** Whether ccxt knows an exchange of this name. Nothing of ccxt is loaded for it. */
export const isExchange = (id: string): boolean =>
  /^[a-z0-9]{2,40}$/.test(id) &&
  existsSync(fileURLToPath(new URL(`./src/${id}.js`, import.meta.resolve('ccxt'))))

/**
 * Where the local chains' port stands in for an exchange: ccxt's `urls.api` begin there as they do
 * at the exchange's own host (docs/local-exchange.md).
 */
export const localExchangeUrl = (devnetUrl: string, id: string): string =>
  `${devnetUrl}/exchanges/${id}`

/** A request would have left for a host that is not the exchange's. It was not sent. */
class ForeignHost extends Error {
  constructor(host: string) {
    super(`a request to ${host} was not sent: it is not a host of this exchange`)
    this.name = 'ForeignHost'
  }
}

/**
 * A client of one exchange. Its module alone is loaded: all hundred take 100 MB of memory. Requests
 * leave through `fetch` only, to hosts of the exchange only (a base URL replaces every one of
 * them), follow no redirect, and end, body included, in time.
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
 * Every URL of ccxt's tree with the base in place of its host: an override of some keys would leave
 * the others, withdrawals among them, at the real exchange. Notes which hosts there are.
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
 * ccxt reads answers whole and its time-out ends at their headers: what it gets has been read up to
 * a limit, and in time.
 */
function guarded(o: ClientOptions, hosts: ReadonlySet<string>, timeoutMs: number): Fetch {
  return async (given, init) => {
    const url = String(given)
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
 * URLs of requests hold keys and signatures, and bodies what the caller sent: neither is shown. At
 * most `most` characters.
 */
export function redacted(error: unknown, most = 200): string {
  const text = error instanceof Error ? `${error.name}: ${error.message}` : String(error)
  return text
    .replaceAll(/https?:\/\/\S+/g, '[url]')
    .replaceAll(/[A-Za-z0-9+/=_-]{40,}/g, '[…]')
    .slice(0, most)
}
