import type { DecodedTransaction, Network, NetworkMode } from './types.ts'

/** How the end of a transaction is told, and how far ahead of now the signer nodes let it lie. */
export type Expiry =
  /**
   * A time in Unix seconds. On a local chain whose operator may move its time forward, the furthest
   * end on record counts as now.
   */
  | { unit: 'second'; aheadMax: number; localAheadMax?: number }
  /**
   * What the chain counts by itself, at most so many in a second: who asks no chain measures it by
   * the ends on record.
   */
  | {
      unit: 'ledger' | 'slot'
      aheadMax: number
      perSecondMax: Readonly<Record<NetworkMode, number>>
    }

/** What takes a signed payment's place on the chain and pays nobody. */
export interface Cancellation {
  /** Index of the payer's own address that it goes to. */
  index: number
  /**
   * `nothing`: a payment of 0 uses the payment's number up. `everything`: its coins go back, less
   * the fee.
   */
  moves: 'nothing' | 'everything'
}

/**
 * In what a family differs for those who plan and judge transactions, beside the code that builds
 * and reads them.
 */
export interface Traits {
  /** Who pays network fees: the sending wallet, or the workspace's gas tank. */
  feesFrom: 'wallet' | 'tank'
  /**
   * `spendable`: every address is spent from; `swept`: deposits are moved to the omnibus address;
   * `tagged`: one address, a tag per deposit address.
   */
  deposits: 'spendable' | 'swept' | 'tagged'
  /**
   * Where the numbers of an account's transactions begin: at 0, or where the chain says when it
   * makes the account; null: they have none.
   */
  firstNonce: 'zero' | 'chain' | null
  /**
   * Accounts have no sequence: the nodes sign one transaction for a transfer, and one that died
   * cannot be followed by another. What was only included may die as well, if a reorganisation
   * takes it back.
   */
  nothingExcludes: boolean
  /**
   * Null: a transaction names no end (it stays valid, or ends with the recent block that it must
   * name).
   */
  expiry: Expiry | null
  /** Null: nothing can take the place of a signed transaction. */
  cancellation: Cancellation | null
  /**
   * A transaction may have a second signer that pays its fee: the omnibus address, for the sweep of
   * a token.
   */
  feePayer: boolean
  /**
   * The native coin is staked for resources, which may be lent (`action` of a decoded transaction).
   */
  staking: boolean
  /** Decimals of `fee_rate_unit`, and so those that a caller's fee_rate may have. */
  feeRateDecimals: number
  /** The smallest rate that the network takes, as the chain's integer. */
  leastRate(network: Network): bigint
  /** What the smallest transfer costs at a rate, in the smallest native unit. */
  leastFee(rate: bigint): bigint
  /**
   * The most that a transaction of its size may cost at a caller's rate, times `scale`. Null: the
   * transaction names its rate itself (`fee_rate`).
   * @param rate in `fee_rate_unit`, times `scale`
   */
  feeMostAt:
    | ((network: Network, decoded: DecodedTransaction, rate: bigint, scale: bigint) => bigint)
    | null
  /** The most gas that one transfer may have; absent: the family counts none. */
  gasMost?(network: Network): bigint
  /** The most that a fee may have beside gas and price, in the smallest native unit. */
  surchargeMost(network: Network): bigint
}

/** For most families: nothing is charged beside the fee rate. */
export const noSurcharge = (): bigint => 0n
