export type Side = 'buy' | 'sell'
export type TimeInForce = 'GTC' | 'IOC' | 'FOK'

/** Parameters of an order; amounts are integers with the coins' decimals. */
export interface OrderParams {
  side: Side
  /** Limit price; null for a market order. */
  price: bigint | null
  /** Volume in the base coin; null if `spend` determines it. */
  volume: bigint | null
  /** Amount of the quote coin that a market order spends or earns. */
  spend: bigint | null
  timeInForce: TimeInForce
  postOnly: boolean
  clientId: string | null
  userref: number | null
  /** Coin in which a buyer pays the fee; a seller always pays it in the quote coin. */
  feeIn: 'base' | 'quote'
}

/** Reason why an order ended before it was filled. */
export type Ending = 'user' | 'unfilled' | 'own-order'

export interface Order extends OrderParams {
  id: string
  /** Sequence number of the order at its venue; of two at one price the lower has priority. */
  number: number
  account: string
  market: string
  filled: bigint
  cost: bigint
  fee: bigint
  status: 'open' | 'filled' | 'cancelled'
  ending: Ending | null
  openedMs: number
  closedMs: number | null
  trades: string[]
}

/** One account's side of a fill. */
export interface Trade {
  id: string
  number: number
  order: string
  account: string
  market: string
  side: Side
  price: bigint
  volume: bigint
  cost: bigint
  fee: bigint
  feeCoin: string
  isMaker: boolean
  isLimit: boolean
  atMs: number
}

export interface Balance {
  total: bigint
  held: bigint
}

/** A customer of a venue. */
export interface Account {
  id: string
  number: number
  balances: Record<string, Balance>
  createdMs: number
}

/** Reason for rejecting an order; each venue has its own words for it. */
export type Refusal = 'funds' | 'post-only' | 'client-id' | 'orders-limit'

export class Refused extends Error {
  override readonly name = 'Refused'
  readonly refusal: Refusal

  constructor(refusal: Refusal) {
    super(refusal)
    this.refusal = refusal
  }
}
