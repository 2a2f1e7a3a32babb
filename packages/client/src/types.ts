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

export interface Wallet { id: string; asset: string; status: 'active' | 'inactive'; created_at: Timestamp }
/** `balance` is what can be sent; `omnibus_balance` all that the wallet's addresses hold on chain. */
export interface WalletBalance extends Wallet { balance: Decimal; omnibus_balance: Decimal }

export interface Address { id: string; asset: string; address: string; address_tag: string | null; label: string | null; created_at: Timestamp }
export interface AddressValidation { valid: boolean; reason?: string }

export interface NewTransaction {
  asset: string
  amount: Decimal
  destination_address: string
  /** `EXTERNAL` unless given. */
  destination_type?: 'EXTERNAL'
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
  /** Network fee in `fee_asset`; the estimate until confirmed. */
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
  /** USD value and platform fee of an outgoing transfer, as of its creation. */
  amount_in_usd: Decimal | null
  platform_fee: Decimal | null
  created_at: Timestamp
  updated_at: Timestamp
  confirmed_at: Timestamp | null
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
  id?: string
  memo?: string
  type?: string
  page?: number
  limit?: number
}
export interface TransactionPage { data: Transaction[]; page: number; limit: number; total: number }

export interface GasTank { id: string | null; network: string; asset: string; address: string | null; balance: Decimal; threshold: Decimal; status: 'ok' | 'low' | 'empty' }
