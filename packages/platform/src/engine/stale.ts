import { solana } from '@custody/chains'
import type { Connected } from './networks.ts'
import { traitsOf } from './traits.ts'
import type { Services } from './services.ts'
import { advance } from './lease.ts'
import type { TransactionRow } from './transaction.ts'

/** Blocks of a blockhash's 150 that signing and sending must have left. */
const BLOCKS_LEAST = 50
/** Tron: of the ten minutes that a transaction lives. */
const SECONDS_LEAST = 240

/**
 * What was built and has waited for the nodes too long is built again, with a life of its own. Answers true then.
 * Nodes that have begun to sign the first refuse the second, and nothing is paid twice.
 */
export async function rebuildStale(services: Services, row: TransactionRow, built: { id: string; valid_until: string | null }): Promise<boolean> {
  const connected = services.networks.get(row.network)
  if (!traitsOf(connected.network).nothingExcludes || built.valid_until === null || (row.plan['earlier'] ?? null) !== null) return false
  if (!await isStale(connected, Number(built.valid_until))) return false
  await services.database.transaction(async (tx) => {
    await tx.query(`update chain_transactions set state = 'VOID' where id = $1 and state = 'BUILT'`, [built.id])
    // What has taken fuel is not planned again.
    await advance(tx, row, { state: row.plan['fuel_id'] === undefined ? 'QUEUED' : 'FUELING', last_error: 'it grew old before it was signed', run_in_ms: 0 })
  })
  return true
}

async function isStale(connected: Connected, validUntil: number): Promise<boolean> {
  if (connected.family === 'solana') return (await connected.client.lifetime()).validUntil - validUntil > solana.BLOCKS_TO_LIVE - BLOCKS_LEAST
  if (connected.family === 'tron') return validUntil - await connected.client.headTime() / 1000 < SECONDS_LEAST
  return false
}

/**
 * The nodes have begun to sign an earlier transaction of this transfer, and their answer was lost: they sign no other.
 * That one is taken up again, whatever its age, so that its hash is known: it is included, or proven dead. Answers
 * false where there is none.
 */
export async function returnToEarlier(services: Services, row: TransactionRow, built: { id: string; step: string | null }): Promise<boolean> {
  if (!traitsOf(services.networks.get(row.network).network).nothingExcludes) return false
  return services.database.transaction(async (tx) => {
    const earlier = await tx.one<{ id: string; attempt: number }>(
      `select id, attempt from chain_transactions where transaction_id = $1 and state = 'VOID' and hash is null and id <> $2 and attempt > $3 and step is not distinct from $4 order by attempt limit 1`, [row.id, built.id, Number(row.plan['earlier'] ?? '0'), built.step])
    if (!earlier) return false
    await tx.query(`update chain_transactions set state = 'VOID' where id = $1`, [built.id])
    await tx.query(`update chain_transactions set state = 'BUILT' where id = $1`, [earlier.id])
    await advance(tx, row, { state: 'SIGNING', plan: { earlier: String(earlier.attempt) }, last_error: 'the nodes have signed an earlier transaction of this transfer', run_in_ms: 0 })
    return true
  })
}
