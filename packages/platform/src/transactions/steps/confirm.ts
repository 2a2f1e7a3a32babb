import { traitsOf } from '../../networks/traits.ts'
import type { Services } from '../../services.ts'
import { advance } from '../../work/lease.ts'
import type { TransactionRow } from '../present.ts'
import { buryDead } from './expiry.ts'
import { settle, settleFuel } from './settle.ts'

/** A transaction that sits in the mempool is sent again this often, in case that nodes forgot it. */
const REBROADCAST_ATTEMPTS = 20

export interface ChainRow { id: string; hash: string; signed: string; fee_max: string; fee: string | null; succeeded: boolean | null; state: string; account: string | null; valid_until: string | null }

/** CONFIRMING: looks the hash up; settles at the chain's depth. */
export async function confirm(services: Services, row: TransactionRow): Promise<void> {
  const chain = await services.database.one<ChainRow>(
    `select id, hash, signed, fee_max::text, fee::text, succeeded, state, account, valid_until::text from chain_transactions where transaction_id = $1 and state in ('SIGNED', 'INCLUDED') order by attempt desc limit 1`, [row.id])
  if (!chain) throw new Error('CONFIRMING without signed bytes')
  const { network, client } = services.networks.get(row.network)
  const asset = services.registry.asset(row.asset)
  const expected = asset?.type === 'token' && row.source_id && row.destination_id ? { asset, from: row.source_id, to: row.destination_id } : undefined
  const [status, tip] = [await client.status(chain.hash, expected), await client.tip()]
  if (status.state !== 'included') {
    if (status.state === 'absent' && await buryDead(services, row, chain)) return
    if (chain.state === 'INCLUDED') await services.database.query(`update chain_transactions set state = 'SIGNED', block_height = null, block_hash = null where id = $1`, [chain.id])
    if (status.state === 'absent' || row.attempts % REBROADCAST_ATTEMPTS === 0) return advance(services.database, row, { state: 'BROADCASTING', confirmations: 0, run_in_ms: 0 })
    return advance(services.database, row, { confirmations: 0, run_in_ms: null })
  }
  const confirmations = Math.max(1, tip.height - status.height + 1)
  const final = tip.finalHeight === null ? network.confirmations !== null && confirmations >= network.confirmations : status.height <= tip.finalHeight
  const fee = status.fee ?? BigInt(chain.fee_max)
  await services.database.transaction(async (tx) => {
    await tx.query(
      `update chain_transactions set state = $2, block_height = $3, block_hash = $4, fee = $5, succeeded = $6 where id = $1`,
      [chain.id, final ? 'CONFIRMED' : 'INCLUDED', status.height, status.blockHash, fee.toString(), status.succeeded])
    // Where nothing excludes, a reorganisation may kill what was only included.
    if (row.kind === 'FUEL' && (final || !traitsOf(network).nothingExcludes)) await settleFuel(tx, row, chain, fee, status.succeeded)
    if (final) await settle(services, tx, row, { fee, succeeded: status.succeeded, confirmations })
    else await advance(tx, row, { confirmations, fee, last_error: null, run_in_ms: null })
  })
  services.environment.checkpoint(final ? 'transaction.settled' : 'transaction.included')
}
