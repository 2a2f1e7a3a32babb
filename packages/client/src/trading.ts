import { paginate } from './paginate.ts'
import type { OnceOptions, RequestSender } from './transport.ts'
import type {
  Conversion,
  ConversionRequest,
  ExchangeAccount,
  ExchangeAccountChange,
  ExchangeAccountFilter,
  ExchangeAccountTest,
  ExchangeAccountWithBalances,
  ExchangeAddress,
  ExchangeInfo,
  ExchangeTransfer,
  ExchangeTransferFilter,
  Market,
  NewExchangeAccount,
  NewExchangeWithdrawal,
  NewOrder,
  Order,
  OrderBook,
  OrderFilter,
  OrderWithFills,
  Page,
  Ticker,
} from './types.ts'
import { decimals, isGiven, query } from './wire.ts'

const account = (id: string, action = ''): string =>
  `/dac/v1/exchange-accounts/${encodeURIComponent(id)}${action}`
const order = (id: string, action = ''): string =>
  `/dac/v1/orders/${encodeURIComponent(id)}${action}`

/** Accounts at exchanges, orders and conversions there, and coins that go there and come back. */
export class Trading {
  readonly #client: RequestSender

  constructor(client: RequestSender) {
    this.#client = client
  }

  async exchanges(): Promise<ExchangeInfo[]> {
    return (await this.#client.request<{ data: ExchangeInfo[] }>('GET', '/dac/v1/exchanges')).data
  }

  /**
   * The key is tried first. Linked already, because an answer was lost: `EXCHANGE_ACCOUNT_EXISTS`.
   */
  link(account: NewExchangeAccount): Promise<ExchangeAccount> {
    return this.#client.request('POST', '/dac/v1/exchange-accounts', account)
  }

  accounts(filter: ExchangeAccountFilter = {}): Promise<Page<ExchangeAccount>> {
    return this.#client.request('GET', `/dac/v1/exchange-accounts${query(filter)}`)
  }

  account(id: string): Promise<ExchangeAccountWithBalances> {
    return this.#client.request('GET', account(id))
  }

  /** Asks the exchange whether the key works, and what it may do. */
  test(id: string): Promise<ExchangeAccountTest> {
    return this.#client.request('POST', account(id, '/test'), {}, { repeatable: true })
  }

  change(id: string, change: ExchangeAccountChange): Promise<ExchangeAccount> {
    return this.#client.request('PATCH', account(id), change)
  }

  unlink(id: string): Promise<{ id: string; deleted: true }> {
    return this.#client.request('DELETE', account(id))
  }

  async markets(
    exchange: string,
    filter: { base?: string; quote?: string } = {},
  ): Promise<Market[]> {
    return (
      await this.#client.request<{ data: Market[] }>(
        'GET',
        `/dac/v1/markets${query({ exchange, ...filter })}`,
      )
    ).data
  }

  ticker(exchange: string, market: string): Promise<Ticker> {
    return this.#client.request('GET', `/dac/v1/ticker${query({ exchange, market })}`)
  }

  orderBook(exchange: string, market: string, depth?: number): Promise<OrderBook> {
    return this.#client.request('GET', `/dac/v1/orderbook${query({ exchange, market, depth })}`)
  }

  /**
   * Give a `sequence_id`: then an answer that was lost is asked for again, and the order is made
   * once.
   */
  async order(order: NewOrder, options: OnceOptions = {}): Promise<Order> {
    const body = decimals(order, 'amount', 'quote_amount', 'price')
    return this.#client.request('POST', '/dac/v1/orders', body, {
      repeatable: isGiven(order.sequence_id),
      ...options,
    })
  }

  readOrder(id: string): Promise<OrderWithFills> {
    return this.#client.request('GET', order(id))
  }

  /** Newest first. */
  orders(filter: OrderFilter = {}): Promise<Page<Order>> {
    return this.#client.request('GET', `/dac/v1/orders${query(filter)}`)
  }

  eachOrder(filter: Omit<OrderFilter, 'page'> = {}): AsyncGenerator<Order> {
    return paginate((page) => this.orders({ ...filter, ...page }), filter.limit)
  }

  /** What was filled by then stays filled. */
  cancel(id: string): Promise<Order> {
    return this.#client.request('POST', order(id, '/cancel'), {}, { repeatable: true })
  }

  /**
   * Where an exchange takes an asset. A transfer there is `createTransaction` with
   * `destination_type: 'EXCHANGE'` and this address, which you sign: hold it against the exchange's
   * own page the first time, and when `changed` says that it is another.
   */
  depositAddress(accountId: string, asset: string): Promise<ExchangeAddress> {
    return this.#client.request(
      'GET',
      `${account(accountId, '/deposit-address')}${query({ asset })}`,
    )
  }

  /** Brings coins to a wallet of the sub-account. Give a `sequence_id`, as with orders. */
  async withdraw(
    withdrawal: NewExchangeWithdrawal,
    options: OnceOptions = {},
  ): Promise<ExchangeTransfer> {
    const body = decimals(withdrawal, 'amount')
    const call = { repeatable: isGiven(withdrawal.sequence_id), ...options }
    return this.#client.request('POST', '/dac/v1/exchange-withdrawals', body, call)
  }

  transfer(id: string): Promise<ExchangeTransfer> {
    return this.#client.request('GET', `/dac/v1/exchange-transfers/${encodeURIComponent(id)}`)
  }

  /** Coins to and from exchanges, newest first. */
  transfers(filter: ExchangeTransferFilter = {}): Promise<Page<ExchangeTransfer>> {
    return this.#client.request('GET', `/dac/v1/exchange-transfers${query(filter)}`)
  }

  eachTransfer(
    filter: Omit<ExchangeTransferFilter, 'page'> = {},
  ): AsyncGenerator<ExchangeTransfer> {
    return paginate((page) => this.transfers({ ...filter, ...page }), filter.limit)
  }

  /** What the linked accounts would make of an amount now; good for ten seconds. */
  async quote(request: ConversionRequest): Promise<Conversion> {
    return this.#client.request('POST', '/dac/v1/conversions/quote', decimals(request, 'amount'))
  }

  /** Does what was quoted, once; or, without a quote, the best of now. */
  async convert(
    request: { quote: string } | (ConversionRequest & { sequence_id?: string }),
    options: OnceOptions = {},
  ): Promise<Conversion> {
    if ('quote' in request)
      return this.#client.request('POST', '/dac/v1/conversions', request, {
        repeatable: true,
        ...options,
      })
    const body = decimals(request, 'amount')
    return this.#client.request('POST', '/dac/v1/conversions', body, {
      repeatable: isGiven(request.sequence_id),
      ...options,
    })
  }

  conversion(id: string): Promise<Conversion> {
    return this.#client.request('GET', `/dac/v1/conversions/${encodeURIComponent(id)}`)
  }
}
