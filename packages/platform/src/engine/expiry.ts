import type { ResignedClient, UnsignedTransaction } from '@custody/chains'
import { traitsOf } from './traits.ts'
import type { Connected } from './networks.ts'
import type { Services } from './services.ts'
import { stakingOf } from '../staking/steps.ts'
import { advance } from './lease.ts'
import type { TransactionRow } from './transaction.ts'
import { startFailing } from './fail.ts'

interface Expiring { id: string; hash: string; valid_until: string | null; account: string | null; unsigned: UnsignedTransaction }

/** Ids that cover the signature. Those of Tron, Stellar and Cardano are the hash that is signed: no signature changes them. */
function resigned(connected: Connected): ResignedClient | null {
  return connected.family === 'solana' || connected.family === 'xrp' ? connected.client : null
}

/**
 * A signed transaction whose time is over, which the chain proves to be absent, is given up, and the transfer is
 * built again with the same sequence (Cardano: with the same coins); without one (Solana, Tron) it fails. Answers false where it may still be included.
 */
export async function buryDead(services: Services, row: TransactionRow, chain: Expiring): Promise<boolean> {
  if (chain.valid_until === null) return false
  const connected = services.networks.get(row.network)
  const { family, network } = connected
  if (family === 'utxo' || family === 'evm') return false
  if (!await connected.client.isDead(chain.hash, Number(chain.valid_until))) return false
  const account = chain.account ?? row.source_id as string
  const other = await resigned(connected)?.findSigned(account, chain.unsigned.bytes, Number(chain.valid_until))
  if (other) {
    // The nodes may have signed the message twice, and somebody published the signature that is not ours: it paid all the same.
    const found = { transaction: row.id, hash: chain.hash, found: other.hash }
    services.log.error(found, 'the transaction was published under another signature, whose hash is taken over')
    await services.database.transaction(async (tx) => {
      await tx.query(`update chain_transactions set hash = $2, signed = $3 where id = $1`, [chain.id, other.hash, other.raw])
      const reason = 'it was published under another signature'
      await advance(tx, row, { state: 'CONFIRMING', hash: other.hash, last_error: reason, run_in_ms: 0 })
    })
    return true
  }
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
