import { Book, type Level, type Offer } from './book.ts'
import { marketMakerLevels } from './market-maker.ts'
import { costAtMost, costOf, volumeFor, type Market, type VenueRules } from './markets.ts'
import { ceilDivide } from './numbers.ts'
import {
  Refused,
  type Account,
  type Balance,
  type Ending,
  type Order,
  type Side,
  type Trade,
  type OrderParams,
} from './types.ts'

/** Maximum number of open orders of one account. */
export const OPEN_ORDERS_MAX = 200
/** Time in milliseconds after which the market maker renews its offers. */
const HOUSE_REFRESH_MS = 1000
const BPS = 10_000n

const OTHER: Record<Side, Side> = { buy: 'sell', sell: 'buy' }

/** Changes of an operation, which are stored together. */
export interface Changes {
  accounts: Set<Account>
  orders: Set<Order>
  trades: Set<Trade>
}

export interface EngineOptions {
  rules: VenueRules
  /**
   * Returns the USD price with PRICE_DECIMALS; undefined if the market maker does not trade the
   * coin.
   */
  priceOf: (coin: string) => bigint | undefined
  now: () => number
  /** Returns a unique id. */
  name: (kind: 'order' | 'trade', number: number) => string
}

/** What is traded at one price. */
interface Fill {
  price: bigint
  volume: bigint
  cost: bigint
}

/**
 * `isOwnMet`: an order of the same account would be matched. `isSpent`: the book filled the whole
 * order.
 */
interface Plan {
  fills: { offer: Offer; volume: bigint; cost: bigint }[]
  volume: bigint
  cost: bigint
  isOwnMet: boolean
  isSpent: boolean
}

/**
 * Accounts and order books of one venue: price-time priority, customers before the market maker at
 * one price. Money is moved between accounts, market maker and fees, and never created. The engine
 * knows neither protocol nor disk: changes are returned in `changes`.
 */
export class Engine {
  readonly accounts = new Map<string, Account>()
  readonly orders = new Map<string, Order>()
  readonly trades = new Map<string, Trade>()
  /**
   * By coin: fees that the venue has received, and the market maker's profit or loss since the
   * start.
   */
  readonly collected: Record<string, bigint> = {}
  readonly marketMaker: Record<string, bigint> = {}
  readonly rules: VenueRules
  changes: Changes = { accounts: new Set(), orders: new Set(), trades: new Set() }
  readonly #options: EngineOptions
  readonly #books = new Map<string, Book & { refreshedMs?: number; prices?: string }>()
  readonly #open = new Map<string, Set<Order>>()
  #lastOrder = 0
  #lastTrade = 0

  constructor(options: EngineOptions) {
    this.rules = options.rules
    this.#options = options
  }

  /** Restores the stored state. */
  restore({
    accounts,
    orders,
    trades,
  }: {
    accounts: Account[]
    orders: Order[]
    trades: Trade[]
  }): void {
    for (const account of accounts) this.accounts.set(account.id, account)
    for (const order of orders) {
      this.orders.set(order.id, order)
      this.#lastOrder = Math.max(this.#lastOrder, order.number)
      if (order.status === 'open') this.#rest(order, false)
    }
    for (const trade of trades) {
      this.trades.set(trade.id, trade)
      this.#lastTrade = Math.max(this.#lastTrade, trade.number)
    }
  }

  openOrders(account: string): Order[] {
    return [...(this.#open.get(account) ?? [])].sort((a, b) => a.number - b.number)
  }

  /** Returns the current book of a market. */
  book(market: Market): Book {
    let book = this.#books.get(market.id)
    if (!book) this.#books.set(market.id, (book = new Book()))
    const now = this.#options.now()
    const prices = `${this.#options.priceOf(market.base.ticker)} ${this.#options.priceOf(market.quote.ticker)}`
    if (book.prices !== prices || now - (book.refreshedMs ?? 0) >= HOUSE_REFRESH_MS) {
      Object.assign(book, {
        prices,
        refreshedMs: now,
        marketMaker: marketMakerLevels(market, this.#options.priceOf),
      })
      this.#fillResting(market, book)
    }
    return book
  }

  /** Returns one entry for each price, the best first. */
  depth(market: Market, side: Side): Level[] {
    const levels: Level[] = []
    for (const { price, volume } of this.book(market).offers(side)) {
      const last = levels.at(-1)
      if (last?.price === price) last.volume += volume
      else levels.push({ price, volume })
    }
    return levels
  }

  /** Applies the current local prices to every resting order. */
  refresh(): void {
    for (const [id, { buy, sell }] of this.#books) {
      if (buy.length + sell.length > 0)
        this.book(this.rules.markets.find((market) => market.id === id)!)
    }
  }

  /**
   * Places an order: the crossing part is filled immediately, the rest of a limit order rests. An
   * order that must not rest ends as cancelled with the filled part.
   * @param isTrial checks the order without changing anything
   * @throws Refused without changing anything
   */
  place(account: Account, market: Market, params: OrderParams, isTrial = false): Order {
    const book = this.book(market)
    const open = this.openOrders(account.id)
    if (params.clientId !== null && open.some(({ clientId }) => clientId === params.clientId))
      throw new Refused('client-id')
    if (open.length >= OPEN_ORDERS_MAX) throw new Refused('orders-limit')
    const plan = this.#plan(account, market, book, params)
    if (params.postOnly && (plan.fills.length > 0 || plan.isOwnMet)) throw new Refused('post-only')
    const needed = this.#needed(market, params, plan)
    const balance = account.balances[needed.coin]
    if (!balance || balance.total - balance.held < needed.amount) throw new Refused('funds')
    const isKilled =
      params.timeInForce === 'FOK' && params.volume !== null && plan.volume < params.volume
    const order: Order = {
      ...params,
      id: '',
      number: this.#lastOrder + 1,
      account: account.id,
      market: market.id,
      filled: 0n,
      cost: 0n,
      fee: 0n,
      // An order that spends a fixed amount has a computed volume.
      volume: params.volume ?? plan.volume,
      status: 'open',
      ending: null,
      openedMs: this.#options.now(),
      closedMs: null,
      trades: [],
    }
    if (isTrial) return order
    this.#lastOrder = order.number
    order.id = this.#options.name('order', order.number)
    this.orders.set(order.id, order)
    this.changes.orders.add(order)
    if (!isKilled) for (const fill of plan.fills) this.#cross(market, book, order, fill)
    this.#finish(order, plan, isKilled)
    return order
  }

  /** Ends an order that was placed, or lets the rest of a limit order rest. */
  #finish(order: Order, plan: Plan, isKilled: boolean): void {
    if (order.filled === order.volume && order.filled > 0n && plan.isSpent)
      this.#end(order, 'filled', null)
    else if (order.price !== null && order.timeInForce === 'GTC' && !plan.isOwnMet)
      this.#rest(order, true)
    else this.#end(order, 'cancelled', plan.isOwnMet && !isKilled ? 'own-order' : 'unfilled')
  }

  /** Cancels an order; has no effect if it is no longer open. */
  cancel(order: Order): void {
    if (order.status !== 'open') return
    const market = this.rules.markets.find(({ id }) => id === order.market)!
    this.book(market)
    if (order.status !== 'open') return
    const held = this.#holdOf(market, order)
    this.#books.get(market.id)!.remove(order)
    this.#end(order, 'cancelled', 'user')
    this.balance(order.account, held.coin).held -= held.amount
  }

  /** Deposits external money to an account, or withdraws held money from it. */
  move(account: string, coin: string, total: bigint, held: bigint): void {
    const balance = this.balance(account, coin)
    if (balance.held + held < 0n || balance.total + total < balance.held + held)
      throw new Refused('funds')
    balance.total += total
    balance.held += held
  }

  /** Returns a mutable balance. */
  balance(account: string, coin: string): Balance {
    const owner = this.accounts.get(account)!
    this.changes.accounts.add(owner)
    return (owner.balances[coin] ??= { total: 0n, held: 0n })
  }

  /** Computes the part of the current book that an order would take. */
  #plan(account: Account, market: Market, book: Book, params: OrderParams): Plan {
    const plan: Plan = { fills: [], volume: 0n, cost: 0n, isOwnMet: false, isSpent: false }
    for (const offer of book.offers(OTHER[params.side])) {
      if (
        params.price !== null &&
        (params.side === 'buy' ? offer.price > params.price : offer.price < params.price)
      )
        return plan
      if (offer.order?.account === account.id) return { ...plan, isOwnMet: true }
      const wanted =
        params.volume === null
          ? volumeFor(market, offer.price, params.spend! - plan.cost)
          : params.volume - plan.volume
      const volume = wanted < offer.volume ? wanted : offer.volume
      if (volume > 0n) {
        const cost = costOf(market, offer.price, volume)
        plan.fills.push({ offer, volume, cost })
        plan.volume += volume
        plan.cost += cost
      }
      if (wanted <= offer.volume) return { ...plan, isSpent: true }
    }
    return plan
  }

  /** Returns the free balance that an account needs for an order. */
  #needed(market: Market, params: OrderParams, plan: Plan): { coin: string; amount: bigint } {
    const { base, quote } = market
    if (params.side === 'sell') return { coin: base.ticker, amount: params.volume ?? plan.volume }
    if (params.price !== null)
      return {
        coin: quote.ticker,
        amount: this.#atMost(market, params, params.price, params.volume!),
      }
    const fees = plan.fills.reduce((sum, { cost }) => sum + (cost * this.rules.takerBps) / BPS, 0n)
    return { coin: quote.ticker, amount: plan.cost + (params.feeIn === 'quote' ? fees : 0n) }
  }

  /**
   * Returns the maximum cost of a volume including the fee, which is never less than the sum of its
   * fills.
   */
  #atMost(
    market: Market,
    { feeIn }: Pick<OrderParams, 'feeIn'>,
    price: bigint,
    volume: bigint,
  ): bigint {
    const cost = costAtMost(market, price, volume)
    return cost + (feeIn === 'quote' ? ceilDivide(cost * this.rules.takerBps, BPS) : 0n)
  }

  #holdOf(market: Market, order: Order): { coin: string; amount: bigint } {
    const rest = order.volume! - order.filled
    return order.side === 'sell'
      ? { coin: market.base.ticker, amount: rest }
      : { coin: market.quote.ticker, amount: this.#atMost(market, order, order.price!, rest) }
  }

  /**
   * Adds an order to the book.
   * @param isNew reserves the balance; otherwise it is already reserved
   */
  #rest(order: Order, isNew: boolean): void {
    const market = this.rules.markets.find(({ id }) => id === order.market)!
    let book = this.#books.get(market.id)
    if (!book) this.#books.set(market.id, (book = new Book()))
    book.add(order)
    const open = this.#open.get(order.account) ?? new Set()
    this.#open.set(order.account, open.add(order))
    if (!isNew) return
    const { coin, amount } = this.#holdOf(market, order)
    this.balance(order.account, coin).held += amount
  }

  #end(order: Order, status: 'filled' | 'cancelled', ending: Ending | null): void {
    Object.assign(order, { status, ending, closedMs: this.#options.now() })
    this.#open.get(order.account)?.delete(order)
    this.changes.orders.add(order)
  }

  /** Fills the orders that now cross the market maker's price, at the order's price. */
  #fillResting(market: Market, book: Book): void {
    for (const side of ['buy', 'sell'] as const) {
      for (const level of book.marketMaker[OTHER[side]]) {
        const reaches = (order: Order) =>
          side === 'buy' ? order.price! >= level.price : order.price! <= level.price
        for (
          let order = book[side][0];
          order && level.volume > 0n && reaches(order);
          order = book[side][0]
        ) {
          const rest = order.volume! - order.filled
          const volume = rest < level.volume ? rest : level.volume
          level.volume -= volume
          const cost = costOf(market, order.price!, volume)
          this.#rested(market, book, order, { price: order.price!, volume, cost })
          this.#marketMakerTakes(market, OTHER[side], volume, cost)
        }
      }
    }
  }

  #cross(
    market: Market,
    book: Book,
    taker: Order,
    { offer, volume, cost }: Plan['fills'][number],
  ): void {
    const fill = { price: offer.price, volume, cost }
    this.#settle(market, taker, fill, false)
    if (offer.order) return this.#rested(market, book, offer.order, fill)
    offer.level!.volume -= volume
    this.#marketMakerTakes(market, OTHER[taker.side], volume, cost)
  }

  /** Fills a resting order and reduces its reserved balance. */
  #rested(market: Market, book: Book, order: Order, fill: Fill): void {
    const before = this.#holdOf(market, order)
    this.#settle(market, order, fill, true)
    const isDone = order.filled === order.volume
    const after = isDone ? 0n : this.#holdOf(market, order).amount
    this.balance(order.account, before.coin).held -= before.amount - after
    if (!isDone) return
    book.remove(order)
    this.#end(order, 'filled', null)
  }

  #marketMakerTakes({ base, quote }: Market, side: Side, volume: bigint, cost: bigint): void {
    const sign = side === 'buy' ? 1n : -1n
    this.marketMaker[base.ticker] = (this.marketMaker[base.ticker] ?? 0n) + sign * volume
    this.marketMaker[quote.ticker] = (this.marketMaker[quote.ticker] ?? 0n) - sign * cost
  }

  /** Settles one side of a fill: money, order and trade. */
  #settle(
    { id: market, base, quote }: Market,
    order: Order,
    { price, volume, cost }: Fill,
    isMaker: boolean,
  ): void {
    const isBuy = order.side === 'buy'
    const bps = isMaker ? this.rules.makerBps : this.rules.takerBps
    const feeCoin = isBuy && order.feeIn === 'base' ? base.ticker : quote.ticker
    const fee = ((feeCoin === base.ticker ? volume : cost) * bps) / BPS
    this.balance(order.account, base.ticker).total += isBuy ? volume : -volume
    this.balance(order.account, quote.ticker).total += isBuy ? -cost : cost
    this.balance(order.account, feeCoin).total -= fee
    this.collected[feeCoin] = (this.collected[feeCoin] ?? 0n) + fee
    const number = (this.#lastTrade += 1)
    const trade: Trade = {
      id: this.#options.name('trade', number),
      number,
      order: order.id,
      account: order.account,
      market,
      side: order.side,
      price,
      volume,
      cost,
      fee,
      feeCoin,
      isMaker,
      isLimit: order.price !== null,
      atMs: this.#options.now(),
    }
    this.trades.set(trade.id, trade)
    order.filled += volume
    order.cost += cost
    order.fee += fee
    order.trades.push(trade.id)
    this.changes.trades.add(trade)
    this.changes.orders.add(order)
  }
}
