import { readText, type Fetch } from '../rpc.ts'

/** Outcome of the last request, as far as the client's error does not contain it. */
export interface RequestOutcome {
  status: number | null
  isPage: boolean
  cause: string | null
}

/** HTTP statuses by which a provider reports that a plan's quota is used up. */
const RATE_LIMITED = 429
/** Pauses in milliseconds before a rate-limited request is repeated. */
const PAUSES_MS = [500, 1500]

/**
 * HTTP connection to the endpoint. Counts and times each request, and repeats rate-limited ones.
 */
export class MeteredFetch {
  count = 0
  /** Number of responses with HTTP status 429. */
  rateLimited = 0
  slowest = { what: '', milliseconds: 0 }
  last: RequestOutcome = { status: null, isPage: false, cause: null }
  readonly #base: string
  readonly #fetch: Fetch
  readonly #now: () => number
  readonly #sleep: (milliseconds: number) => Promise<void>

  /**
   * @param base URL of the endpoint
   * @param now milliseconds of a monotonic clock
   */
  constructor(
    base: string,
    fetch: Fetch,
    now: () => number,
    sleep: (milliseconds: number) => Promise<void>,
  ) {
    this.#base = base.replace(/\/+$/, '')
    this.#fetch = fetch
    this.#now = now
    this.#sleep = sleep
  }

  readonly fetch: Fetch = async (url, init) => {
    for (const pause of PAUSES_MS) {
      const answer = await this.#ask(url, init)
      if (answer.status !== RATE_LIMITED) return answer
      await this.#sleep(pause)
    }
    return this.#ask(url, init)
  }

  async #ask(url: string, init: RequestInit): Promise<Response> {
    this.count++
    this.last = { status: null, isPage: false, cause: null }
    const started = this.#now()
    try {
      const response = await this.#fetch(url, init)
      const text = await readText(response)
      if (text === null) throw new Error('the response is too large')
      const milliseconds = Math.round(this.#now() - started)
      if (milliseconds > this.slowest.milliseconds)
        this.slowest = { what: this.#whatOf(url, init), milliseconds }
      if (response.status === RATE_LIMITED) this.rateLimited++
      this.last = {
        status: response.status,
        isPage: /^\s*<(?:!doctype|html|\?xml)/i.test(text),
        cause: null,
      }
      return new Response(text, { status: response.status })
    } catch (error) {
      this.last = { status: null, isPage: false, cause: causeOf(error) }
      throw error
    }
  }

  /**
   * Returns the JSON-RPC method, or the path below the endpoint's URL; the URL itself may contain a
   * key.
   */
  #whatOf(url: string, { body }: RequestInit): string {
    const method = typeof body === 'string' ? /"method":"(\w+)"/.exec(body)?.[1] : undefined
    const path = url.startsWith(this.#base) ? url.slice(this.#base.length).split('?')[0] : undefined
    return method ?? (path ?? '').replaceAll(/[0-9a-f]{64}/g, '…').replace(/^\/(?=wallet)/, '')
  }
}

/** Returns the code of a connection error, such as `ECONNREFUSED`. */
function causeOf(error: unknown): string | null {
  const { cause, name } = error as {
    cause?: { code?: unknown; message?: unknown; errors?: { code?: unknown }[] }
    name?: unknown
  }
  const code = cause?.code ?? cause?.errors?.[0]?.code
  if (typeof code === 'string') return code
  return cause?.message === 'unexpected redirect'
    ? 'REDIRECT'
    : name === 'TimeoutError'
      ? 'TIMEOUT'
      : null
}
