import type { Queryable } from '../../core/database/pool.ts'
import { wakeBuilding } from '../../core/engine/lease.ts'
import type { Networks } from '../../core/engine/networks.ts'
import { lockAccount, wakeNextNonce } from '../../core/engine/nonce-order.ts'
import type { TransactionRow } from '../../core/engine/transaction.ts'

interface Services {
  networks: Networks
}

/**
 * Removes the unsigned transaction if it was not submitted to any signer node, so that the next
 * transfer can take its nonce or coins.
 * @param isUntouched whether it is known that no node has ever started to sign it, although it was
 *   submitted
 * @returns whether the transaction was removed
 */
export async function unbuild(
  services: Services,
  tx: Queryable,
  row: TransactionRow,
  isUntouched = false,
): Promise<boolean> {
  // Later transfers wait for this one, or for its change, only if the chain has nonces or coins.
  const { nextNonce, coins } = services.networks.get(row.network)
  if (!nextNonce && !coins) return false
  if (nextNonce && row.source_id !== null) await lockAccount(tx, row.network, row.source_id)
  const chain = await tx.query<{
    id: string
    state: string
    shown_at: Date | null
    account: string | null
  }>(
    `select id, state, shown_at, account from chain_transactions where workspace_id = $2
      and transaction_id = $1 for update`,
    [row.id, row.workspace_id],
  )
  const [built, more] = chain
  if (!built || more || built.state !== 'BUILT' || (built.shown_at !== null && !isUntouched))
    return false
  await tx.query('update utxos set spent_by = null where workspace_id = $2 and spent_by = $1', [
    built.id,
    row.workspace_id,
  ])
  await tx.query('delete from chain_transactions where workspace_id = $2 and id = $1', [
    built.id,
    row.workspace_id,
  ])
  await wakeNextNonce(tx, row, built)
  if (coins && row.wallet_id !== null) await wakeBuilding(tx, row.workspace_id, row.wallet_id)
  return true
}
