import type { DecodedTransaction, ModeKind, Network } from './types.ts'

/**
 * How a transaction's expiry is expressed, and how far in the future the signer nodes allow it to
 * be.
 */
export type Expiry =
  /**
   * A time in Unix seconds. On a local chain, whose operator may move its clock forward, the latest
   * expiry on record counts as the current time.
   */
  | { unit: 'second'; aheadMax: number; localAheadMax?: number }
  /**
   * A counter of the chain (slots, ledgers), with its maximum rate per second. The signer nodes
   * have no connection to the chain, so they estimate the counter from the expiries on record.
   */
  | {
      unit: 'ledger' | 'slot'
      aheadMax: number
      perSecondMax: Readonly<Record<ModeKind, number>>
    }

/** Transaction that replaces a signed payment on the chain and pays nothing to others. */
export interface Cancellation {
  /** Index of the payer's own address that receives the coins. */
  index: number
  /**
   * `nothing`: a payment of 0 uses up the payment's nonce. `everything`: the payment's coins return
   * to the wallet, less the fee.
   */
  moves: 'nothing' | 'everything'
  /**
   * Returns the smallest amount by which the fee of a replacement must be higher in addition to what
   * a percentage allows, in the smallest native unit.
   */
  increment(network: Network, decoded: DecodedTransaction): bigint
}

/** Transaction that merges coins of a wallet into one coin of the same wallet. */
interface Consolidation {
  /** Index of the wallet's own address that receives the merged coin. */
  index: number
  /** Smallest and largest number of inputs. */
  inputsLeast: number
  inputsMost: number
}

/**
 * Why a node refuses to accept a transaction.
 *
 * - `known`: it already has the transaction.
 * - `gas`: its gas limit is too low, so that no node accepts or mines it.
 * - `price`: its fee is too low now. A replacement with a higher fee may be accepted.
 * - `conflict`: another transaction has used its nonce or coins, or an earlier nonce is missing.
 * - `funds`: the account cannot pay for it.
 * - `expired`: it is no longer valid, or not valid yet.
 * - `node`: this node does not accept it by its configuration or load; others may.
 */
export type RefusalKind = 'known' | 'gas' | 'price' | 'conflict' | 'funds' | 'expired' | 'node'

/** The kinds of refusal of a family's nodes, by their messages. The first match applies. */
export type Refusals = readonly (readonly [RefusalKind, RegExp])[]

/**
 * Properties of a family that the planner and the signer nodes need, in addition to the code that
 * builds and reads its transactions.
 */
export interface Traits {
  /** Payer of network fees: the sending wallet, or the workspace's gas tank. */
  feesFrom: 'wallet' | 'tank'
  /**
   * `spendable`: every address can be spent from; `swept`: deposits are moved to the omnibus
   * address; `tagged`: one address, with a tag for each deposit address.
   */
  deposits: 'spendable' | 'swept' | 'tagged'
  /**
   * First nonce of an account: 0, or a value that the chain assigns when it creates the account;
   * null if transactions have no nonce.
   */
  firstNonce: 'zero' | 'chain' | null
  /**
   * True if transactions have no nonce and do not exclude each other. The nodes then sign one
   * transaction for a transfer, and do not sign another after it expired. A transaction that was
   * included but not final can expire too, if a reorganization removes it.
   */
  nothingExcludes: boolean
  /**
   * Null if a transaction contains no expiry: it stays valid, or expires with the recent block that
   * it must reference.
   */
  expiry: Expiry | null
  /** Null if a signed transaction cannot be replaced. */
  cancellation: Cancellation | null
  /** Absent if the coins of a wallet cannot be merged by request. */
  consolidation?: Consolidation
  /**
   * A transaction may have a second signer that pays its fee: the omnibus address, when it sweeps a
   * token.
   */
  feePayer: boolean
  /**
   * The native coin can be staked for resources, which may be lent (`action` of a decoded
   * transaction).
   */
  staking: boolean
  /**
   * Native coins that a contract pays: `listed` in the blocks as they are read; `claimed` by nodes that
   * are configured to report them; or `hidden`, so that only a balance shows them.
   */
  contractPayments: 'listed' | 'claimed' | 'hidden'
  /** Number of decimals of `fee_rate_unit`, and therefore of a caller's fee_rate. */
  feeRateDecimals: number
  /** Returns the smallest rate that the network accepts, as the chain's integer. */
  leastRate(network: Network): bigint
  /** Returns the fee of the smallest transfer at a rate, in the smallest native unit. */
  leastFee(rate: bigint): bigint
  /**
   * Returns the maximum fee of a transaction of its size at a caller's rate, times `scale`. Null if
   * the transaction itself contains its rate (`fee_rate`).
   * @param rate in `fee_rate_unit`, times `scale`
   */
  feeMostAt:
    | ((network: Network, decoded: DecodedTransaction, rate: bigint, scale: bigint) => bigint)
    | null
  /** Kinds of the messages by which nodes refuse a broadcast. */
  refusals: Refusals
  /** Returns the maximum gas of one transfer; absent if the family has no gas. */
  gasMost?(network: Network): bigint
  /** Returns the maximum part of a fee in addition to gas × price, in the smallest native unit. */
  surchargeMost(network: Network): bigint
}

/** For families that charge nothing in addition to the fee rate. */
export const noSurcharge = (): bigint => 0n
