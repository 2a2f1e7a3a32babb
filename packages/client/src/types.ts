import type { FailureProof, Void } from './trust/proof.ts'

/** Exact decimal in an asset's native unit, e.g. `0.000000000000000001`. Never a double. */
export type Decimal = string
/** ISO 8601. */
export type Timestamp = string

export interface Asset {
  /** Ticker; what every operation takes as `asset`. */
  asset_name: string
  name: string
  ticker: string
  blockchain: string
  network: string
  family: string
  decimals: number
  type: 'native' | 'token'
  contract_address: string | null
  fee_asset: string
  requires_tag: boolean
  min_withdrawal: Decimal
  is_active: boolean
}

/** Where an address is below the workspace's key: `[sub-account, chain, index]`, not hardened. */
export type DerivationPath = number[]

/** `omnibus_address` is the wallet's first address, at `path`. */
export interface Wallet {
  id: string; asset: string; status: 'active' | 'inactive'; omnibus_address: string; path: DerivationPath; created_at: Timestamp
}
/** `balance` is what can be sent; `omnibus_balance` all that the wallet's addresses hold on chain. */
export interface WalletBalance extends Wallet { balance: Decimal; omnibus_balance: Decimal }

export interface Address {
  id: string; asset: string; address: string; address_tag: string | null; label: string | null
  payment_uri: string | null; path: DerivationPath; created_at: Timestamp
}
export interface AddressValidation { valid: boolean; reason?: string }

export interface NewTransaction {
  asset: string
  amount: Decimal
  destination_address: string
  /** `EXTERNAL` unless given; `EXCHANGE`: to the exchange account `destination_id`, at the address that the exchange has for it. */
  destination_type?: 'EXTERNAL' | 'EXCHANGE'
  destination_id?: string
  /** An exchange's address once more, where it is another than last time. */
  confirm_address?: string
  /** `INTERNAL` unless given. */
  source_type?: 'INTERNAL'
  /** Idempotency key, unique within the wallet. With it, and only with it, a lost answer is asked for again. */
  sequence_id?: string
  memo?: string
  address_tag?: string
  fee_rate?: Decimal
  fee_level?: 'low' | 'medium' | 'high'
}

export interface Transaction {
  id: string
  type: string
  /** Null until broadcast. */
  hash: string | null
  asset: string
  amount: Decimal
  /** Network fee in `fee_asset`: the estimate until confirmed, 0 where it failed before it reached a chain. */
  fee: Decimal
  fee_asset: string
  source_type: string
  source_id: string | null
  destination_type: string
  destination_id: string | null
  address_tag: string | null
  status: 'pending' | 'confirmed' | 'failed'
  sub_status: string
  confirmations: number
  memo: string | null
  sequence_id: string | null
  failure_reason: string | null
  /** What was asked to take its place; only of a transfer that is read by its id. */
  replacements?: Replacement[]
  /** Of a transfer that failed before it was paid: what the signer nodes sign of it. Believe `verifyFailed`, not this list. */
  voids?: Void[]
  /** With `trust`, of one that failed: whether the nodes prove it. Made by this client, never by the service. */
  failure_proof?: FailureProof
  /** USD value of an outgoing transfer, as of its creation. */
  amount_in_usd: Decimal | null
  /** In USD; of one that failed, what was charged all the same. */
  platform_fee: Decimal | null
  created_at: Timestamp
  updated_at: Timestamp
  confirmed_at: Timestamp | null
}

export interface Replacement {
  kind: 'speed-up' | 'cancel' | 'automatic'; state: 'pending' | 'done' | 'refused'; fee_rate: Decimal | null; fee_level: string | null
  reason: string | null; created_at: Timestamp
}

export interface TransactionFilter {
  asset?: string
  /** Unix seconds. */
  before?: number
  /** Unix seconds. */
  after?: number
  source_type?: string
  source_id?: string
  dest_type?: string
  dest_id?: string
  status?: string
  /** Platform id, or hash on the chain. */
  id?: string
  /** The idempotency key given at creation. */
  sequence_id?: string
  memo?: string
  type?: string
  page?: number
  limit?: number
}
export interface PageQuery { page?: number; limit?: number }
export interface Page<T> { data: T[]; page: number; limit: number; total: number }
export type TransactionPage = Page<Transaction>

/** In the unit of the chain family. */
export interface SpeedUp { fee_rate?: Decimal; fee_level?: 'low' | 'medium' | 'high' }

export interface GasTank {
  id: string | null; network: string; asset: string; address: string | null; balance: Decimal; threshold: Decimal
  status: 'ok' | 'low' | 'empty'
  /** Fuel of the tank's that transactions left at addresses. */
  float: Decimal
  /** The operator's limits; null: the network's own. */
  fee_cap: Decimal | null; max_gas_price: Decimal | null
}
export interface GasTankEntry {
  id: string; type: string; balance_change: Decimal; reserved_change: Decimal; float_change: Decimal; transaction_id: string | null;
  for_transaction_id: string | null; created_at: Timestamp
}

export interface FeeRates { asset: string; fee_rate_unit: string; low: Decimal; medium: Decimal; high: Decimal; updated_at: Timestamp }
export interface FeeEstimate {
  asset: string
  /** All that the transfer pays; `rent`, `activation` and `l1_fee` are parts of it. */
  fee: Decimal
  fee_rate: Decimal; fee_rate_unit: string; fee_asset: string; basis: 'wallet' | 'typical'
  /** What a receiver without an account costs. */
  rent?: Decimal; activation?: Decimal
  /** What a roll-up pays to the chain below. */
  l1_fee?: Decimal
}

export interface Price { asset: string; price_usd: Decimal; sources: string[]; updated_at: Timestamp; stale: boolean }

/** Amounts in USD. */
export interface PrepaidFee {
  balance: Decimal; reserved: Decimal; currency: 'USD'; status: 'ok' | 'low' | 'empty'; tier: string
  fees: { basis_points: number; percent: Decimal; minimum: Decimal; monthly: Decimal }; volume_30d: Decimal
}
export interface PrepaidEntry {
  id: string; type: 'reservation' | 'charge' | 'refund' | 'adjustment' | 'subscription'; amount: Decimal; balance_change: Decimal;
  transaction_id: string | null; created_at: Timestamp
}

export interface NewAmlSettings {
  provider: 'CHAINALYSIS' | 'ELLIPTIC' | 'TRM'; aml_token: string; aml_risk_levels: string; aml_deposit: boolean;
  aml_withdrawal: boolean
}
/** The token is masked. */
export interface AmlSettings {
  provider: string; aml_token: string; aml_risk_levels: string; aml_deposit: boolean; aml_withdrawal: boolean; updated_at: Timestamp
}
export interface FrozenAddress {
  asset: string; network: string; address: string; address_tag: string | null; source: string; risk_level: string;
  transaction_id: string; frozen_at: Timestamp; held: number
}
export interface UnfrozenAddress { asset: string; address: string; address_tag: string | null; unfrozen_at: Timestamp }

export interface NewStake { address: string; resource: 'ENERGY' | 'BANDWIDTH'; amount: Decimal; sequence_id?: string }
export interface Stake { id: string; status: 'pending' | 'confirmed' | 'failed'; hash: string | null }
export interface Staking {
  staked: { ENERGY: Decimal; BANDWIDTH: Decimal }; cooling: { amount: Decimal; release_at: Timestamp; confirmed: boolean }[];
  releasable: Decimal
}

export interface NewForwardRule {
  asset: string; min_amount: Decimal; destination_address: string; address_tag?: string; daily_cap: Decimal; expires_at: Timestamp
}
export interface ForwardRule {
  id: string; asset: string; status: 'pending' | 'active' | 'paused' | 'expired' | 'deleting' | 'deleted'
  min_amount: Decimal; daily_cap: Decimal; destination_address: string; address_tag: string | null
  expires_at: Timestamp; waiting: Decimal; reason: string | null; created_at: Timestamp; updated_at: Timestamp
}

export type InvoiceStatus = 'Pending' | 'Processing' | 'Paid' | 'Expired' | 'Invalid'
/** Either `fiat` and `fiat_amount`, or `asset` and `amount`. */
export interface NewInvoice {
  fiat?: string; fiat_amount?: Decimal; asset?: string; amount?: Decimal; assets?: string[]; memo?: string; order_id?: string
  payer?: { email?: string; name?: string }; webhook_url?: string; success_url?: string; failed_url?: string
  /** Seconds. */ expires_in?: number
  /** Percent that may be missing. */ tolerance?: Decimal
  sequence_id?: string
}
export interface InvoiceAmount { asset: string; amount: Decimal }
export interface InvoicePayment extends InvoiceAmount {
  /** Null while no block has held it. */
  transaction_id: string | null; hash: string
  status: 'seen' | 'detected' | 'confirmed' | 'held' | 'reverted' | 'dropped'; confirmations: number; required: number
  counts: boolean; note: 'other_asset' | 'late' | null; seen_at: Timestamp; explorer_url: string | null
}
export interface Invoice {
  inv_id: string; inv_status: InvoiceStatus; exception: 'late' | 'partial' | 'over' | null
  fiat: string | null; fiat_amount: Decimal | null; asset: string | null
  address: string | null; address_tag: string | null; path: number[] | null
  crypto_amount: Decimal | null; paid_amount: Decimal | null; due_amount: Decimal | null; payment_uri: string | null
  expiry: Timestamp; checkout_url: string
  assets: {
    asset: string; network: string; crypto_amount: Decimal; rate: Decimal | null; rate_at: Timestamp | null
    address: string | null; address_tag: string | null; path: number[] | null
  }[]
  payments: InvoicePayment[]
  refunds: (InvoiceAmount & { transaction_id: string; status: 'pending' | 'confirmed' | 'failed'; hash: string | null })[]
  refundable: InvoiceAmount[]; excess: InvoiceAmount[]
  memo: string | null; order_id: string | null; payer: { email: string | null; name: string | null } | null
  webhook_url: string | null; success_url: string | null; failed_url: string | null; tolerance: Decimal
  sequence_id: string | null; version: number; cancelled_at: Timestamp | null
  marked: { status: 'settled' | 'invalid'; reason: string; at: Timestamp } | null
  created_at: Timestamp; updated_at: Timestamp
}
/** `from` and `to` in Unix seconds. */
export interface InvoiceFilter extends PageQuery {
  status?: InvoiceStatus; exception?: 'late' | 'partial' | 'over'; order_id?: string; asset?: string; from?: number; to?: number
}
export interface InvoiceSettings {
  display_name: string | null; allowed_origins: string[]; confirmations: { from_usd: Decimal; confirmations: number }[]
  tolerance: Decimal; expires_in: number
}

export interface ExchangeInfo {
  exchange: string; name: string; support: 'tested' | 'generic' | 'read-only'; passphrase: boolean; features: Record<string, boolean>
}
export interface NewExchangeAccount {
  exchange: string; label: string; api_key: string; api_secret: string; passphrase?: string; allow_withdrawal?: boolean
}
/** `null` in `permissions`: the exchange does not tell. */
export interface ExchangeAccount {
  id: string; exchange: string; label: string; status: 'active' | 'failing'; reason: string | null; key_hint: string
  permissions: { trade: boolean | null; withdraw: boolean | null; ip_restricted: boolean | null }; allow_withdrawal: boolean
  warnings: string[]; checked_at: Timestamp; difference: { asset: string; ledger: Decimal; venue: Decimal; difference: Decimal }[]
  created_at: Timestamp; updated_at: Timestamp
}
export interface ExchangeAccountWithBalances extends ExchangeAccount {
  balances: { asset: string; available: Decimal; total: Decimal; usd: Decimal | null }[]; balances_at: Timestamp; balances_age_ms: number
}
export interface Market {
  market: string; base: string; quote: string; active: boolean; amount_step: Decimal; price_step: Decimal; min_amount: Decimal | null
  max_amount: Decimal | null; min_cost: Decimal | null; maker_fee: Decimal | null; taker_fee: Decimal | null
}
export interface Ticker { market: string; bid: Decimal | null; ask: Decimal | null; last: Decimal | null; at: Timestamp }
export interface OrderBook {
  market: string; bids: { price: Decimal; amount: Decimal }[]; asks: { price: Decimal; amount: Decimal }[]; at: Timestamp
}
/** A limit order has a `price`; a market order may have `max_slippage_bps`. Either `amount` or `quote_amount`. */
export interface NewOrder {
  exchange_account: string; market: string; side: 'buy' | 'sell'; type: 'market' | 'limit'; amount?: Decimal; quote_amount?: Decimal
  price?: Decimal; time_in_force?: 'GTC' | 'IOC' | 'FOK'; post_only?: boolean; max_slippage_bps?: number; sequence_id?: string
}
export type OrderStatus = 'open' | 'partially_filled' | 'filled' | 'cancelled' | 'rejected' | 'unknown'
export interface Order {
  id: string; exchange_account: string; exchange: string; market: string; side: 'buy' | 'sell'; type: 'market' | 'limit'
  status: OrderStatus; sub_status: 'NEW' | 'SENDING' | 'ASKING' | 'WORKING' | 'ENDED'; amount: Decimal; quote_amount: Decimal | null
  price: Decimal | null; protection_price: Decimal | null; time_in_force: 'GTC' | 'IOC' | 'FOK'; post_only: boolean
  max_slippage_bps: number | null; filled: Decimal; remaining: Decimal; average_price: Decimal | null; cost: Decimal
  fees: { asset: string; amount: Decimal }[]; reason: string | null; client_order_id: string; exchange_order_id: string | null
  platform_fee: Decimal; cancel_requested: boolean; sequence_id: string | null; version: number
  created_at: Timestamp; updated_at: Timestamp
}
export interface OrderWithFills extends Order {
  fills: {
    id: string; price: Decimal; amount: Decimal; cost: Decimal; fee: Decimal; fee_asset: string; maker: boolean | null; at: Timestamp
  }[]
}
export interface ExchangeAddress {
  asset: string; network: string; address: string; address_tag: string | null
  /** Another than the last transfer went to: `confirm_address` must name it. */
  changed: boolean
  previous: { address: string; address_tag: string | null } | null
}
/** `sub_status` MOVING: on the chain, or about to be. */
export interface ExchangeTransfer {
  id: string; exchange_account: string; exchange: string; direction: 'to_exchange' | 'from_exchange'; asset: string; amount: Decimal
  credited: Decimal | null; fee: Decimal | null; address: string; address_tag: string | null
  status: 'pending' | 'completed' | 'failed' | 'unknown'
  sub_status: 'NEW' | 'SENDING' | 'ASKING' | 'WITHDRAWING' | 'MOVING' | 'DONE' | 'FAILED'
  transaction_id: string | null; exchange_transfer_id: string | null; hash: string | null; reason: string | null; overdue: boolean
  sequence_id: string | null; version: number; created_at: Timestamp; updated_at: Timestamp
}
export interface ExchangeTransferFilter extends PageQuery {
  exchange_account?: string; asset?: string; direction?: ExchangeTransfer['direction']; status?: ExchangeTransfer['status']
  transaction_id?: string
}
/** To an address of the wallet's own: its first, unless one is named. */
export interface NewExchangeWithdrawal {
  exchange_account: string; asset: string; amount: Decimal; address?: string; address_tag?: string; sequence_id?: string
}
/** `amount` of `from_asset`; of all linked accounts, unless some are named. */
export interface ConversionRequest { from_asset: string; to_asset: string; amount: Decimal; accounts?: string[] }
export interface Conversion {
  id: string; status: 'quoted' | 'expired' | 'ordered'; from_asset: string; to_asset: string; amount: Decimal; receive: Decimal
  price: Decimal | null; exchange_account: string; exchange: string; market: string; side: 'buy' | 'sell'; order_amount: Decimal
  limit_price: Decimal; expires_at: Timestamp
  others: { exchange_account: string; exchange: string; receive: Decimal | null; reason: string | null }[]
  order: Order | null; created_at: Timestamp
}
export interface OrderFilter extends PageQuery {
  exchange_account?: string; exchange?: string; market?: string; side?: 'buy' | 'sell'; type?: 'market' | 'limit'; status?: OrderStatus
  id?: string; sequence_id?: string; before?: number; after?: number
}
