// Responses of a Tron node over HTTP, limited to the fields that are read here. Absent numbers are
// zero.

/** Result of a call that was executed without a failure. */
export const SUCCESS = 'SUCCESS'

/** An exact integer: values beyond 2^53 are bigint. */
export type Int = number | bigint
export interface Header {
  number?: number
  parentHash: string
  timestamp?: number
  txTrieRoot?: string
}
export interface Block {
  blockID?: string
  block_header?: { raw_data: Header }
  transactions?: Transaction[]
}
export interface Transaction {
  txID: string
  ret?: { contractRet?: string }[]
  raw_data: {
    contract: { type: string; parameter?: { value?: CallValue | null } }[]
  }
}
/** Value of a transfer or a contract call. Contracts of other types have other fields. */
interface CallValue {
  owner_address?: string
  to_address?: string
  amount?: Int
  contract_address?: string
  data?: string
}
export interface Log {
  address: string
  topics?: string[]
  data?: string
}
export interface Info {
  id?: string
  fee?: Int
  blockNumber?: number
  blockTimeStamp?: number
  withdraw_expire_amount?: Int
  result?: string
  receipt?: { result?: string }
  log?: Log[]
  /** Only at nodes that store them (`vm.saveInternalTx`). */
  internal_transactions?: unknown
}
export interface Account {
  address?: string
  balance?: Int
  frozenV2?: { type?: string; amount?: Int }[]
  unfrozenV2?: { type?: string; unfreeze_amount?: Int; unfreeze_expire_time?: Int }[]
}
export interface Resources {
  freeNetUsed?: Int
  freeNetLimit?: Int
  NetUsed?: Int
  NetLimit?: Int
  EnergyUsed?: Int
  EnergyLimit?: Int
  TotalNetLimit?: Int
  TotalNetWeight?: Int
  TotalEnergyLimit?: Int
  TotalEnergyWeight?: Int
}
export interface ConstantCall {
  result?: { result?: boolean; code?: string; message?: string }
  energy_used?: Int
  constant_result?: string[]
  transaction?: { ret?: { ret?: string }[] }
}
