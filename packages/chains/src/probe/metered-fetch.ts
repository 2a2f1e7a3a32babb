import { readText, type Fetch } from '../rpc.ts'

/** How the last question ended, as far as the client's error does not say it. */
export interface RequestOutcome {
  status: number | null
  isPage: boolean
  cause: string | null
}

/** HTTP statuses by which a provider says that a plan's allowance is used up. */
const RATE_LIMITED = 429
/** Pauses before a question that was refused by a rate limit is asked again, in milliseconds. */
const PAUSES_MS = [500, 1500]

/**
 * The endpoint's HTTP connection: counts and times each question, and repeats those that a rate
 * limit refused.
 */
export class MeteredFetch {
  count = 0
  /** Answers with HTTP status 429. */
  rateLimited = 0
  slowest = { what: '', milliseconds: 0 }
  last: RequestOutcome = { status: null, isPage: false, cause: null }
  readonly #base: string
  readonly #fetch: Fetch
  readonly #now: () => number
  readonly #sleep: (milliseconds: number) => Promise<void>

  /** @param base URL of the endpoint @param now milliseconds of a clock that never goes back */
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

  /** The method of JSON-RPC, or the path below the endpoint's URL, which may contain a key. */
  #whatOf(url: string, { body }: RequestInit): string {
    const method = typeof body === 'string' ? /"method":"(\w+)"/.exec(body)?.[1] : undefined
    const path = url.startsWith(this.#base) ? url.slice(this.#base.length).split('?')[0] : undefined
    return method ?? (path ?? '').replaceAll(/[0-9a-f]{64}/g, '…').replace(/^\/(?=wallet)/, '')
  }
}

/** The code of what the connection failed by, such as `ECONNREFUSED`. */
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
