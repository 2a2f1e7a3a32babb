import type { Chain, Fail, FuelShortfall, Priced } from '../chain.ts'
import type { Replacement } from '../replacement.ts'
import type { TransactionRow } from '../transaction.ts'
import type { WaitCode } from '../waiting.ts'

/** Interface of the workspaces' gas tanks for the engine. */
export interface Tanks {
  /**
   * Returns the highest gas price that the tank pays, in the chain's integer unit; null: no limit.
   */
  maxGasPrice(row: TransactionRow): Promise<bigint | null>
  /**
   * → FUELING: takes the missing fee of the source address from the tank; otherwise the transaction
   * fails or waits.
   */
  start(row: TransactionRow, chain: Chain, priced: Priced): Promise<void>
  /**
   * Whether everything that was taken from the tank for the transaction has arrived. `refused`: the
   * policy of the workspace did not allow it, and judges the transaction itself once it is queued;
   * nothing from the tank is under way any more.
   */
  arrived(row: TransactionRow): Promise<'arrived' | 'waits' | 'alone' | 'refused' | Fail>
  /** Returns for what the fuel of a transaction or replacement waits itself; null: it does not wait. */
  causeOf(row: TransactionRow, replacement?: Replacement): Promise<WaitCode | null>
  /** FUELING → QUEUED: returns everything that was taken from the tank (`refused`). */
  startAgain(row: TransactionRow): Promise<void>
  /**
   * Starts a separate fuel transaction after fuel shared with others has failed, possibly because
   * of one of them (`alone`).
   */
  startAlone(row: TransactionRow): Promise<void>
  /**
   * Takes the additional amount for a more expensive replacement from the tank: immediately
   * (`taken`) or with another fuel transaction (`started`).
   */
  startMore(
    row: TransactionRow,
    replacement: Replacement,
    dearer: FuelShortfall,
  ): Promise<'taken' | 'started' | Fail>
  /**
   * Whether the additional fuel of a replacement has arrived. Once it has, the row's plan includes
   * it.
   */
  arrivedMore(row: TransactionRow, replacement: Replacement): Promise<'arrived' | 'waits' | Fail>
}
