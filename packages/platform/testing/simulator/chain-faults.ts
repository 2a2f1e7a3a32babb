import type { FaultContext } from './fault-context.ts'

type Fetch = typeof globalThis.fetch

/** Maximum delay of a response in milliseconds. */
const LATE_MS_MAX = 8000
interface Answered {
  status: number
  headers: Headers
  body: string
}

/**
 * Faults between the platform and the chains: an endpoint that is unreachable, slow, or incomplete.
 * The state that its nodes show is the weather ({@link WeatherReport}).
 */
export class ChainFaults {
  readonly #context: FaultContext
  readonly #fetch: Fetch

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
    const answered = this.#partial(text, {
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
