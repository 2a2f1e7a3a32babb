import { stringifyJson } from '@custody/request-auth'
import type { Queryable } from '../database/pool.ts'
import { emit, lockedBalance, post, type Posting } from '../ledger/post.ts'
import type { Services } from '../services.ts'
import { presentTransaction, type TransactionRow } from '../transactions/present.ts'
import { queueSweep } from './sweeps.ts'

/** A deposit's generation grows with every reorganisation that takes it back, so that each crediting is its own entry. */
function reference(row: TransactionRow): string {
  return `${row.id}:${row.plan['generation'] ?? '0'}`
}

/** Where a deposit's coins belong in the books. */
async function accountOf(tx: Queryable, row: TransactionRow): Promise<Omit<Posting, 'amount'>> {
  const scope = { workspace: row.workspace_id, asset: row.asset }
  if (row.kind === 'TANK_DEPOSIT') return { ...scope, kind: 'tank' }
  if (row.wallet_id === null) return { ...scope, kind: 'suspense', address: row.destination_id }
  const address = await tx.one<{ kind: string }>('select kind from chain_addresses where network = $1 and address = $2', [row.network, row.destination_id])
  const utxo = await tx.one('select 1 from utxos where network = $1 and address = $2 limit 1', [row.network, row.destination_id])
  if (address?.kind === 'deposit' && !utxo) return { ...scope, wallet: row.wallet_id, kind: 'unswept', address: row.destination_id }
  return { ...scope, wallet: row.wallet_id, kind: 'available' }
}

/** Credits a deposit that has reached its depth. */
export async function credit(services: Services, tx: Queryable, row: TransactionRow, confirmations: number): Promise<void> {
  const account = await accountOf(tx, row)
  await post(tx, 'deposit', reference(row), [
    { workspace: row.workspace_id, asset: row.asset, kind: 'chain', amount: -BigInt(row.amount) },
    { ...account, amount: BigInt(row.amount) },
  ])
  const state = row.wallet_id === null && row.kind === 'DEPOSIT' ? 'SUSPENSE' : 'CREDITED'
  const confirmedAt = new Date(services.environment.now())
  await tx.query(`update transactions set state = $2, status = 'confirmed', confirmed_at = $3, confirmations = $4, updated_at = now() where id = $1`, [row.id, state, confirmedAt, confirmations])
  await tx.query(`update utxos set spendable = true from deposits d where d.transaction_id = $1 and utxos.network = d.network and utxos.txid = d.txid and utxos.vout = d.position`, [row.id])
  if (account.kind === 'unswept') await queueSweep(tx, { ...row, source_id: row.destination_id })
  if (row.kind === 'DEPOSIT') {
    await emit(tx, row.workspace_id, row.sub_account_id, 'deposit.confirmed', stringifyJson(presentTransaction({ ...row, state, status: 'confirmed', confirmed_at: confirmedAt, confirmations }, services.registry)))
  }
}

/** Takes a deposit back whose block is gone. Credited ones may leave the account below zero: that loss is real. */
export async function revert(services: Services, tx: Queryable, row: TransactionRow): Promise<void> {
  if (row.status === 'confirmed') {
    const account = await accountOf(tx, row)
    const amount = BigInt(row.amount)
    const postings: Posting[] = [{ workspace: row.workspace_id, asset: row.asset, kind: 'chain', amount }]
    if (account.kind === 'unswept') {
      const left = await lockedBalance(tx, account)
      const there = left < amount ? (left > 0n ? left : 0n) : amount
      postings.push({ ...account, amount: -there }, { workspace: row.workspace_id, wallet: row.wallet_id, asset: row.asset, kind: 'available', amount: there - amount })
    } else postings.push({ ...account, amount: -amount })
    await post(tx, 'deposit-reverted', reference(row), postings, { overdraw: true })
    services.log.warn({ transaction: row.id }, 'a credited deposit was taken back by a reorganisation')
  }
  await tx.query(
    `update transactions set state = 'REORGED', status = 'failed', failure_reason = 'the block that held it is no longer part of the chain', confirmed_at = null, confirmations = 0,
       plan = plan || jsonb_build_object('generation', (coalesce((plan->>'generation')::int, 0) + 1)::text), updated_at = now() where id = $1`, [row.id])
  await tx.query('update deposits set block_height = null, block_hash = null where transaction_id = $1', [row.id])
  if (row.kind === 'DEPOSIT') {
    await emit(tx, row.workspace_id, row.sub_account_id, 'deposit.reverted', stringifyJson(presentTransaction({ ...row, state: 'REORGED', status: 'failed', confirmed_at: null }, services.registry)))
  }
}
