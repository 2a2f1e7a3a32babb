/**
 * State of an invoice as returned by `GET /checkout/{inv_id}/state` and its stream. Amounts are
 * decimal texts.
 */
export interface CheckoutState {
  inv_id: string
  inv_status: 'Pending' | 'Processing' | 'Paid' | 'Expired' | 'Invalid'
  exception: null | 'late' | 'partial' | 'over'
  merchant: string
  memo: string | null
  order_id: string | null
  fiat: string | null
  fiat_amount: string | null
  /** Times are ISO 8601, in UTC. `now` is the server's clock at the time of the response. */
  created_at: string
  expiry: string
  now: string
  assets: Choice[]
  selected: Selected | null
  payments: Payment[]
  success_url: string | null
  failed_url: string | null
  cancelled: boolean
}

/** An asset with which the invoice can be paid. */
export interface Choice {
  asset: string
  ticker: string
  name: string
  network: string
  /** Display name, such as `Ethereum`. */
  network_name: string
  /** The asset's payments may carry a destination tag or memo. */
  takes_tag: boolean
  requires_tag: boolean
  crypto_amount: string
}

/** The selected asset. */
export interface Selected {
  asset: string
  ticker: string
  name: string
  network: string
  network_name: string
  address: string
  address_tag: string | null
  tag_name: null | 'destination tag' | 'memo'
  crypto_amount: string
  paid_amount: string
  due_amount: string
  /** Payment URI of the due amount; null if wallets have no common format. */
  payment_uri: string | null
  /** Units of `fiat` for one coin. */
  rate: string | null
  rate_at: string | null
}

export interface Payment {
  hash: string | null
  asset: string
  ticker: string
  amount: string
  status: 'seen' | 'detected' | 'confirmed' | 'held' | 'reverted' | 'dropped'
  confirmations: number
  required: number
  /** The payment counts towards the invoice. */
  counts: boolean
  seen_at: string
  explorer_url: string | null
}
