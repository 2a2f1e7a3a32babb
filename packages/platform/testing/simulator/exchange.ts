import { openClient } from '../../src/core/ccxt.ts'
import { FakeKraken } from '../venues/fake-kraken.ts'
import { Actor } from './schedule.ts'
import type { FaultContext } from './fault-context.ts'

export const EXCHANGE_URL = 'http://exchange.simulated'

/** Time in milliseconds that a client waits for a response. */
const TIMEOUT_MS = 10_000
/** Maximum delay in milliseconds of a request whose sender has given up. */
const ASTRAY_MS_MAX = 40_000
/**
 * Maximum time in milliseconds for which an accepted order is missing in lists and its fills are
 * not reported.
 */
const HIDDEN_MS_MAX = 60_000
/** Maximum duration in seconds of a failure of the whole exchange. */
const SPELL_S_MAX = 90
const SKEW_MS = 60_000

/** Maximum rate of each fault, per thousand requests; each simulation draws a subset. */
const MOST = {
  refused: 200,
  lost: 400,
  late: 150,
  astray: 200,
  garbled: 120,
  broken: 150,
  limited: 150,
  nonce: 100,
  unavailable: 200,
  hidden: 400,
  twice: 200,
  fills: 500,
  short: 60,
}
type Fault = keyof typeof MOST

/** Temporary failures of the whole exchange. */
const SPELLS = ['maintenance', 'lockout', 'key', 'clock', 'away'] as const
type Spell = (typeof SPELLS)[number]

const SAID: Partial<Record<Spell, string>> = {
  maintenance: 'EService:Unavailable',
  lockout: 'EGeneral:Temporary lockout',
  key: 'EAPI:Invalid key',
}

/** An account at the exchange, with its own key. */
class Account extends FakeKraken {
  lastNonce = 0n
  /** Time in simulated milliseconds until which accepted orders are missing in lists. */
  hiddenUntilMs = 0
}

/**
 * An exchange on Kraken's protocol, with the faults of a real one. It accepts an order, or refuses
 * it, at one moment; only the response can be lost afterwards. A request is refused if its nonce
 * does not increase, or if it arrives after its deadline.
 */
export class Exchange {
  readonly #context: FaultContext
  readonly #actor = new Actor('exchange')
  readonly accounts = new Map<string, Account>()
  #odds: Partial<Record<Fault, number>> = {}
  #spell: { kind: Spell; untilMs: number } | null = null
  isStormy = false

  constructor(context: FaultContext) {
    this.#context = context
  }

  /** Returns the account of a key, with coins in it. */
  account(key: string): Account {
    const existing = this.accounts.get(key)
    if (existing) return existing
    const made = new Account(() => this.#context.schedule.nowMs)
    this.accounts.set(key, made)
    return made
  }

  /**
   * Loads the client of this exchange, which consists of many files, so that the platform's
   * processes find it in memory.
   */
  async ready(): Promise<void> {
    await openClient({ id: 'kraken', url: EXCHANGE_URL, fetch })
  }

  /** Draws the faults of this simulation. */
  draw(): void {
    const { random } = this.#context
    for (const name of Object.keys(MOST) as Fault[])
      if (random.below(2) === 1) this.#odds[name] = random.below(MOST[name])
    this.isStormy = true
  }

  heal(): void {
    this.isStormy = false
    this.#odds = {}
    this.#spell = null
    for (const account of this.accounts.values()) account.hiddenUntilMs = 0
  }

  #meets(fault: Fault, said: string): boolean {
    if (!this.#context.random.rarely(this.#odds[fault] ?? 0)) return false
    this.#context.noted(said)
    return true
  }

  #is(kind: Spell): boolean {
    return this.#spell?.kind === kind && this.#spell.untilMs > this.#context.schedule.nowMs
  }

  /** Handles a `fetch` of a process. */
  async handle(actor: Actor, url: string, init: RequestInit | undefined): Promise<Response> {
    const { schedule } = this.#context
    const path = url.slice(EXCHANGE_URL.length)
    const answer = await schedule.pauseAt(
      actor,
      `exchange ${path.split('?', 1)[0]} ${orderRef(init)}`,
      () => this.#answer(url, path, init),
    )
    if (answer.afterMs > 0) await schedule.sleep(actor, answer.afterMs)
    if (answer.body === null) throw new TypeError('fetch failed')
    return new Response(answer.body, {
      status: answer.status,
      headers: { 'content-type': 'application/json' },
    })
  }

  async #answer(
    url: string,
    path: string,
    init: RequestInit | undefined,
  ): Promise<{ body: string | null; status: number; afterMs: number }> {
    const { random, schedule } = this.#context
    const none = { body: null, status: 0, afterMs: 0 }
    const said = (error: string, status = 200) => ({
      body: JSON.stringify({ error: [error] }),
      status,
      afterMs: 0,
    })
    if (this.#is('away') || this.#meets('refused', 'the exchange was not reached')) return none
    if (!path.includes('/private/'))
      return {
        body: await (await this.account('').fetch(url, init)).text(),
        status: 200,
        afterMs: 0,
      }
    if (this.#meets('astray', 'a request to the exchange arrived after its sender had given up')) {
      void schedule
        .sleep(this.#actor, random.below(ASTRAY_MS_MAX))
        .then(() => schedule.pauseAt(this.#actor, `arrives ${path}`, () => this.#do(url, init)))
      return { ...none, afterMs: TIMEOUT_MS }
    }
    if (this.#meets('broken', 'the exchange answered 5xx')) {
      // A proxy returns this error whether or not the request reached the exchange.
      if (random.below(2) === 1) await this.#do(url, init)
      return {
        body: '<html>bad gateway</html>',
        status: random.of([502, 503, 504, 520]),
        afterMs: 0,
      }
    }
    if (this.#meets('limited', 'the exchange counted too many requests'))
      return said('EAPI:Rate limit exceeded')
    if (this.#meets('nonce', 'the exchange refused a nonce')) return said('EAPI:Invalid nonce')
    if (this.#meets('unavailable', 'the exchange was unavailable, and may have taken it')) {
      if (random.below(2) === 1) await this.#do(url, init)
      return said(random.of(['EService:Unavailable', 'EService:Busy', 'EGeneral:Internal error']))
    }
    const body = await this.#do(url, init)
    if (this.#meets('lost', 'an answer of the exchange was lost')) return none
    if (this.#meets('garbled', 'an answer of the exchange was no answer'))
      return { body: body.slice(0, body.length / 2), status: 200, afterMs: 0 }
    return {
      body,
      status: 200,
      afterMs: this.#meets('late', 'an answer of the exchange was late')
        ? 100 + random.below(TIMEOUT_MS)
        : 0,
    }
  }

  /** Processes a request that has reached the exchange. */
  async #do(url: string, init: RequestInit | undefined): Promise<string> {
    const {
      random,
      schedule: { nowMs },
    } = this.#context
    const refused = (error: string) => JSON.stringify({ error: [error] })
    const spell =
      this.#spell !== null && this.#is(this.#spell.kind) ? SAID[this.#spell.kind] : undefined
    if (spell !== undefined) return refused(spell)
    const account = this.account(String(new Headers(init?.headers).get('API-Key')))
    const fields = Object.fromEntries(new URLSearchParams(String(init?.body ?? '')))
    const nonce = BigInt(fields['nonce'] ?? '0')
    if (nonce <= account.lastNonce) {
      this.#context.noted('a nonce came too late')
      return refused('EAPI:Invalid nonce')
    }
    account.lastNonce = nonce
    const clockMs = nowMs + (this.#is('clock') ? SKEW_MS : 0)
    if (fields['deadline'] !== undefined && Date.parse(fields['deadline']) < clockMs) {
      this.#context.noted('an order came after its deadline')
      return refused('EService:Deadline elapsed')
    }
    if (url.endsWith('/AddOrder')) {
      if (this.#meets('short', 'the exchange had too little for an order'))
        return refused('EOrder:Insufficient funds')
      if (this.#meets('hidden', 'a taken order was in no list for a while'))
        account.hiddenUntilMs = nowMs + random.below(HIDDEN_MS_MAX)
    }
    if (
      url.endsWith('/CancelOrder') &&
      this.#meets('fills', 'an order was filled while it was cancelled')
    )
      this.fill(account, fields['txid'])
    account.visibleAfterMs = nowMs < account.hiddenUntilMs ? Infinity : 0
    account.hidesTrades = nowMs < account.hiddenUntilMs && random.below(2) === 1
    const text = await (await account.fetch(url, init)).text()
    const missing = url.endsWith('/QueryOrders') && text.includes('"result":{}')
    return missing && random.below(2) === 1 ? refused('EOrder:Unknown order') : text
  }

  /** Fills a part of the resting orders, or all of them. */
  fill(account: Account, id?: string, isWhole = false): void {
    const { random } = this.#context
    const resting = [...account.orders.values()].filter(
      (order) => order.status === 'open' && (id === undefined || order.id === id),
    )
    if (resting.length === 0) return
    const order = random.of(resting)
    const left = Math.round((order.volume - order.filled) * LOTS)
    const lots = isWhole || left === 1 ? left : 1 + random.below(left)
    account.fill(order.id, lots / LOTS)
    // Floating-point sums of the parts may differ from the whole, so the sum is rounded.
    order.filled = Math.round(order.filled * LOTS) / LOTS
    if (this.#meets('twice', 'a fill was told twice'))
      order.trades.push(order.trades.at(-1) as string)
  }

  /** Moves the market, fills or cancels orders, or starts a temporary failure. */
  act(): void {
    const { random, schedule } = this.#context
    const account = random.of([...this.accounts.values()])
    switch (random.below(6)) {
      case 0:
      case 1:
      case 2:
        this.#context.noted('the market filled a part')
        return this.fill(account)
      case 3: {
        const to = 59_000 + 100 * random.below(21)
        const prices = {
          ask: { price: to + 100, volume: 1 + random.below(3) },
          bid: { price: to, volume: 1 },
        }
        for (const each of this.accounts.values()) Object.assign(each, prices)
        return
      }
      case 4: {
        const order = [...account.orders.values()].find(({ status }) => status === 'open')
        if (!order) return
        this.#context.noted('the exchange took an order back')
        order.status = random.of(['canceled', 'expired'])
        return
      }
      default:
        this.#spell = {
          kind: random.of(SPELLS),
          untilMs: schedule.nowMs + 1000 * (1 + random.below(SPELL_S_MAX)),
        }
        this.#context.noted(`the exchange for a while: ${this.#spell.kind}`)
    }
  }

  /** Ends all resting orders. */
  finish(): void {
    for (const account of this.accounts.values()) {
      for (const { id, status } of account.orders.values())
        if (status === 'open') this.fill(account, id, true)
    }
  }
}

/** Number of lots in a coin: amounts are multiples of a thousandth. */
const LOTS = 1000

/** Returns a text that distinguishes requests to the same path. */
const orderRef = (init: RequestInit | undefined): string =>
  /cl_ord_id=(\w{6})|txid=(\w+)/
    .exec(String(init?.body ?? ''))
    ?.slice(1)
    .join('') ?? ''
