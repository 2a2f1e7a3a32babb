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

/** Accounts at exchanges, orders and conversions there, and transfers to and from exchanges. */
export class Trading {
  readonly #client: RequestSender

  constructor(client: RequestSender) {
    this.#client = client
  }

  /** Lists the exchanges that can be linked, with their features. */
  async exchanges(): Promise<ExchangeInfo[]> {
    return (await this.#client.request<{ data: ExchangeInfo[] }>('GET', '/dac/v1/exchanges')).data
  }

  /**
   * Links an account at an exchange after testing its key.
   * @throws CustodyError `EXCHANGE_ACCOUNT_EXISTS` if it is already linked, for example because the
   *   response to an earlier call was lost
   */
  link(account: NewExchangeAccount): Promise<ExchangeAccount> {
    return this.#client.request('POST', '/dac/v1/exchange-accounts', account)
  }

  /** Lists the linked accounts of the sub-account. */
  accounts(filter: ExchangeAccountFilter = {}): Promise<Page<ExchangeAccount>> {
    return this.#client.request('GET', `/dac/v1/exchange-accounts${query(filter)}`)
  }

  /**
   * Reads a linked account with its balances at the exchange, in whole units of each asset.
   * @param id of the linked account
   */
  account(id: string): Promise<ExchangeAccountWithBalances> {
    return this.#client.request('GET', account(id))
  }

  /**
   * Tests whether the exchange accepts the key, and returns its permissions.
   * @param id of the linked account
   */
  test(id: string): Promise<ExchangeAccountTest> {
    return this.#client.request('POST', account(id, '/test'), {}, { repeatable: true })
  }

  /**
   * Changes the label or the key of a linked account, or whether coins may be withdrawn to own
   * wallets.
   * @param id of the linked account
   */
  change(id: string, change: ExchangeAccountChange): Promise<ExchangeAccount> {
    return this.#client.request('PATCH', account(id), change)
  }

  /**
   * Unlinks an account and deletes its key. The service rejects this while orders or transfers of
   * the account are pending.
   * @param id of the linked account
   * @throws CustodyError
   */
  unlink(id: string): Promise<{ id: string; deleted: true }> {
    return this.#client.request('DELETE', account(id), {})
  }

  /**
   * Lists the markets of an exchange with their steps of amount and price and their minimum order.
   * @param filter.base ticker of the base asset
   * @param filter.quote ticker of the quote asset
   */
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

  /** Returns the best bid, the best ask and the last price of a market. */
  ticker(exchange: string, market: string): Promise<Ticker> {
    return this.#client.request('GET', `/dac/v1/ticker${query({ exchange, market })}`)
  }

  /**
   * Returns the bids and asks of a market, the best first.
   * @param depth number of entries of each side; the service's default if absent
   */
  orderBook(exchange: string, market: string, depth?: number): Promise<OrderBook> {
    return this.#client.request('GET', `/dac/v1/orderbook${query({ exchange, market, depth })}`)
  }

  /**
   * Creates an order. Set `sequence_id`: then the client repeats a request whose response was lost,
   * and the order is created only once.
   * @param order `amount` in units of the base asset, `quote_amount` in units of the quote asset
   * @throws IdempotencyMismatch, CustodyError
   */
  async order(order: NewOrder, options: OnceOptions = {}): Promise<Order> {
    const body = decimals(order, 'amount', 'quote_amount', 'price')
    return this.#client.request('POST', '/dac/v1/orders', body, {
      repeatable: isGiven(order.sequence_id),
      ...options,
    })
  }

  /**
   * Reads an order with its fills.
   * @param id of the order
   */
  readOrder(id: string): Promise<OrderWithFills> {
    return this.#client.request('GET', order(id))
  }

  /** Lists orders, newest first. */
  orders(filter: OrderFilter = {}): Promise<Page<Order>> {
    return this.#client.request('GET', `/dac/v1/orders${query(filter)}`)
  }

  /** Iterates over all matching orders, newest first, and reads pages as needed. */
  eachOrder(filter: Omit<OrderFilter, 'page'> = {}): AsyncGenerator<Order> {
    return paginate((page) => this.orders({ ...filter, ...page }), filter.limit)
  }

  /**
   * Cancels an order. Amounts that are already filled stay filled.
   * @param id of the order
   */
  cancel(id: string): Promise<Order> {
    return this.#client.request('POST', order(id, '/cancel'), {}, { repeatable: true })
  }

  /**
   * Returns the deposit address of an exchange for an asset. To pay to it, call `createTransaction`
   * with `destination_type: 'EXCHANGE'` and this address, which your request signs. Compare it with
   * the exchange's own page before the first use, and whenever `changed` is true.
   * @param accountId of the linked account
   * @param asset ticker
   */
  depositAddress(accountId: string, asset: string): Promise<ExchangeAddress> {
    return this.#client.request(
      'GET',
      `${account(accountId, '/deposit-address')}${query({ asset })}`,
    )
  }

  /**
   * Withdraws from an exchange to a wallet of the sub-account. Set `sequence_id`, as for orders.
   * @param withdrawal `amount` in whole units of the asset
   * @throws IdempotencyMismatch, CustodyError
   */
  async withdraw(
    withdrawal: NewExchangeWithdrawal,
    options: OnceOptions = {},
  ): Promise<ExchangeTransfer> {
    const body = decimals(withdrawal, 'amount')
    const call = { repeatable: isGiven(withdrawal.sequence_id), ...options }
    return this.#client.request('POST', '/dac/v1/exchange-withdrawals', body, call)
  }

  /**
   * Reads a transfer to or from an exchange.
   * @param id of the transfer
   */
  transfer(id: string): Promise<ExchangeTransfer> {
    return this.#client.request('GET', `/dac/v1/exchange-transfers/${encodeURIComponent(id)}`)
  }

  /** Lists transfers to and from exchanges, newest first. */
  transfers(filter: ExchangeTransferFilter = {}): Promise<Page<ExchangeTransfer>> {
    return this.#client.request('GET', `/dac/v1/exchange-transfers${query(filter)}`)
  }

  /** Iterates over all matching transfers, newest first, and reads pages as needed. */
  eachTransfer(
    filter: Omit<ExchangeTransferFilter, 'page'> = {},
  ): AsyncGenerator<ExchangeTransfer> {
    return paginate((page) => this.transfers({ ...filter, ...page }), filter.limit)
  }

  /**
   * Quotes a conversion at the linked accounts' current prices. The quote is valid for ten seconds.
   * @param request `amount` in units of `from_asset`
   */
  async quote(request: ConversionRequest): Promise<Conversion> {
    return this.#client.request('POST', '/dac/v1/conversions/quote', decimals(request, 'amount'))
  }

  /**
   * Executes a quote once; without a quote, executes the conversion at the best current price.
   * @param request the quote's id, or the conversion with a `sequence_id` that makes it safe to
   *   repeat
   * @throws IdempotencyMismatch, CustodyError
   */
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

  /**
   * Reads a conversion.
   * @param id of the conversion
   */
  conversion(id: string): Promise<Conversion> {
    return this.#client.request('GET', `/dac/v1/conversions/${encodeURIComponent(id)}`)
  }
}
