import { traitsOf } from '../../networks/traits.ts'
import type { Services } from '../../services.ts'
import { stakingOf } from '../../staking/steps.ts'
import { advance } from '../../work/lease.ts'
import type { TransactionRow } from '../present.ts'
import { startFailing } from './fail.ts'

/**
 * A signed transaction whose time is over, which the chain proves to be absent, is given up, and the transfer is
 * built again with the same sequence (Cardano: with the same coins); without one (Solana, Tron) it fails. Answers false where it may still be included.
 */
export async function buryDead(services: Services, row: TransactionRow, chain: { id: string; hash: string; valid_until: string | null }): Promise<boolean> {
  if (chain.valid_until === null) return false
  const { family, network } = services.networks.get(row.network)
  const client = family === 'solana' ? services.networks.solana(row.network) : family === 'tron' ? services.networks.tron(row.network) : family === 'cardano' ? services.networks.cardano(row.network) : services.networks.tagged(row.network)
  if (!await client.isDead(chain.hash, Number(chain.valid_until))) return false
  // Nobody can ask again for what was adopted without its request.
  const isAskedFor = row.kind !== 'WITHDRAWAL' || row.request !== null || row.plan['rule_id'] !== undefined
  const again = isAskedFor && (!traitsOf(network).nothingExcludes || row.kind === 'LEND_BACK')
  services.log.warn({ transaction: row.id, hash: chain.hash }, `a transaction expired without being included; ${again ? 'it is built again' : 'the transfer fails'}`)
  await services.database.transaction(async (tx) => {
    await tx.query(`update chain_transactions set state = 'EXPIRED', block_height = null, block_hash = null where id = $1`, [chain.id])
    // Its change will never be made.
    await tx.query(`update utxos set spendable = false, block_height = null where network = $1 and txid = $2 and origin = 'change'`, [row.network, chain.hash])
    // Where nothing excludes the dead one, the nodes sign no other for this transfer.
    if (!again) return startFailing(services, tx, row, stakingOf(row) ? 'a call of it expired before the chain included it' : 'it expired before the chain included it; the amount is back, and it can be sent again as a new transfer')
    await advance(tx, row, { state: 'QUEUED', confirmations: 0, last_error: 'expired without being included', run_in_ms: 0 })
  })
  services.environment.checkpoint('transaction.expired')
  return true
}
