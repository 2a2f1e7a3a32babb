export type Side = 'buy' | 'sell'
export type TimeInForce = 'GTC' | 'IOC' | 'FOK'

/** An order as a caller wants it; amounts are integers of the coins' decimals. */
export interface Wish {
  side: Side
  /** Null: at whatever the market gives. */
  price: bigint | null
  /** Of the base coin; null where `spend` says how much. */
  volume: bigint | null
  /** Of the quote coin, of a market order: what is spent, or what is earned. */
  spend: bigint | null
  timeInForce: TimeInForce
  postOnly: boolean
  clientId: string | null
  userref: number | null
  /** What a buyer pays the fee in; a seller always pays it in the quote coin. */
  feeIn: 'base' | 'quote'
}

/** Why an order ended before it was filled. */
export type Ending = 'user' | 'unfilled' | 'own-order'

export interface Order extends Wish {
  id: string
  /** Rises with each order of a venue: of two at one price the lower is first. */
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

/** Why an order is refused; each venue has its own words. */
export type Refusal = 'funds' | 'post-only' | 'client-id' | 'orders-limit'

export class Refused extends Error {
  override readonly name = 'Refused'
  readonly refusal: Refusal

  constructor(refusal: Refusal) {
    super(refusal)
    this.refusal = refusal
  }
}
