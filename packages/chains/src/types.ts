/**
 * The words every chain family shares. Amounts are bigint in the smallest unit (satoshi, wei, …);
 * byte strings travel as lowercase hex without 0x, except EVM addresses and hashes, which carry it.
 */

export type NetworkMode = 'local' | 'mainnet'
/**
 * What a family is called: its folder, and its line in `list.ts`. The registry's tests hold the
 * data to that list.
 */
export type FamilyName = string
export type Curve = 'secp256k1' | 'ed25519'

/** Non-hardened BIP32 indices below the workspace key: [sub-account, chain, index]. */
export type Path = readonly number[]

/**
 * Whether new wallets and deposit addresses are made. `deprecated`: only where the operator allows
 * it. `retired`: never. What is held can leave in every state.
 */
export type Lifecycle = 'active' | 'deprecated' | 'retired'

/** Why a network or an asset is no longer `active`. */
export interface LifecycleStatus {
  state: Exclude<Lifecycle, 'active'>
  /** First day, as YYYY-MM-DD. */
  since: string
  /** A clause without a full stop, for messages and pages. */
  reason: string
}

/** One blockchain network in one mode (local or mainnet), from data/registry.json. */
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
   * Blocks on top of and including the first that make a transaction final; null: the chain's own
   * finality.
   */
  confirmations: number | null
  /** The usual time between two blocks, milliseconds; absent where blocks come on command. */
  block_ms?: number
  /** EVM only. */
  chain_id?: number
  /**
   * EVM roll-ups: the contract that names the fee of publishing a transaction on the chain below.
   */
  l1_fee_oracle?: string
  /**
   * EVM: the most gas of one transfer, where publishing on the chain below is part of it; absent: a
   * million.
   */
  gas_most?: number
  /**
   * EVM: the network takes only transactions with a gas price (type 0), whatever its nodes answer.
   */
  legacy_gas_price?: boolean
  /** UTXO only. */
  utxo?: UtxoParams
  /** Stellar: signatures commit to it. */
  passphrase?: string
  /**
   * XRP Ledger: what a server calls its network. Cardano: the network magic, of which addresses and
   * endpoints follow.
   */
  network_id?: number
  /**
   * Cardano: the Unix time of slot 0, counted back from the first slot of one second; absent where
   * blocks come on command.
   */
  slot_zero?: number
  /**
   * The most that all parts beyond the amount may cost, in the smallest native unit (decimal
   * string).
   */
  fee_cap: string
  explorer_transaction_url?: string
  /** Hash of the first block; the endpoint is checked against it. */
  genesis?: string
  /** Blocks by which chains with a common first block are told apart, by rising height. */
  checkpoints?: readonly Checkpoint[]
  /** Absent: active. */
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
  /** Output types addresses of this network are generated as. */
  script: 'p2wpkh' | 'p2pkh'
  dust: number
  min_fee_rate: number
  /**
   * Least fee rates by level, satoshi per vbyte as text: they also count where the node has no
   * estimate.
   */
  fee_floors?: { low: string; medium: string; high: string }
  coinbase_maturity: number
  /**
   * Satoshi per vbyte of creating and spending an output, below which nodes call it dust; 3 where
   * it is left out.
   */
  dust_rate?: number
  /**
   * Nodes replace a waiting transaction by a dearer one (BIP125). Without it sequences are final.
   */
  replaceable: boolean
  /**
   * Bitcoin Cash: addresses are CashAddr with this prefix, signatures carry SIGHASH_FORKID over the
   * BIP143 digest.
   */
  cashaddr_prefix?: string
  /**
   * What `getblock` understands at most; 2 where it is left out. At 1 each transaction is fetched
   * by itself.
   */
  block_verbosity?: 1 | 2
  /**
   * Litecoin: transactions may carry a part of its extension blocks, which their ids do not cover.
   */
  extension_blocks?: boolean
  /** Dash: with a ChainLock a transaction is final at this many confirmations. */
  chainlock_confirmations?: number
  /**
   * Dash: a version of 3 or more may have a type in its upper half, and a payload behind the lock
   * time (DIP-2).
   */
  special_transactions?: boolean
}

export interface Asset {
  /** Ticker; what every operation takes as `asset`. */
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
   * Many of its addresses are complete only with their tag: whoever enters a destination gives the
   * tag, or states that it has none.
   */
  requires_tag: boolean
  min_withdrawal: string
  /** Who issues the token on this network, or whose bridge does; null for native coins. */
  issuer: string | null
  /**
   * The token stands for one that is locked on another network, so that its value also depends on
   * the bridge.
   */
  bridged: boolean
  /** Of the asset itself, or of its network. */
  status: Lifecycle
  /** Day from which `status` holds, as YYYY-MM-DD; null while it is active. */
  status_since: string | null
  status_reason: string | null
}

/** A transaction without signatures, as the platform builds it and each node decodes it again. */
export interface UnsignedTransaction {
  network: string
  /**
   * UTXO: the transaction with empty scripts. EVM: the EIP-2718 envelope without signature.
   * Cardano: the body. Hex without 0x.
   */
  bytes: string
  /**
   * One per input or account that signs, in order. `previous`, in hex: the previous transaction, of
   * which only what its id covers counts, on the first input that spends from it (UTXO), or its
   * body on every input (Cardano).
   */
  inputs: { path: number[]; previous?: string }[]
  /** UTXO and Cardano: index and path of the output that returns to the sender. */
  change?: { output: number; path: number[] }
}

export type TronResource = 'BANDWIDTH' | 'ENERGY'

/** Tron's Stake 2.0: what a transaction does that pays nobody. */
export interface TronAction {
  kind: 'freeze' | 'unfreeze' | 'withdraw' | 'delegate' | 'undelegate'
  resource: TronResource | null
  /** Staked TRX in sun; 0 for a withdrawal, which takes all that has matured. */
  amount: bigint
  /** Whom the resource is lent to, or taken back from. */
  receiver: string | null
}

/**
 * Cardano: what rides on an output beside its lovelace. Tokens by unit (policy and name in hex);
 * bytes of a reference script, which its spender pays for.
 */
export interface Riders {
  assets: Record<string, string>
  script_bytes: number
}

/** What a decoded transaction does; the same words for platform and nodes. */
export interface DecodedTransaction {
  network: string
  /** Ticker that moves. */
  asset: string
  /**
   * Payments to others, in output order. Exactly one for an allow-listed shape, none with an
   * `action`.
   */
  payments: { address: string; amount: bigint; tag: string | null }[]
  /** Value that returns to the sender on the change path (UTXO), else 0n. */
  change: {
    address: string
    amount: bigint
    /** Cardano: native tokens that go back with it, by unit. */ assets?: Record<string, string>
  } | null
  /** Addresses whose keys must sign, in the order of `inputs`. */
  from: string[]
  /** The most that the transaction may cost beyond `payments`, in the smallest native unit. */
  fee_max: bigint
  /**
   * Fee rate as the family quotes it, decimal string in `fee_rate_unit` (UTXO: real; EVM:
   * maxFeePerGas).
   */
  fee_rate: string
  /**
   * What makes two transactions exclude each other: `txid:vout` (UTXO, Cardano) or `address:nonce`
   * (EVM); empty where nothing does (Tron).
   */
  consumes: string[]
  /** Cardano: lovelace of the fee that do not grow with the size, decimal. */
  fee_constant?: string
  /**
   * The last ledger (XRP) or Unix second (Stellar, Tron) in which the transaction can be included,
   * or the first slot (Cardano) in which it no longer can; absent: no end.
   */
  valid_until?: number
  /** Staking on Tron. */
  action?: TronAction
  /** EVM and other account-based chains. */
  nonce: bigint | null
  gas_limit: bigint | null
  max_fee_per_gas: bigint | null
  /** Size when signed: vbytes (UTXO) or bytes (Cardano), else null. */
  vsize: number | null
}

/** What one input wants signed. secp256k1: a 32-byte digest; Ed25519: the whole message. */
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
      /** What is at fault, where it is not the address. */ field?: 'address_tag'
    }

/** Public key at a path below the workspace key. */
export type PublicKeyAt = (path: Path) => Uint8Array

/** A refusal by the chain layer. `code` is stable, the message names what is wrong. */
export class ChainError extends Error {
  readonly code: string
  constructor(code: string, message: string) {
    super(message)
    this.name = 'ChainError'
    this.code = code
  }
}
