import { Batch } from '../batch.ts'
import type { Queryable } from '../database/pool.ts'

/** What `create_withdrawal` answers. */
export type Written = { replayed: false } | { replayed: true; response: string; payload_hash: string }

/** In its place where one was refused: as PostgreSQL tells errors. */
interface Refused { code: string; message: string; detail: string }

type Outcome = Written | Refused

/** Written by one commit: as many hold the wallet for some hundredths of a second. */
const WRITTEN_MAX = 32

/** Of each database, by wallet: those that have something under way. */
const writing = new WeakMap<Queryable, Map<string, Batch<string, Outcome>>>()

/**
 * Writes a withdrawal. Those that one wallet is asked for at the same time have one commit: they wait for its row anyway, and one
 * after the other each would wait for the disk too. What one of them is refused for is its own.
 * @param withdrawal as `create_withdrawal.sql` takes it
 * @throws what `create_withdrawal` raises
 */
export async function writeWithdrawal(database: Queryable, walletId: string, withdrawal: Record<string, unknown>): Promise<Written> {
  let wallets = writing.get(database)
  if (!wallets) writing.set(database, wallets = new Map())
  let batch = wallets.get(walletId)
  if (!batch) wallets.set(walletId, batch = new Batch((all) => write(database, all), { most: WRITTEN_MAX, lanes: 1 }))
  const outcome = await batch.ask(JSON.stringify(withdrawal)).finally(() => {
    if (batch.isIdle && wallets.get(walletId) === batch) wallets.delete(walletId)
  })
  if (!('code' in outcome)) return outcome
  throw Object.assign(new Error(outcome.message), { code: outcome.code, detail: outcome.detail })
}

async function write(database: Queryable, withdrawals: readonly string[]): Promise<Outcome[]> {
  if (withdrawals.length === 1) {
    const row = await database.one<{ result: Written }>('select create_withdrawal($1) result', [withdrawals[0]])
    return [(row as { result: Written }).result]
  }
  const row = await database.one<{ results: Outcome[] }>('select create_withdrawals($1) results', [`[${withdrawals.join()}]`])
  return (row as { results: Outcome[] }).results
}
