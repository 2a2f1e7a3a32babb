/**
 * Types that all chain families share. Amounts are bigint in the smallest unit (satoshi, wei, …).
 * Byte strings are lowercase hex without 0x, except EVM addresses and hashes, which have it.
 */

import type { NetworkMode } from './mode.ts'

export type { ModeKind, NetworkMode } from './mode.ts'

/**
 * Name of a family: its folder, and its line in `list.ts`. The registry's tests check the data
 * against that list.
 */
export type FamilyName = string
export type Curve = 'secp256k1' | 'ed25519'

/** Non-hardened BIP32 indices below the workspace key: [sub-account, chain, index]. */
export type Path = readonly number[]

/**
 * State of a network or asset. `active`: new wallets and deposit addresses can be created.
 * `deprecated`: only if the operator allows it. `retired`: never. Existing funds can be withdrawn
 * in every state.
 */
export type Lifecycle = 'active' | 'deprecated' | 'retired'

/** Status of a network or an asset that is no longer `active`. */
export interface LifecycleStatus {
  state: Exclude<Lifecycle, 'active'>
  /** First day of this status, as YYYY-MM-DD. */
  since: string
  /** Reason, as a clause without a full stop, for messages and pages. */
  reason: string
}

/** One blockchain network in one mode, from data/registry.json. */
export interface Network {
  /** Code used by operators and in `network` fields, e.g. `BTC`. */
  code: string
  name: string
  family: FamilyName
  curve: Curve
  mode: NetworkMode
  /** Second element of every derivation path on this network; never reused for another network. */
  chain_index: number
  /** Ticker of the native coin. */
  native_asset: string
  fee_rate_unit: string
  /**
   * Number of blocks that make a transaction final, including its own; null: the chain's own
   * finality.
   */
  confirmations: number | null
  /** Usual time between two blocks in milliseconds; absent if blocks are produced on request. */
  block_ms?: number
  /**
   * Age of the newest block in seconds above which an endpoint is taken to be behind; absent: at any
   * age it is not.
   */
  stale_after_s?: number
  /** EVM: chain id of the network. */
  chain_id?: number
  /**
   * EVM roll-ups: the contract that returns the fee of publishing a transaction on the parent
   * chain.
   */
  l1_fee_oracle?: string
  /**
   * EVM: maximum gas of one transfer, where publishing on the parent chain is part of it; absent: a
   * million.
   */
  gas_most?: number
  /**
   * EVM: the network accepts only transactions with a gas price (type 0), whatever its nodes
   * report.
   */
  legacy_gas_price?: boolean
  /** EVM: minimum tip, in wei per gas, that the network's nodes accept by default; absent: 1. */
  min_tip?: string
  /** UTXO: parameters of the network. */
  utxo?: UtxoParams
  /** Stellar: network passphrase, to which signatures commit. */
  passphrase?: string
  /**
   * XRP Ledger: network id that a server reports. Cardano: network magic, which determines
   * addresses and is checked at endpoints.
   */
  network_id?: number
  /**
   * Cardano: the Unix time of slot 0, extrapolated from the first slot of one second; absent if
   * blocks are produced on request.
   */
  slot_zero?: number
  /** Maximum total cost beyond the amount, in the smallest native unit (decimal string). */
  fee_cap: string
  explorer_transaction_url?: string
  /** Hash of the first block; the endpoint is checked against it. */
  genesis?: string
  /** Blocks that distinguish chains with a common first block, in order of height. */
  checkpoints?: readonly Checkpoint[]
  /** Absent if the network is active. */
  status?: LifecycleStatus
}

/** Height and hash of a block. */
export interface Checkpoint {
  height: number
  hash: string
}

export interface UtxoParams {
  bech32_hrp: string | null
  p2pkh_version: number
  p2sh_version: number
  /** Output type of this network's own addresses. */
  script: 'p2wpkh' | 'p2pkh'
  dust: number
  min_fee_rate: number
  /**
   * Minimum fee rates by level, satoshi per vbyte as text. They are also used if the node has no
   * estimate.
   */
  fee_floors?: { low: string; medium: string; high: string }
  coinbase_maturity: number
  /**
   * Satoshi per vbyte of creating and spending an output, below which nodes consider it dust; 3 if
   * absent.
   */
  dust_rate?: number
  /**
   * Nodes with default options replace a waiting transaction by one with a higher fee (BIP125). If
   * false, transactions are built with final sequences.
   */
  replaceable: boolean
  /**
   * Bitcoin Cash: addresses are CashAddr with this prefix, and signatures use SIGHASH_FORKID over
   * the BIP143 digest.
   */
  cashaddr_prefix?: string
  /**
   * Highest verbosity that `getblock` supports; 2 if absent. At 1 each transaction is fetched
   * individually.
   */
  block_verbosity?: 1 | 2
  /** Litecoin: transactions may contain an extension-block part, which their ids do not cover. */
  extension_blocks?: boolean
  /** Dash: with a ChainLock a transaction is final at this many confirmations. */
  chainlock_confirmations?: number
  /**
   * Dash: a version of 3 or more may have a type in its upper half, and a payload after the lock
   * time (DIP-2).
   */
  special_transactions?: boolean
}

export interface Asset {
  /** Ticker, which every operation accepts as `asset`. */
  asset_name: string
  name: string
  ticker: string
  blockchain: string
  network: string
  family: FamilyName
  decimals: number
  type: 'native' | 'token'
  contract_address: string | null
  fee_asset: string
  /** Payments of the asset may carry an `address_tag`: a destination tag (XRP) or a memo (XLM). */
  takes_tag: boolean
  /**
   * Many addresses of the asset are complete only with their tag. A caller must pass a
   * destination's tag, or state that it has none.
   */
  requires_tag: boolean
  min_withdrawal: string
  /** Issuer of the token on this network, or operator of its bridge; null for native coins. */
  issuer: string | null
  /**
   * The token represents one that is locked on another network, so its value also depends on the
   * bridge.
   */
  bridged: boolean
  /** Status of the asset itself, or of its network. */
  status: Lifecycle
  /** First day of `status`, as YYYY-MM-DD; null while it is active. */
  status_since: string | null
  status_reason: string | null
}

/**
 * A transaction without signatures, as the platform builds it. Each signer node decodes it again.
 */
export interface UnsignedTransaction {
  network: string
  /**
   * UTXO: the transaction with empty scripts. EVM: the EIP-2718 envelope without signature.
   * Cardano: the body. Hex without 0x.
   */
  bytes: string
  /**
   * One per input or account that signs, in order. `previous` is hex. UTXO: the previous
   * transaction, of which only the part that its id covers is used, on the first input that spends
   * from it. Cardano: its body, on every input.
   */
  inputs: { path: number[]; previous?: string }[]
  /** UTXO and Cardano: index and path of the output that returns to the sender. */
  change?: { output: number; path: number[] }
}

export type TronResource = 'BANDWIDTH' | 'ENERGY'

/** Tron's Stake 2.0: action of a transaction that makes no payment. */
export interface TronAction {
  kind: 'freeze' | 'unfreeze' | 'withdraw' | 'delegate' | 'undelegate'
  resource: TronResource | null
  /** Staked TRX in sun; 0 for a withdrawal, which takes all that has matured. */
  amount: bigint
  /** Account to which the resource is lent, or from which it is reclaimed. */
  receiver: string | null
}

/**
 * Cardano: content of an output in addition to its lovelace. Tokens by unit (policy and name in
 * hex); size in bytes of a reference script, for which the spender pays.
 */
export interface UtxoTokens {
  assets: Record<string, string>
  script_bytes: number
}

/** Effects of a decoded transaction, in the same form for platform and nodes. */
export interface DecodedTransaction {
  network: string
  /** Ticker of the transferred asset. */
  asset: string
  /**
   * Payments to others, in output order. An allow-listed shape has exactly one, or none if it has
   * an `action`.
   */
  payments: { address: string; amount: bigint; tag: string | null }[]
  /** UTXO: value that returns to the sender on the change path; 0n if none. */
  change: {
    address: string
    amount: bigint
    /** Cardano: native tokens that return with the change, by unit. */
    assets?: Record<string, string>
  } | null
  /** Addresses whose keys must sign, in the order of `inputs`. */
  from: string[]
  /** Maximum cost of the transaction beyond `payments`, in the smallest native unit. */
  fee_max: bigint
  /**
   * Fee rate in the family's `fee_rate_unit`, as a decimal string (UTXO: actual; EVM:
   * maxFeePerGas).
   */
  fee_rate: string
  /**
   * Resources that only one transaction can use, so that two with a common one exclude each other:
   * `txid:vout` (UTXO, Cardano) or `address:nonce` (EVM); empty if the chain has none (Tron).
   */
  consumes: string[]
  /** Cardano: lovelace of the fee that does not depend on the size, decimal. */
  fee_constant?: string
  /**
   * The last ledger (XRP) or Unix second (Stellar, Tron) in which the transaction can be included,
   * or the first slot (Cardano) in which it no longer can; absent if there is no limit.
   */
  valid_until?: number
  /** Staking action on Tron. */
  action?: TronAction
  /** Nonce of EVM and other account-based chains. */
  nonce: bigint | null
  gas_limit: bigint | null
  max_fee_per_gas: bigint | null
  /** Size when signed: vbytes (UTXO) or bytes (Cardano), otherwise null. */
  vsize: number | null
}

/** Signing request of one input. secp256k1: a 32-byte digest; Ed25519: the whole message. */
export interface SigningItem {
  path: number[]
  publicKey: Uint8Array
  message: Uint8Array
}

/** 64 bytes r‖s (low-S) or R‖S; recoveryId 0..3 for secp256k1. */
export interface SignatureBytes {
  signature: Uint8Array
  recoveryId: number | null
}

export interface SignedTransaction {
  network: string
  raw: string
  hash: string
}

export type Validation =
  | { valid: true; address: string; address_tag: string | null }
  | {
      valid: false
      reason: string
      /** The invalid field, if it is not the address. */
      field?: 'address_tag'
    }

/** Returns the public key at a path below the workspace key. */
export type PublicKeyAt = (path: Path) => Uint8Array

/** An error of the chain layer. `code` is stable, and the message names the problem. */
/**
 * Why a payment cannot be made from a wallet's coins. Each caller handles all of them:
 * `INSUFFICIENT`: the coins do not cover it. `DUST`: the amount is below the minimum of an output.
 * `TOO_MANY_INPUTS`: it needs more coins than fit into one transaction.
 */
export type CoinRefusalCode = 'INSUFFICIENT' | 'DUST' | 'TOO_MANY_INPUTS'

export class ChainError extends Error {
  readonly code: string
  constructor(code: string, message: string) {
    super(message)
    this.name = 'ChainError'
    this.code = code
  }
}

/**
 * What one transaction can pay from given coins, in the smallest unit. `amount`: the largest amount, and
 * `fee` of its transaction; `least`: the smallest amount that the chain allows.
 */
export interface Payable {
  amount: bigint
  fee: bigint
  least: bigint
}

/**
 * A payment that cannot be made from the given coins. `most`: the largest amount that one transaction
 * can pay now, in the smallest unit (`TOO_MANY_INPUTS`; otherwise 0).
 */
export class CoinRefusal extends ChainError {
  declare readonly code: CoinRefusalCode
  readonly most: bigint
  constructor(code: CoinRefusalCode, message: string, most = 0n) {
    super(code, message)
    this.name = 'CoinRefusal'
    this.most = most
  }
}
