import { decode } from '@custody/chains'
import { traitsOf } from './traits.ts'
import { settleLoan } from '../gas-tanks/lend.ts'
import type { Services } from './services.ts'
import { settleStaking } from '../staking/settle.ts'
import { stakingOf } from '../staking/steps.ts'
import { advance } from './lease.ts'
import type { TransactionRow } from './transaction.ts'
import { findIncluded, liveAttempts, resolveAttempts } from './attempts.ts'
import { bumpLowFee } from './auto-bump.ts'
import { buryDead } from './expiry.ts'
import { startReplacing } from './replace.ts'
import { settle, settleFuel } from './settle.ts'

/** A transaction that sits in the mempool is sent again this often, in case that nodes forgot it. */
const REBROADCAST_ATTEMPTS = 20

/** CONFIRMING: looks the hash up, or several where one has replaced another; settles at the chain's depth. */
export async function confirm(services: Services, row: TransactionRow): Promise<void> {
  const attempts = await liveAttempts(services.database, row.id)
  const { network, client } = services.networks.get(row.network)
  const [{ attempt: chain, status }, tip] = [await findIncluded(services, row, attempts), await client.tip()]
  if (status.state !== 'included') {
    if (status.state === 'absent' && await buryDead(services, row, chain)) return
    if (attempts.some(({ state }) => state === 'INCLUDED')) await services.database.query(`update chain_transactions set state = 'SIGNED', block_height = null, block_hash = null where transaction_id = $1 and state = 'INCLUDED'`, [row.id])
    if (await startReplacing(services, row)) return
    await bumpLowFee(services, row, network, attempts)
    if (status.state === 'absent' || row.attempts % REBROADCAST_ATTEMPTS === 0) return advance(services.database, row, { state: 'BROADCASTING', confirmations: 0, run_in_ms: 0 })
    return advance(services.database, row, { confirmations: 0, run_in_ms: null })
  }
  const confirmations = Math.max(1, tip.height - status.height + 1)
  const final = tip.finalHeight === null ? network.confirmations !== null && confirmations >= network.confirmations : status.height <= tip.finalHeight
  const fee = status.fee ?? BigInt(chain.fee_max)
  const key = await services.keys.get(row.workspace_id, network.curve)
  await services.database.transaction(async (tx) => {
    await tx.query(
      `update chain_transactions set state = $2, block_height = $3, block_hash = $4, fee = $5, succeeded = $6, withdrawn = $7 where id = $1`,
      [chain.id, final ? 'CONFIRMED' : 'INCLUDED', status.height, status.blockHash, fee.toString(), status.succeeded, status.staking?.withdrawn.toString() ?? null])
    // Where nothing excludes, a reorganisation may kill what was only included.
    if (row.kind === 'FUEL' && (final || !traitsOf(network).nothingExcludes)) await settleFuel(tx, row, chain, fee, status.succeeded)
    const cancelled = chain.replacement === 'CANCEL'
    if (final) {
      await resolveAttempts(tx, chain, decode(services.registry, chain.unsigned, key.at).consumes, attempts)
      const staking = stakingOf(row)
      if (staking && status.staking) await settleStaking(services, tx, { ...row, hash: chain.hash }, staking, { fee, succeeded: status.succeeded, confirmations, staking: status.staking })
      else if (row.kind === 'LEND' || row.kind === 'LEND_BACK') await settleLoan(services, tx, { ...row, hash: chain.hash }, { fee, succeeded: status.succeeded, confirmations })
      else await settle(services, tx, { ...row, hash: chain.hash }, { fee, succeeded: status.succeeded && !cancelled, cancelled, confirmations })
    } else await advance(tx, row, { hash: chain.hash, confirmations, fee, last_error: null, run_in_ms: null })
  })
  services.environment.checkpoint(final ? 'transaction.settled' : 'transaction.included')
}
