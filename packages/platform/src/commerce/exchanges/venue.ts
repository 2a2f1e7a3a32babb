/**
 * All operations of the platform on one account at one exchange, in the platform's terms. Amounts
 * and prices are integers of {@link ../exchanges/units.ts} `VENUE_DECIMALS`; coins and markets have
 * ccxt's unified names (`BTC`, `BTC/USD`); times are milliseconds since the Unix Epoch. Reads throw
 * {@link VenueError}; operations that change something return what is certain about their outcome.
 */
export interface Venue {
  /** ccxt's name of the exchange. */
  readonly exchange: string
  readonly traits: VenueTraits
  /** Returns whether the key works, and its permissions. */
  probe(): Promise<Permissions>
  /** Whether the exchange has a call that returns the account's ID. */
  readonly reportsAccountId: boolean
  /**
   * Returns the exchange's own ID of the account that the key belongs to, which is the same for all
   * keys of the account; null if the exchange reports none.
   */
  accountId(): Promise<string | null>
  balances(): Promise<Balance[]>
  /**
   * Places an order.
   * @param notAfter deadline for sending; a request that was not sent by then will never be sent
   */
  place(order: NewOrder, notAfter: number): Promise<Placed>
  /** Queries an order in every list in which the exchange may have it. */
  find(ref: OrderRef): Promise<OrderLookup>
  /**
   * Cancels an order. `asked`: the exchange accepted the request, and `find` returns the outcome.
   * `gone`: the exchange has no such open order.
   */
  cancel(ref: OrderRef): Promise<'asked' | 'gone'>
  fills(ref: OrderRef & { venueId: string }): Promise<Fill[]>
  depositAddress(coin: string, network: string): Promise<DepositAddress>
  deposits(coin: string, sinceMs: number): Promise<Transfer[]>
  /**
   * Returns the exchange's name of a registered withdrawal address; null: the exchange accepts the
   * address itself.
   * @throws VenueError `missing` if the address must be registered at the exchange first
   */
  withdrawalKey(
    coin: string,
    network: string,
    address: string,
    tag: string | null,
  ): Promise<string | null>
  /**
   * Checks that the account may withdraw without more information than a {@link NewWithdrawal} has.
   * @throws VenueError `unsupported` if the exchange requires more
   */
  assertWithdrawable(): Promise<void>
  withdraw(order: NewWithdrawal, notAfter: number): Promise<Placed>
  withdrawals(coin: string, sinceMs: number): Promise<Transfer[]>
}

/** Differences between exchanges that planning and evaluation depend on. */
export interface VenueTraits {
  /**
   * Support of orders. `tested`: orders, their queries and their outcomes were tested with this
   * exchange's own error codes. `none`: the outcome of an order could not be queried.
   */
  orders: 'tested' | 'generic' | 'none'
  /**
   * An order that is in none of the exchange's lists was never accepted, if it is queried between
   * these times after it was sent; null: a missing order proves nothing. `beforeMs` null: at any
   * later time.
   */
  absence: { afterMs: number; beforeMs: number | null } | null
  /** Whether the credentials include a passphrase. */
  passphrase: boolean
  /** Whether its secrets are base64, which is decoded to sign requests. */
  secretIsBase64?: boolean
  postOnly: boolean
  timesInForce: readonly TimeInForce[]
  /** Whether a withdrawal has a client ID, by which the exchange rejects a duplicate. */
  withdrawalId: boolean
}

export type Side = 'buy' | 'sell'
export type TimeInForce = 'GTC' | 'IOC' | 'FOK'

/** Permissions of a key. `null`: the exchange does not report it. */
export interface Permissions {
  trade: boolean | null
  withdraw: boolean | null
  ip_restricted: boolean | null
}

/** Balance of one coin. `available` is the part of `total` that open orders do not reserve. */
export interface Balance {
  coin: string
  available: bigint
  total: bigint
}

/**
 * A market as it was last read. Steps are the multiples that amounts and prices must have; null:
 * the exchange states no bound.
 */
export interface Market {
  symbol: string
  base: string
  quote: string
  active: boolean
  amountStep: bigint
  priceStep: bigint
  amountMin: bigint | null
  amountMax: bigint | null
  costMin: bigint | null
  /**
   * Fees as fractions of the amount, as integers with `VENUE_DECIMALS` decimals (0.0026 is 26 ×
   * 10¹⁴); null: unknown.
   */
  makerFee: bigint | null
  takerFee: bigint | null
}

export interface Ticker {
  symbol: string
  bid: bigint | null
  ask: bigint | null
  last: bigint | null
  at: number
}
export interface Level {
  price: bigint
  amount: bigint
}
/** An order book, best price first. */
export interface OrderBook {
  symbol: string
  bids: Level[]
  asks: Level[]
  at: number
}

/** A limit order. A market order has a limit too, the worst acceptable price. */
export interface NewOrder {
  clientId: string
  symbol: string
  side: Side
  amount: bigint
  price: bigint
  timeInForce: TimeInForce
  postOnly: boolean
}

/**
 * Result of placing an order. `later`: certainly not accepted, and may be tried again. `unknown`:
 * may or may not have been accepted.
 */
export type Placed =
  | { kind: 'accepted'; venueId: string | null }
  | { kind: 'refused'; code: string }
  | { kind: 'later'; code: string }
  | { kind: 'unknown'; reason: string }

export interface OrderRef {
  clientId: string
  venueId: string | null
  symbol: string
  sentAt: number
}

/**
 * An order as the exchange reports it. `filled` null: the amount follows from its fills. `fills`:
 * present if the same response contained them.
 */
export interface VenueOrder {
  venueId: string
  state: 'open' | 'closed' | 'cancelled' | 'rejected'
  filled: bigint | null
  fills: Fill[] | null
}
/**
 * Result of querying an order. `absent`: the order is in none of the exchange's lists now;
 * `traits.absence` states whether that proves anything.
 */
export type OrderLookup = { kind: 'found'; order: VenueOrder } | { kind: 'absent' }

/** One fill of an order. A positive `fee` was paid; a negative one is a rebate. */
export interface Fill {
  tradeId: string
  price: bigint
  amount: bigint
  cost: bigint
  fee: bigint
  feeCoin: string
  maker: boolean | null
  at: number
}

export interface DepositAddress {
  address: string
  tag: string | null
  network: string
}
/**
 * A withdrawal to request. `key`: the exchange's name of the registered address, if it requires
 * one.
 */
export interface NewWithdrawal {
  clientId: string
  coin: string
  network: string
  address: string
  tag: string | null
  amount: bigint
  key: string | null
}
export interface Transfer {
  venueId: string
  clientId: string | null
  coin: string
  network: string | null
  amount: bigint
  fee: bigint | null
  address: string | null
  tag: string | null
  hash: string | null
  status: 'pending' | 'done' | 'failed' | 'unknown'
  at: number
}

/**
 * The exchange returned no usable result. `refused`: it does not accept the key any more, or the
 * key lacks the permission; `missing`: the requested object does not exist; `unsupported`: the
 * exchange does not offer the operation; `unavailable`: it may respond later. The message contains
 * no URL and no body.
 */
export class VenueError extends Error {
  readonly kind: 'refused' | 'missing' | 'unsupported' | 'unavailable'
  /** The exchange's own error code, if it returned one. */
  readonly code: string | null
  constructor(kind: VenueError['kind'], message: string, code: string | null = null) {
    super(message)
    this.name = 'VenueError'
    this.kind = kind
    this.code = code
  }
}
