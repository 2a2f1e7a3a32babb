import type { Queryable } from '../../database/pool.ts'
import type { TransactionRow } from '../transaction.ts'

/**
 * Standing rules that forward incoming funds. Called within the commit before it locks ledger
 * accounts, because rules are locked first.
 */
export interface Forwards {
  credited(tx: Queryable, row: TransactionRow, now: Date): Promise<void>
  takenBack(tx: Queryable, row: TransactionRow): Promise<void>
  done(tx: Queryable, row: TransactionRow): Promise<void>
  returned(tx: Queryable, row: TransactionRow, reason: string): Promise<void>
  /** A reorganisation has removed the block in which a forward failed: it may move the amount after all. */
  undone(tx: Queryable, row: TransactionRow): Promise<void>
}

/** Interface to invoices, which some deposits pay. */
export interface Invoices {
  /**
   * Marks the invoice that owns the deposit's address and tag, if any, for evaluation. Called when
   * a deposit is found, held, credited, assigned or taken back, in the same commit, after
   * everything else is locked and written.
   */
  moved(
    tx: Queryable,
    row: Pick<TransactionRow, 'workspace_id' | 'network' | 'destination_id' | 'address_tag'>,
  ): Promise<void>
}
