import { AsyncLocalStorage } from 'node:async_hooks'
import { redacted, type RawAnswer } from '../../core/ccxt.ts'
import type { CcxtMarket, CcxtOrder, CcxtTrade, CcxtTransfer, Client } from './client.ts'
import { REFUSED_BY_CLASS } from './generic.ts'
import type { VenueAdapter, ErrorClass, VenueTools } from './venue-adapter.ts'
import { readUnits, showUnits, times } from './units.ts'
import {
  VenueError,
  type Balance,
  type DepositAddress,
  type Fill,
  type OrderLookup,
  type Market,
  type NewOrder,
  type NewWithdrawal,
  type OrderRef,
  type Permissions,
  type Placed,
  type Transfer,
  type Venue,
  type VenueOrder,
  type VenueTraits,
} from './venue.ts'

/** The HTTP responses to one call of the connector. Calls of one client overlap. */
interface Exchanged {
  last: RawAnswer | null
  sent: boolean
  mayLeave(): boolean
}
const exchanged = new AsyncLocalStorage<Exchanged>()

/**
 * Records a response for the call in progress. Used as the client's `onAnswer`.
 * @throws Error if the deadline for sending the request has passed
 */
export function note(answer: RawAnswer): void {
  const call = exchanged.getStore()
  if (!call) return
  if (answer.status === null && !call.mayLeave())
    throw new Error('the request waited too long and was not sent')
  call.sent = true
  call.last = answer
}

/** Code of a failure before any part of the request was sent, so the request may be repeated. */
const NOT_SENT = 'NOT_SENT'
const OK_STATUS_MAX = 499
/** Form of an account's ID. Zero and empty values identify no account. */
const ACCOUNT_ID = /^(?!0+$)[\x21-\x7e][\x20-\x7e]{0,99}$/
const REQUEST_TIMEOUT = 408

interface Judged {
  meaning: ErrorClass | null
  word: string
  said: string | null
}

function bodyOf(answer: RawAnswer | null): unknown {
  if (answer?.text === null || answer?.text === undefined) return undefined
  try {
    return JSON.parse(answer.text) as unknown
  } catch {
    return undefined
  }
}

/**
 * Returns a short description of a failure, because ccxt's own messages contain the URL and the
 * complete body.
 */
const failureOf = (error: unknown, answer: RawAnswer | null): string => {
  const name = error instanceof Error ? error.constructor.name : ''
  const what = name === '' || name === 'Error' ? redacted(error) : name
  return answer?.status ? `${what}, HTTP ${answer.status}` : what
}

/** Access to an exchange through ccxt. It stores nothing; its callers book the results. */
export class Connector implements Venue {
  readonly exchange: string
  readonly traits: VenueTraits
  readonly #client: Client
  readonly #manner: VenueAdapter
  readonly #clock: () => number
  /** Loads the markets, which all clients of the exchange share. */
  readonly #ready: () => Promise<void>

  constructor(o: {
    client: Client
    manner: VenueAdapter
    now: () => number
    ready: () => Promise<void>
  }) {
    this.exchange = o.client.id
    this.traits = o.manner.traits
    this.#client = o.client
    this.#manner = o.manner
    this.#clock = o.now
    this.#ready = o.ready
  }

  probe(): Promise<Permissions> {
    return this.#ask(() => this.#manner.permissions(this.#client))
  }

  get reportsAccountId(): boolean {
    return this.#manner.accountId !== undefined
  }

  async accountId(): Promise<string | null> {
    const { accountId } = this.#manner
    if (!accountId) return null
    const id = await this.#ask(() => accountId(this.#client))
    return (typeof id === 'string' || typeof id === 'number') && ACCOUNT_ID.test(String(id))
      ? String(id)
      : null
  }

  balances(): Promise<Balance[]> {
    return this.#ask(async () => {
      const { total = {}, free = {} } = await this.#client.fetchBalance()
      const listed = this.#client.currencies ?? {}
      const isCoin = (code: string) => Object.hasOwn(listed, code)
      const all = new Map<string, Balance>()
      for (const [code, amount] of Object.entries(total)) {
        const held = readUnits(amount)
        if (held === null || held === 0n) continue
        const { coin, isSpendable } = this.#manner.variant?.(code, isCoin) ?? {
          coin: code,
          isSpendable: true,
        }
        const before = all.get(coin) ?? { coin, total: 0n, available: 0n }
        const available = isSpendable ? (readUnits(free[code]) ?? held) : 0n
        all.set(coin, { coin, total: before.total + held, available: before.available + available })
      }
      return [...all.values()]
    })
  }

  async place(order: NewOrder, notAfter: number): Promise<Placed> {
    const { symbol, side, amount, price } = order
    return this.#change(
      () =>
        this.#client.createOrder(
          symbol,
          'limit',
          side,
          showUnits(amount),
          showUnits(price),
          this.#manner.orderParams(order, this.#clock()),
        ),
      notAfter,
    )
  }

  find(ref: OrderRef): Promise<OrderLookup> {
    return this.#ask(() => this.#manner.find(this.#tools(), ref))
  }

  async cancel(ref: OrderRef): Promise<'asked' | 'gone'> {
    const { id, params } = this.#manner.cancelBy(ref)
    const answer = await this.#unlessMissing(() =>
      this.#ask(() => this.#client.cancelOrder(id, ref.symbol, params).then(() => true)),
    )
    return answer ? 'asked' : 'gone'
  }

  fills(ref: OrderRef & { venueId: string }): Promise<Fill[]> {
    return this.#ask(() => this.#manner.fills(this.#tools(), ref))
  }

  async depositAddress(coin: string, network: string): Promise<DepositAddress> {
    const there = this.#networkOf(network)
    const existing = await this.#ask(
      () =>
        this.#manner.depositAddress?.(this.#client, coin, network) ??
        this.#client.fetchDepositAddress(coin, { network: there }),
    )
    if (!existing.address)
      throw new VenueError(
        'missing',
        `${this.exchange} returns no address for ${coin} on ${network}`,
      )
    return {
      address: existing.address,
      tag: existing.tag === undefined || existing.tag === '' ? null : existing.tag,
      network,
    }
  }

  async deposits(coin: string, sinceMs: number): Promise<Transfer[]> {
    return (await this.#ask(() => this.#client.fetchDeposits(coin, sinceMs))).map((each) =>
      transferOf(each, coin),
    )
  }

  async withdrawalKey(
    coin: string,
    network: string,
    address: string,
    tag: string | null,
  ): Promise<string | null> {
    this.#networkOf(network)
    const { withdrawalKey } = this.#manner
    if (!withdrawalKey) return null
    const key = await this.#ask(() => withdrawalKey(this.#client, { coin, network, address, tag }))
    if (key !== null) return key
    const place = tag === null ? address : `${address} with tag ${tag}`
    throw new VenueError(
      'missing',
      `${this.exchange} has no withdrawal address ${place} for ${coin}; register it there first, under any name`,
    )
  }

  async assertWithdrawable(): Promise<void> {
    const { withdrawalObstacle } = this.#manner
    const obstacle = withdrawalObstacle
      ? await this.#ask(() => withdrawalObstacle(this.#client))
      : null
    if (obstacle !== null) throw new VenueError('unsupported', `${this.exchange}: ${obstacle}`)
  }

  async withdraw(
    { clientId, coin, network, address, tag, amount, key }: NewWithdrawal,
    notAfter: number,
  ): Promise<Placed> {
    const there = this.#networkOf(network)
    return this.#change(
      () =>
        this.#client.withdraw(
          coin,
          showUnits(amount),
          address,
          tag ?? undefined,
          this.#manner.withdrawParams(clientId, there, key),
        ),
      notAfter,
    )
  }

  async withdrawals(coin: string, sinceMs: number): Promise<Transfer[]> {
    return (await this.#ask(() => this.#client.fetchWithdrawals(coin, sinceMs))).map((each) =>
      transferOf(each, coin),
    )
  }

  #networkOf(network: string): string {
    const there = this.#manner.networks[network]
    if (there === undefined)
      throw new VenueError('unsupported', `the name of ${network} at ${this.exchange} is unknown`)
    return there
  }

  #tools(): VenueTools {
    const manner = this.#manner
    return {
      client: this.#client,
      unlessMissing: (ask) => this.#unlessMissing(() => this.#judged(ask)),
      market: (symbol) => marketOf(this.#client.market(symbol), manner),
      fill: (trade, market) => fillOf(trade, market),
      orderResult: (order, market) => ({ kind: 'found', order: orderOf(order, market, manner) }),
    }
  }

  async #unlessMissing<T>(ask: () => Promise<T>): Promise<T | null> {
    try {
      return await ask()
    } catch (error) {
      if (error instanceof VenueError && error.kind === 'missing') return null
      throw error
    }
  }

  /**
   * Runs a read of one or more requests.
   * @throws VenueError
   */
  async #ask<T>(work: () => Promise<T>): Promise<T> {
    return this.#judged(async () => {
      await this.#ready()
      const answer = await work()
      const { last } = exchanged.getStore() as Exchanged
      // A response that does not come from this exchange's API could be parsed as an empty result.
      if (last !== null && !this.#manner.isSound(bodyOf(last)))
        throw new Error('the response is not in the format of this exchange')
      return answer
    })
  }

  async #judged<T>(work: () => Promise<T>): Promise<T> {
    const call: Exchanged = { last: null, sent: false, mayLeave: () => true }
    try {
      return await exchanged.run(call, work)
    } catch (error) {
      if (error instanceof VenueError) throw error
      const { meaning, said } = this.#judge(call.last, error)
      const kind = meaning === 'key' ? 'refused' : meaning === 'missing' ? 'missing' : 'unavailable'
      throw new VenueError(kind, `${this.exchange}: ${said ?? failureOf(error, call.last)}`, said)
    }
  }

  /**
   * Runs a single request that changes something, and returns what is certain about its outcome.
   */
  async #change(
    work: () => Promise<{ id?: string; status?: string }>,
    notAfter: number,
  ): Promise<Placed> {
    const call: Exchanged = { last: null, sent: false, mayLeave: () => this.#clock() <= notAfter }
    try {
      await this.#ready()
    } catch {
      return { kind: 'later', code: NOT_SENT }
    }
    let failure: unknown = null
    try {
      const { id, status } = await exchanged.run(call, work)
      if (typeof id === 'string' && id !== '' && status !== 'rejected')
        return { kind: 'accepted', venueId: id }
    } catch (error) {
      failure = error
    }
    if (!call.sent) return { kind: 'later', code: NOT_SENT }
    const { meaning, word, said } = this.#judge(call.last, failure)
    if (meaning === 'refused' || meaning === 'key') return { kind: 'refused', code: word }
    if (meaning === 'later') return { kind: 'later', code: word }
    return {
      kind: 'unknown',
      reason:
        said ?? (failure === null ? 'the response contains no id' : failureOf(failure, call.last)),
    }
  }

  /**
   * Classifies a response by the exchange's own error codes. A 5xx response is always inconclusive,
   * whatever its body says.
   */
  #judge(answer: RawAnswer | null, error: unknown): Judged {
    const status = answer?.status ?? null
    if (status === null || status > OK_STATUS_MAX || status === REQUEST_TIMEOUT)
      return { meaning: null, word: '', said: null }
    const said = this.#manner.said(bodyOf(answer))
    const [, meaning, word] =
      (said === null ? undefined : this.#manner.codes.find(([code]) => code.test(said))) ?? []
    if (meaning) return { meaning, word: word as string, said }
    if (status === 401 || status === 403) return { meaning: 'key', word: 'KEY_REFUSED', said }
    if (this.#manner.codes.length === 0) {
      const name = error instanceof Error ? error.constructor.name : ''
      if (name === 'OrderNotFound') return { meaning: 'missing', word: '', said }
      const refusal = REFUSED_BY_CLASS[name]
      if (refusal !== undefined)
        return { meaning: refusal === 'KEY_REFUSED' ? 'key' : 'refused', word: refusal, said }
    }
    return { meaning: null, word: '', said }
  }
}

/**
 * Converts a market.
 * @returns the market; a step that the exchange does not state is the smallest unit
 */
export function marketOf(market: CcxtMarket, manner: VenueAdapter): Market {
  const read = (text: string | undefined) => (text === undefined ? null : readUnits(text))
  return {
    symbol: market.symbol,
    base: market.base,
    quote: market.quote,
    active: market.active !== false,
    amountStep: read(market.precision.amount) ?? 1n,
    priceStep: read(manner.priceStep?.(market)) ?? read(market.precision.price) ?? 1n,
    amountMin: read(market.limits.amount?.min),
    amountMax: read(market.limits.amount?.max),
    costMin: read(market.limits.cost?.min),
    makerFee: read(market.maker),
    takerFee: read(market.taker),
  }
}

const STATES: Readonly<Record<string, VenueOrder['state']>> = {
  open: 'open',
  closed: 'closed',
  canceled: 'cancelled',
  expired: 'cancelled',
  rejected: 'rejected',
  canceling: 'open',
}

function orderOf(order: CcxtOrder, market: Market, manner: VenueAdapter): VenueOrder {
  const state = STATES[order.status ?? ''] ?? manner.states?.[order.status ?? '']
  if (order.id === undefined || state === undefined)
    throw new Error('an order has no id or no known state')
  const fills =
    order.trades?.every(({ price, amount }) => price !== undefined && amount !== undefined) === true
      ? order.trades.map((trade) => fillOf(trade, market))
      : null
  const filled = order.filled === undefined ? null : readUnits(order.filled)
  return { venueId: order.id, state, filled, fills: fills?.length ? fills : null }
}

function fillOf(trade: CcxtTrade, market: Market): Fill {
  const [price, amount] = [readUnits(trade.price), readUnits(trade.amount)]
  if (trade.id === undefined || price === null || amount === null)
    throw new Error('a fill has no id, price or amount')
  return {
    tradeId: trade.id,
    price,
    amount,
    cost: readUnits(trade.cost) ?? times(amount, price),
    fee: readUnits(trade.fee?.cost) ?? 0n,
    feeCoin: trade.fee?.currency ?? market.quote,
    maker: trade.takerOrMaker === undefined ? null : trade.takerOrMaker === 'maker',
    at: trade.timestamp ?? 0,
  }
}

const TRANSFERS: Readonly<Record<string, Transfer['status']>> = {
  pending: 'pending',
  ok: 'done',
  failed: 'failed',
  canceled: 'failed',
}

function transferOf(each: CcxtTransfer, coin: string): Transfer {
  const amount = readUnits(each.amount)
  if (each.id === undefined || amount === null) throw new Error('a transfer has no id or amount')
  const client = each.info['withdrawOrderId'] ?? each.info['clientId'] ?? each.info['idem']
  return {
    venueId: each.id,
    clientId: typeof client === 'string' && client !== '' ? client : null,
    coin: each.currency ?? coin,
    network: each.network ?? null,
    amount,
    fee: readUnits(each.fee?.cost),
    address: each.address ?? null,
    tag: each.tag ?? null,
    hash: each.txid ?? null,
    status: TRANSFERS[each.status ?? ''] ?? 'unknown',
    at: each.timestamp ?? 0,
  }
}
