import type { Queryable } from '../../database/pool.ts'
import type { Services } from '../../services.ts'
import { advance } from '../../work/lease.ts'
import type { TransactionRow } from '../present.ts'

interface Place { account: string | null; nonce: string | null }

const lockAccount = (tx: Queryable, network: string, account: string) => tx.query('select 1 from signing_accounts where network = $1 and address = $2 for update', [network, account])

/**
 * The nodes sign the nonces of an account in their order, so a transaction waits until the ones before it are signed;
 * asking earlier would cost a refusal each time. True where it waits: the signing of the one before wakes it.
 */
export async function waitsForNonce(services: Services, row: TransactionRow, { account, nonce }: Place): Promise<boolean> {
  if (account === null || nonce === null) return false
  const before = (tx: Queryable) => tx.one(`select 1 from chain_transactions where network = $1 and account = $2 and nonce < $3 and state = 'BUILT' limit 1`, [row.network, account, nonce])
  if (!await before(services.database)) return false
  return services.database.transaction(async (tx) => {
    // Under the account's lock: either the waking comes after this, or the one before is seen as signed.
    await lockAccount(tx, row.network, account)
    if (!await before(tx)) return false
    await advance(tx, row, { last_error: null, run_in_ms: null })
    return true
  })
}

/** Makes the transaction with the next nonce due, in the same commit that signs or gives up the one before. */
export async function wakeNextNonce(tx: Queryable, network: string, { account }: Place): Promise<void> {
  if (account === null) return
  await lockAccount(tx, network, account)
  await tx.query(
    `update transactions set next_run_at = now() where lease_token is null and state = 'SIGNING' and id = (
       select transaction_id from chain_transactions where network = $1 and account = $2 and state = 'BUILT' and replaces is null order by nonce limit 1)`, [network, account])
}
