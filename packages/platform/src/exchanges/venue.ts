/**
 * All that the platform asks of one account at one exchange, in its own terms. Amounts and prices
 * are integers of {@link ../exchanges/units.ts} `VENUE_DECIMALS`; coins and markets have ccxt's
 * unified names (`BTC`, `BTC/USD`); times are milliseconds since the Unix Epoch. Whatever only asks
 * throws {@link VenueError}; what would change something answers what is known.
 */
export interface Venue {
  /** ccxt's name. */
  readonly exchange: string
  readonly traits: VenueTraits
  /** Whether the key works, and what it may do. */
  probe(): Promise<Permissions>
  balances(): Promise<Balance[]>
  /**
   * @param notAfter the request does not leave later than this: what was never sent by then never
   *   will be
   */
  place(order: NewOrder, notAfter: number): Promise<Placed>
  /** Asks for an order wherever the venue may have it. */
  find(ref: OrderRef): Promise<Found>
  /**
   * `asked`: it was taken, and `find` tells what came of it. `gone`: the venue has nothing open to
   * cancel.
   */
  cancel(ref: OrderRef): Promise<'asked' | 'gone'>
  fills(ref: OrderRef & { venueId: string }): Promise<Fill[]>
  depositAddress(coin: string, network: string): Promise<DepositAddress>
  deposits(coin: string, sinceMs: number): Promise<Transfer[]>
  /**
   * The name under which the venue knows an address that withdrawals may go to; null: it takes the
   * address itself.
   * @throws VenueError `missing` where it must be registered there first
   */
  withdrawalKey(
    coin: string,
    network: string,
    address: string,
    tag: string | null,
  ): Promise<string | null>
  withdraw(order: NewWithdrawal, notAfter: number): Promise<Placed>
  withdrawals(coin: string, sinceMs: number): Promise<Transfer[]>
}

/** What differs between venues, for those who plan and judge. */
export interface VenueTraits {
  /**
   * `tested`: orders, their look-up and their outcome are held to this venue's own codes. `none`:
   * an order's fate could not be asked.
   */
  orders: 'tested' | 'generic' | 'none'
  /**
   * An order that no list of the venue has was never taken, if it is asked between these times
   * after it was sent; null: no absence proves anything. `beforeMs` null: at any later time.
   */
  absence: { afterMs: number; beforeMs: number | null } | null
  /** Credentials beside key and secret. */
  passphrase: boolean
  /** Its secrets are base64, of which a signature is made. */
  secretIsBase64?: boolean
  postOnly: boolean
  timesInForce: readonly TimeInForce[]
  /** Whether a withdrawal names its client id, by which the venue refuses a second. */
  withdrawalId: boolean
}

export type Side = 'buy' | 'sell'
export type TimeInForce = 'GTC' | 'IOC' | 'FOK'

/** `null`: the venue does not tell. */
export interface Permissions {
  trade: boolean | null
  withdraw: boolean | null
  ip_restricted: boolean | null
}

/** `available` is what `total` holds beside what open orders hold. */
export interface Balance {
  coin: string
  available: bigint
  total: bigint
}

/**
 * A market as it was last read. Steps are the grids on which amounts and prices lie; null: the
 * venue names no bound.
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
  /** Shares in units, such as 0.0026; null: not told. */
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
/** Best first. */
export interface OrderBook {
  symbol: string
  bids: Level[]
  asks: Level[]
  at: number
}

/** A limit order: what is to be done at any price carries one that it may reach. */
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
 * `later`: provably not taken, and it may be tried again. `unknown`: it may or may not have been
 * taken.
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
 * An order as the venue tells it. `filled` null: its fills say. `fills` where the same answer had
 * them.
 */
export interface VenueOrder {
  venueId: string
  state: 'open' | 'closed' | 'cancelled' | 'rejected'
  filled: bigint | null
  fills: Fill[] | null
}
/**
 * `absent`: no list of the venue has it now; whether that proves anything `traits.absence` says.
 */
export type Found = { kind: 'found'; order: VenueOrder } | { kind: 'absent' }

/** `fee` above zero is paid; below, it is a rebate. */
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
/** `key`: the name under which the venue knows the address, where it wants one. */
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
 * Nothing usable was answered. `refused`: the venue takes the key no more, or the key may not do
 * this; `missing`: what was asked for is not there; `unsupported`: the venue does not offer it;
 * `unavailable`: it may answer later. The message holds no URL and no body.
 */
export class VenueError extends Error {
  readonly kind: 'refused' | 'missing' | 'unsupported' | 'unavailable'
  /** The venue's own code, where it named one. */
  readonly code: string | null
  constructor(kind: VenueError['kind'], message: string, code: string | null = null) {
    super(message)
    this.name = 'VenueError'
    this.kind = kind
    this.code = code
  }
}
