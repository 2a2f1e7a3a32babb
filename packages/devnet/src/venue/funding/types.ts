/** A coin on a network, as the asset registry names it, and what a venue says of moving it. */
export interface Route {
  coin: string
  network: string
  /** The registry's name of the asset. */
  asset: string
  /** Of the asset on the chain. */
  chainDecimals: number
  /** What a withdrawal costs, in the coin's decimals. */
  fee: bigint
  minimum: bigint
  confirmations: number
}

export interface DepositAddress {
  account: string
  network: string
  address: string
  tag: string | null
  createdMs: number
}

export interface Deposit {
  id: string
  account: string
  coin: string
  network: string
  address: string
  tag: string | null
  amount: bigint
  hash: string
  height: number
  confirmations: number
  isCredited: boolean
  atMs: number
}

/** `paying`: the payment may have been made, and its hash is not written down yet. */
export type WithdrawalStatus = 'initial' | 'paying' | 'pending' | 'success' | 'failed' | 'cancelled'

export interface Withdrawal {
  id: string
  number: number
  account: string
  coin: string
  network: string
  address: string
  tag: string | null
  /** What arrives. */
  amount: bigint
  fee: bigint
  /** Of the caller. */
  clientId: string | null
  /** The name under which the address is registered, where the venue knows such. */
  addressName: string | null
  status: WithdrawalStatus
  reason: string | null
  hash: string | null
  /** The chain's height before it was paid. */
  fromHeight: number | null
  atMs: number
  changedMs: number
}

/** An address that the holder of an account has registered for withdrawals. */
export interface KnownAddress {
  account: string
  name: string
  coin: string
  network: string
  address: string
  tag: string | null
}
