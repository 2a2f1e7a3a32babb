import type { Services } from '../../services.ts'
import { advance } from '../../work/lease.ts'
import type { TransactionRow } from '../present.ts'

/**
 * A signed transaction whose time is over, which the chain proves to be absent, is given up, and the transfer is
 * built again with the same sequence. Answers false where it may still be included.
 */
export async function buryDead(services: Services, row: TransactionRow, chain: { id: string; hash: string; valid_until: string | null }): Promise<boolean> {
  if (chain.valid_until === null) return false
  if (!await services.networks.tagged(row.network).isDead(chain.hash, Number(chain.valid_until))) return false
  services.log.warn({ transaction: row.id, hash: chain.hash }, 'a transaction expired without being included; it is built again')
  await services.database.transaction(async (tx) => {
    await tx.query(`update chain_transactions set state = 'EXPIRED', block_height = null, block_hash = null where id = $1`, [chain.id])
    await advance(tx, row, { state: 'QUEUED', confirmations: 0, last_error: 'expired without being included', run_in_ms: 0 })
  })
  services.environment.checkpoint('transaction.expired')
  return true
}
