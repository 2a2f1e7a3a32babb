import type { Queryable } from '../database/pool.ts'

/**
 * Locks the coins of a wallet until the end of the database transaction: the choice of coins for a
 * transaction, and what callers set for them.
 */
export async function lockCoins(tx: Queryable, walletId: string): Promise<void> {
  await tx.query('select pg_advisory_xact_lock(hashtextextended($1, 0))', [`wallet ${walletId}`])
}
