import { MARKETS, ScriptedExchange } from './venue-scripts.ts'

interface FakeOrder {
  id: string
  clientId: string
  type: string
  price: string
  volume: number
  filled: number
  status: string
  tif: string
  trades: string[]
  takenAt: number
  oflags: string
}
interface FakeTrade {
  ordertxid: string
  pair: string
  time: number
  type: string
  ordertype: string
  price: string
  cost: string
  fee: string
  vol: string
  maker: boolean
}
const FEE = 0.004

/**
 * Emulates an exchange with one market on Kraken's protocol. The test controls its behaviour and
 * its clock.
 */
export class FakeKraken {
  readonly orders = new Map<string, FakeOrder>()
  readonly trades = new Map<string, FakeTrade>()
  readonly held = new Map<string, number>([
    ['ZUSD', 1_000_000],
    ['XXBT', 10],
  ])
  permissions = ['query-funds', 'modify-trades']
  /** Best prices, and the volume available at each. */
  ask = { price: 60_000, volume: 1000 }
  bid = { price: 59_990, volume: 1000 }
  /** Time in milliseconds after which an accepted order becomes visible. */
  visibleAfterMs = 0
  /**
   * Loses the response to the next order (after the order was accepted) or the request itself,
   * once.
   */
  lose: 'answer' | 'request' | null = null
  /** Error that every private call returns while it is set. */
  error: string | null = null
  /** Error that every private call returns from the next order on. */
  errorAfterAdd: string | null = null
  /**
   * Account at the exchange of each key; a key that is not listed has an account of its own. Null:
   * the responses contain no account ID.
   */
  accounts: Map<string, string> | null = new Map()
  /** Keys that were deleted at the exchange. */
  readonly revoked = new Set<string>()
  /** Whether fills are left out of the responses. */
  hidesTrades = false
  readonly adds: Record<string, string>[] = []
  readonly script: ScriptedExchange
  readonly #now: () => number
  #count = 0

  constructor(now: () => number) {
    this.#now = now
    this.script = new ScriptedExchange({
      ...MARKETS['kraken'],
      '/0/public/Depth': () => ({
        body: {
          error: [],
          result: {
            XXBTZUSD: {
              asks: this.ask.volume === 0 ? [] : [[`${this.ask.price}`, `${this.ask.volume}`, 1]],
              bids: this.bid.volume === 0 ? [] : [[`${this.bid.price}`, `${this.bid.volume}`, 1]],
            },
          },
        },
      }),
      '/0/public/Ticker': () => ({
        body: {
          error: [],
          result: {
            XXBTZUSD: {
              a: [`${this.ask.price}`, '1', '1'],
              b: [`${this.bid.price}`, '1', '1'],
              c: [`${this.ask.price}`, '1'],
              v: ['1', '1'],
              p: ['1', '1'],
              t: [1, 1],
              l: ['1', '1'],
              h: ['1', '1'],
              o: '1',
            },
          },
        },
      }),
    })
  }

  readonly fetch = async (input: string | URL | Request, init?: RequestInit): Promise<Response> => {
    const method = /\/0\/private\/(\w+)$/.exec(new URL(String(input)).pathname)?.[1]
    if (method === undefined) return this.script.fetch(input, init)
    const fields = Object.fromEntries(new URLSearchParams(String(init?.body ?? '')))
    if (method === 'AddOrder') this.adds.push(fields)
    if (method === 'AddOrder' && this.lose === 'request') {
      this.lose = null
      throw new TypeError('fetch failed')
    }
    const key = new Headers(init?.headers).get('api-key') ?? ''
    const error = this.revoked.has(key) ? 'EAPI:Invalid key' : this.error
    const result = error === null ? this.#answer(method, fields, key) : error
    if (method === 'AddOrder' && this.errorAfterAdd !== null) {
      this.error = this.errorAfterAdd
      this.errorAfterAdd = null
    }
    if (method === 'AddOrder' && this.lose === 'answer') {
      this.lose = null
      throw new TypeError('fetch failed')
    }
    return new Response(
      JSON.stringify(typeof result === 'string' ? { error: [result] } : { error: [], result }),
    )
  }

  #answer(method: string, fields: Record<string, string>, key: string): object | string {
    const seen = [...this.orders.values()].filter(
      ({ takenAt }) => this.#now() - takenAt >= this.visibleAfterMs,
    )
    const shown = (orders: FakeOrder[]) =>
      Object.fromEntries(orders.map((order) => [order.id, this.#show(order)]))
    const mine = (open: boolean) =>
      seen.filter(
        (order) =>
          (order.status === 'open') === open &&
          (fields['cl_ord_id'] ?? order.clientId) === order.clientId,
      )
    switch (method) {
      case 'GetApiKeyInfo':
        return {
          permissions: this.permissions,
          ipAllowlist: ['127.0.0.1'],
          ...(this.accounts ? { iban: this.accountOf(key) } : {}),
        }
      case 'BalanceEx':
        return Object.fromEntries(
          [...this.held].map(([coin, amount]) => [
            coin,
            { balance: amount.toFixed(8), hold_trade: '0' },
          ]),
        )
      case 'AddOrder':
        return this.#add(fields)
      case 'OpenOrders':
        return { open: shown(mine(true)) }
      case 'ClosedOrders':
        return { closed: shown(mine(false)), count: mine(false).length }
      case 'QueryOrders':
        return shown(seen.filter(({ id }) => id === fields['txid']))
      case 'QueryTrades':
        return Object.fromEntries(
          (fields['txid'] ?? '').split(',').map((id) => [id, this.trades.get(id)]),
        )
      case 'CancelOrder': {
        const order = this.orders.get(fields['txid'] as string)
        if (order?.status !== 'open') return 'EOrder:Unknown order'
        order.status = 'canceled'
        return { count: 1 }
      }
      default:
        return 'EGeneral:Unknown method'
    }
  }

  /** Returns the ID of the account that a key belongs to. */
  accountOf(key: string): string {
    return this.accounts?.get(key) ?? `AA00 ${key}`
  }

  #show(order: FakeOrder): object {
    return {
      refid: null,
      cl_ord_id: order.clientId,
      status: order.status,
      opentm: order.takenAt / 1000,
      vol: order.volume.toFixed(8),
      vol_exec: order.filled.toFixed(8),
      cost: (order.filled * Number(order.price)).toFixed(5),
      fee: '0',
      price: order.price,
      oflags: order.oflags,
      reason: null,
      misc: '',
      descr: {
        pair: 'XBTUSD',
        type: order.type,
        ordertype: 'limit',
        price: order.price,
        price2: '0',
        leverage: 'none',
        order: '',
        close: '',
      },
      trades: this.hidesTrades ? [] : order.trades,
    }
  }

  #add(fields: Record<string, string>): object | string {
    const {
      type = '',
      price = '0',
      volume = '0',
      cl_ord_id: clientId = '',
      timeinforce: tif = 'GTC',
      oflags = '',
    } = fields
    const [size, limit] = [Number(volume), Number(price)]
    const cost = size * limit
    const coin = type === 'buy' ? 'ZUSD' : 'XXBT'
    const open = [...this.orders.values()].filter(
      (order) => order.status === 'open' && order.type === type,
    )
    const inOrders = open.reduce(
      (sum, order) =>
        sum + (order.volume - order.filled) * (type === 'buy' ? Number(order.price) : 1),
      0,
    )
    if ((this.held.get(coin) ?? 0) - inOrders < (type === 'buy' ? cost : size))
      return 'EOrder:Insufficient funds'
    const best = type === 'buy' ? this.ask : this.bid
    const crosses = best.volume > 0 && (type === 'buy' ? limit >= best.price : limit <= best.price)
    if (oflags.includes('post') && crosses) return 'EOrder:Post only order'
    const id = `O${String(++this.#count).padStart(5, '0')}`
    const order: FakeOrder = {
      id,
      clientId,
      type,
      price,
      volume: size,
      filled: 0,
      status: 'open',
      tif,
      trades: [],
      takenAt: this.#now(),
      oflags,
    }
    this.orders.set(id, order)
    if (crosses && !(tif === 'FOK' && best.volume < size))
      this.fill(id, Math.min(size, best.volume), best.price)
    if (order.status === 'open' && tif !== 'GTC') order.status = 'canceled'
    return { descr: { order: '' }, txid: [id] }
  }

  /** Fills a part of an order. */
  fill(id: string, volume: number, price?: number): void {
    const order = this.orders.get(id) as FakeOrder
    const at = price ?? Number(order.price)
    const tradeId = `T${String(++this.#count).padStart(5, '0')}`
    const [cost, sign] = [volume * at, order.type === 'buy' ? 1 : -1]
    const move = (coin: string, amount: number) =>
      this.held.set(coin, (this.held.get(coin) ?? 0) + amount)
    this.trades.set(tradeId, {
      ordertxid: id,
      pair: 'XXBTZUSD',
      time: this.#now() / 1000,
      type: order.type,
      ordertype: 'limit',
      price: `${at}`,
      cost: cost.toFixed(5),
      fee: (cost * FEE).toFixed(5),
      vol: volume.toFixed(8),
      maker: false,
    })
    order.trades.push(tradeId)
    order.filled += volume
    move('XXBT', sign * volume)
    move('ZUSD', -sign * cost - cost * FEE)
    if (order.filled >= order.volume - 1e-9) order.status = 'closed'
  }

  get only(): FakeOrder {
    if (this.orders.size !== 1) throw new Error(`${this.orders.size} orders`)
    return [...this.orders.values()][0] as FakeOrder
  }
}
