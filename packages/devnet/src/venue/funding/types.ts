/** A coin on a network, as named in the asset registry, with the venue's limits for transfers. */
export interface Route {
  coin: string
  network: string
  /** Asset name in the registry. */
  asset: string
  /** Decimals of the asset on the chain. */
  chainDecimals: number
  /** Fee of a withdrawal, in the coin's decimals. */
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

/** `paying`: the payment may have been made, but its hash is not stored yet. */
export type WithdrawalStatus = 'initial' | 'paying' | 'pending' | 'success' | 'failed' | 'cancelled'

export interface Withdrawal {
  id: string
  number: number
  account: string
  coin: string
  network: string
  address: string
  tag: string | null
  /** Amount that the receiver gets. */
  amount: bigint
  fee: bigint
  /** Id that the caller chose. */
  clientId: string | null
  /** Name under which the address is registered, if the venue uses names. */
  addressName: string | null
  status: WithdrawalStatus
  reason: string | null
  hash: string | null
  /** Height of the chain before the payment. */
  fromHeight: number | null
  atMs: number
  changedMs: number
}

/** An address that an account's holder has registered for withdrawals. */
export interface KnownAddress {
  account: string
  name: string
  coin: string
  network: string
  address: string
  tag: string | null
}
