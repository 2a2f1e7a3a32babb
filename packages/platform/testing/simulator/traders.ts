import type { Caller } from '../../src/core/http/endpoint.ts'
import { Decided, Refused, type SentRequest, type Callers } from './callers.ts'
import type { SimulatedEnvironment } from './environment.ts'

/** An order that a caller wants to place at an exchange. */
export interface WantedOrder extends SentRequest {
  caller: Caller
  sequence: string
  body: Record<string, unknown>
  /** All responses, in order. */
  answers: string[]
  id: string | null
}

/** Prepaid balance of each workspace, in millionths of a USD: more than all fees of a run. */
export const PREPAID = 10n ** 15n
const PREPAID_REFERENCE = '00000000-0000-4000-8000-000000000001'
/** Maximum number of orders that are requested again at the end. */
const AGAIN_MAX = 3

/** Callers who trade; they take part in one of six simulations. */
export class Traders {
  readonly #environment: SimulatedEnvironment
  readonly #callers: Callers
  readonly isOn: boolean
  readonly wanted: WantedOrder[] = []
  readonly #accounts = new Map<Caller, string>()

  constructor(environment: SimulatedEnvironment, callers: Callers) {
    this.#environment = environment
    this.#callers = callers
    // A workspace with a policy does not trade, so that the time can be advanced.
    this.isOn = environment.random.below(6) === 5 && environment.policy === null
    environment.hasFees = this.isOn
  }

  /** Links an exchange account for each caller, with a separate key. */
  async begin(): Promise<void> {
    if (!this.isOn) return
    const { callers, database } = this.#environment
    for (const { workspaceId } of callers.slice(0, 1)) {
      await this.#callers.outside('pay in', () =>
        database.query('select prepaid_adjust($1, $2, $3, 0)', [
          workspaceId,
          PREPAID_REFERENCE,
          String(PREPAID),
        ]),
      )
    }
    for (const caller of callers) {
      const body = {
        exchange: 'kraken',
        label: 'main',
        api_key: `key-${caller.subAccountIndex}`,
        api_secret: Buffer.from('secret').toString('base64'),
      }
      const answer = await this.#callers
        .until(caller, '/dac/v1/exchange-accounts', body)
        .catch((error: unknown) => {
          // The first request timed out and was accepted anyway.
          if (error instanceof Refused && error.code === 'EXCHANGE_ACCOUNT_EXISTS')
            return error.message
          throw error
        })
      this.#accounts.set(caller, /"id":"([^"]+)"/.exec(answer)?.[1] as string)
    }
  }

  /** Places an order, repeats a request or cancels an order, as drawn. */
  act(): void {
    const { random } = this.#environment
    const submitted = this.wanted.filter(({ id }) => id !== null)
    const what = submitted.length === 0 ? 0 : random.below(8)
    if (what < 5) {
      const wanted = this.#want()
      void this.#place(wanted)
      // Sends the request twice concurrently.
      if (random.rarely(300)) void this.#place(wanted)
      return
    }
    const old = random.of(submitted)
    if (what === 5) return void this.#place(old)
    this.#environment.noted('an order was cancelled')
    this.#callers
      .until(old.caller, `/dac/v1/orders/${old.id}/cancel`, {})
      .catch((error: unknown) => {
        if (!(error instanceof Refused) || error.code !== 'ORDER_FINAL')
          this.#environment.problems.push(`cancelling an order: ${String((error as Error).stack)}`)
      })
  }

  #want(): WantedOrder {
    const { random, callers } = this.#environment
    const caller = random.of(callers)
    const kind = random.of(['GTC', 'GTC', 'GTC', 'IOC', 'FOK', 'market', 'maker'])
    const price = String(59_000 + 100 * random.below(21))
    const sequence = `order-${this.wanted.length + 1}`
    const body = {
      exchange_account: this.#accounts.get(caller),
      market: 'BTC/USD',
      side: random.of(['buy', 'sell']),
      amount: ((1 + random.below(400)) / 1000).toFixed(3),
      sequence_id: sequence,
      ...(kind === 'market' ? { type: 'market' } : { type: 'limit', price }),
      ...(kind === 'IOC' || kind === 'FOK' ? { time_in_force: kind } : {}),
      ...(kind === 'maker' ? { post_only: true } : {}),
    }
    const wanted: WantedOrder = {
      caller,
      sequence,
      body,
      answers: [],
      id: null,
      refused: null,
      underWay: 0,
    }
    this.wanted.push(wanted)
    this.#environment.noted('an order was wanted')
    return wanted
  }

  /** Repeats requests at the end, which must return the original responses. */
  again(): void {
    for (const wanted of this.wanted.slice(0, AGAIN_MAX)) void this.#place(wanted)
  }

  async #place(wanted: WantedOrder): Promise<void> {
    // A finally refused request is not repeated, because it could be accepted by then.
    if (wanted.refused !== null) return
    try {
      const answer = await this.#callers.until(wanted.caller, '/dac/v1/orders', wanted.body, wanted)
      wanted.answers.push(answer)
      wanted.id = (JSON.parse(answer) as { id: string }).id
    } catch (error) {
      if (!(error instanceof Decided))
        wanted.refused =
          error instanceof Refused
            ? `${error.code} ${error.message}`
            : String((error as Error).stack)
    }
  }
}
