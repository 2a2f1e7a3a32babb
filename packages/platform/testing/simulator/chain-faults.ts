import type { FaultContext } from './fault-context.ts'

type Fetch = typeof globalThis.fetch

/** Maximum delay of a response in milliseconds. */
const LATE_MS_MAX = 8000
/**
 * Number of earlier responses to a request, from which an endpoint that lags behind returns one.
 */
const OLD_MAX = 6

/** RPC methods with side effects; a cached response would be wrong. */
const BROADCASTS =
  /send_?raw|sendtransaction|broadcast|\/submit|tx\/submit|"submit"|sendTransaction/i

interface Answered {
  status: number
  headers: Headers
  body: string
}

/**
 * Faults between the platform and the chains: an endpoint that is unreachable, slow, behind, or
 * wrong.
 */
export class ChainFaults {
  readonly #context: FaultContext
  readonly #fetch: Fetch
  /** Earlier responses, by request. */
  readonly #before = new Map<string, string[]>()

  constructor(context: FaultContext, fetch: Fetch) {
    this.#context = context
    this.#fetch = fetch
  }

  /** Returns the delay of the next response, in simulated milliseconds. */
  delay(): number {
    const { random, rates } = this.#context
    if (!random.rarely(rates.late)) return 0
    this.#context.noted('an answer of a chain was late')
    return 100 + random.below(LATE_MS_MAX)
  }

  async ask(input: Parameters<Fetch>[0], init: RequestInit | undefined): Promise<Response> {
    const { random, rates } = this.#context
    if (random.rarely(rates.refused)) {
      this.#context.noted('a chain was not reached')
      throw new TypeError('fetch failed')
    }
    if (random.rarely(rates.busy)) {
      this.#context.noted('a chain was too busy to answer')
      return new Response('busy', { status: random.below(2) === 0 ? 503 : 429 })
    }
    const { signal: _, ...rest } = init ?? {}
    const text = String(init?.body ?? '')
    if (
      /"method":"send_?raw_?transaction|"method":"(eth_sendRaw|send)Transaction"/i.test(text) &&
      random.rarely(rates.unwilling)
    ) {
      this.#context.noted('a chain refused a broadcast')
      // Some endpoints accept the transaction anyway.
      if (random.below(2) === 0) await this.#fetch(input, rest)
      const id = /"id":(\d+)/.exec(text)?.[1] ?? '1'
      return Response.json({
        jsonrpc: '2.0',
        id: Number(id),
        error: { code: -32_000, message: 'txpool is full' },
      })
    }
    const response = await this.#fetch(input, rest)
    const { status, headers } = response
    const answered = this.#wrong(String(input), text, {
      status,
      headers,
      body: await response.text(),
    })
    if (random.rarely(rates.lost)) {
      this.#context.noted('an answer of a chain was lost')
      throw new TypeError('fetch failed')
    }
    return new Response(answered.body, { status, headers })
  }

  /** Returns the response of an endpoint that is behind, is ahead, or omits data. */
  #wrong(url: string, question: string, answer: Answered): Answered {
    if (answer.status !== 200 || BROADCASTS.test(`${url} ${question}`)) return answer
    const { random, rates } = this.#context
    const text = `${url} ${question.replace(/"id":\d+,/, '')}`
    const before = this.#before.get(text) ?? []
    this.#before.set(text, [...before, answer.body].slice(-OLD_MAX))
    if (before.length > 0 && random.rarely(rates.old)) {
      const body = random.of(before)
      if (plain(body) === plain(answer.body)) return answer
      this.#context.noted('a chain answered as it stood before')
      const id = /"id":(\d+),/.exec(question)?.[1]
      return { ...answer, body: id === undefined ? body : body.replace(/"id":\d+/, `"id":${id}`) }
    }
    const wrong = ahead(
      question,
      answer.body,
      () => random.rarely(rates.ahead) && 1 + random.below(3),
    )
    if (wrong !== null) {
      this.#context.noted('a chain told of a head that it has not')
      return { ...answer, body: wrong }
    }
    return this.#partial(question, answer)
  }

  /**
   * Simulates an endpoint that has a block or transaction but not yet its logs: it reports an
   * error, or returns no logs.
   */
  #partial(question: string, answer: Answered): Answered {
    const { random, rates } = this.#context
    if (
      !/"eth_get(Logs|TransactionReceipt|BlockReceipts)"/.test(question) ||
      !answer.body.includes('"topics"')
    )
      return answer
    if (!random.rarely(rates.partial)) return answer
    if (question.includes('"eth_getLogs"') && random.below(2) === 1) {
      this.#context.noted('a chain knew a block and not yet its logs')
      return {
        ...answer,
        body: answer.body.replace(
          /"result":.*$/s,
          '"error":{"code":-32000,"message":"unknown block"}}',
        ),
      }
    }
    this.#context.noted('a chain left out logs without a word')
    const response = JSON.parse(answer.body) as {
      result: { logs: unknown[] } | { logs?: unknown[]; topics?: unknown[] }[]
    }
    const result = Array.isArray(response.result)
      ? response.result
          .filter(({ topics }) => topics === undefined)
          .map((receipt) => ({ ...receipt, logs: [] }))
      : { ...response.result, logs: [] }
    return { ...answer, body: JSON.stringify({ ...response, result }) }
  }
}

const plain = (body: string): string => body.replace(/"id":\d+/, '')

/**
 * Returns a response about the newest block with another height, or null if the response is not
 * about the newest block or does not change.
 */
function ahead(question: string, body: string, by: () => number | false): string | null {
  if (/eth_getBlockByNumber.*"latest"/.test(question)) {
    const more = by()
    return more === false
      ? null
      : body.replace(
          /"number":"0x([0-9a-f]+)"/,
          (_, height: string) => `"number":"0x${(parseInt(height, 16) + more).toString(16)}"`,
        )
  }
  if (/"getblockchaininfo"/.test(question)) {
    const more = by()
    return more === false
      ? null
      : body.replace(/"blocks":(\d+)/, (_, height: string) => `"blocks":${Number(height) + more}`)
  }
  return null
}
