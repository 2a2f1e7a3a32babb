import { stringifyJson } from '@custody/request-auth'
import { returnForward } from '../auto-forwarding/outcome.ts'
import type { Queryable } from '../database/pool.ts'
import { emit, post } from '../ledger/post.ts'
import { releaseLoan, releaseTankFee, takeEnergyBack } from '../gas-tanks/lend.ts'
import { releasePlatformFee } from '../prepaid-fee/fees.ts'
import type { Services } from './services.ts'
import { voidIntent } from '../signing/void.ts'
import { advance } from './lease.ts'
import { giveBackStake, leftOver } from '../staking/fail.ts'
import { stakingOf } from '../staking/steps.ts'
import { presentTransaction } from '../transactions/present.ts'
import { ASKED_FOR, type TransactionRow } from './transaction.ts'
import { wakeNextNonce } from './nonce-order.ts'

const RETURN_RETRY_MS = 30_000

/**
 * Begins the end of a transaction that was never signed. A withdrawal is voided at the nodes before `failed`
 * is shown, so that a hostile platform cannot use the request again after the caller has paid by other means.
 */
export async function startFailing(services: Services, tx: Queryable, row: TransactionRow, reason: string): Promise<void> {
  // What is lent must come back: it is tried until it does.
  if (row.kind === 'LEND_BACK') return advance(tx, row, { state: 'QUEUED', last_error: reason, run_in_ms: RETURN_RETRY_MS })
  if (ASKED_FOR.has(row.kind) && row.source_type !== 'GAS_TANK') return advance(tx, row, { state: 'VOIDING', plan: { reason }, last_error: null, run_in_ms: 0 })
  await finish(services, tx, row, reason)
}

/** States that a cancellation ends at once. While fuel is under way it waits for that, so that the books know where it lies. */
const ENDED_BY_CANCEL = new Set(['CREATED', 'SCREENING', 'AML_HELD', 'QUEUED', 'SIGNING'])
const CANCELLED = 'it was cancelled before it was signed; the amount is back'

/** Ends a transfer that the caller takes back before anything was signed for it. */
export async function cancelUnsigned(services: Services, row: TransactionRow, states: ReadonlySet<string> = ENDED_BY_CANCEL): Promise<boolean> {
  if (!row.plan['cancel'] || !states.has(row.state)) return false
  await services.database.transaction((tx) => startFailing(services, tx, row, CANCELLED))
  return true
}

/** By what the nodes know a transfer: its caller's request, its place among the forwards of a rule, or (where it was adopted) its id. */
function voidedBy(row: TransactionRow): Parameters<typeof voidIntent>[1] {
  if (row.plan['rule_id'] !== undefined) return { forward: { rule: row.plan['rule_id'], id: row.id } }
  if (row.request === null) return { transaction_id: row.id }
  const { api_key: _, ...request } = row.request
  return { request }
}

/** VOIDING → FAILED, once two nodes hold the void. */
export async function voidAndFail(services: Services, row: TransactionRow): Promise<void> {
  // What was signed and has died on its chain can be given up; anything else that was signed may still move money.
  // Its fuel went to an address of ours, is booked by itself, and pays nobody.
  const dead = await services.database.query<{ hash: string }>(
    `select hash from chain_transactions where hash is not null and (transaction_id = $1 and (state in ('EXPIRED', 'VOID') or step is not null and state = 'CONFIRMED') or transaction_id in (select id from transactions where parent_id = $1 and kind in ('FUEL', 'LEND')))`, [row.id])
  const outcome = await voidIntent(services, voidedBy(row), dead.map(({ hash }) => hash))
  if (outcome.signed.length > 0 && row.plan['cancel']) {
    // The nodes finished the signature just before: the transfer goes on, and what cancels it competes with it on the chain.
    const built = await services.database.one(`select 1 from chain_transactions where transaction_id = $1 and state = 'BUILT'`, [row.id])
    if (built) return advance(services.database, row, { state: 'SIGNING', plan: { cancel: null, reason: null }, last_error: null, run_in_ms: 0 })
  }
  if (outcome.signed.length > 0) {
    // The nodes have signed for this request and this database does not know it: an old backup. Money may have moved.
    services.log.error({ transaction: row.id, hashes: outcome.signed }, 'the signer nodes hold a signature that this database does not know; reconcile by hand')
    return advance(services.database, row, { state: 'VOIDING', last_error: `signed already: ${outcome.signed.join(', ')}`, run_in_ms: 60_000 })
  }
  if (!outcome.enough) throw new Error(`only ${outcome.held} signer nodes hold the void; ${outcome.needed} are needed`)
  const voided = { ...row, voids: outcome.voids }
  await services.database.transaction(async (tx) => {
    await finish(services, tx, voided, row.plan['reason'] ?? 'failed')
    await tx.query('update transactions set voids = $2 where id = $1', [row.id, JSON.stringify(outcome.voids)])
  })
  services.environment.checkpoint('transaction.failed')
}

/** Gives every reservation back and ends the transaction. */
async function finish(services: Services, tx: Queryable, row: TransactionRow, reason: string): Promise<void> {
  const account = { workspace: row.workspace_id, wallet: row.wallet_id, asset: row.asset }
  const amount = BigInt(row.amount)
  await returnForward(tx, row, reason)
  await tx.query(`update utxos set spent_by = null where spent_by in (select id from chain_transactions where transaction_id = $1 and state in ('BUILT', 'EXPIRED'))`, [row.id])
  const given = await tx.query<{ account: string | null; nonce: string | null }>(`update chain_transactions set state = 'VOID' where transaction_id = $1 and state in ('BUILT', 'EXPIRED') returning account, nonce::text`, [row.id])
  for (const place of given) if (place.nonce !== null) await wakeNextNonce(tx, row.network, place)
  if (row.kind === 'WITHDRAWAL') {
    const total = amount + BigInt(row.plan['fee_reserve'] ?? '0')
    await post(tx, 'release', row.id, [{ ...account, kind: 'reserved', amount: -total }, { ...account, kind: 'available', amount: total }])
  }
  if (row.plan['fee_wallet'] !== undefined) {
    const feeAccount = { workspace: row.workspace_id, wallet: row.plan['fee_wallet'], asset: row.fee_asset }
    const feeHeld = BigInt(row.plan['fee_held'] ?? '0')
    await post(tx, 'fee-release', row.id, [{ ...feeAccount, kind: 'reserved', amount: -feeHeld }, { ...feeAccount, kind: 'available', amount: feeHeld }])
  }
  const staking = stakingOf(row)
  if (staking) await giveBackStake(tx, row, staking)
  await takeEnergyBack(services, tx, row)
  if (row.kind === 'LEND') await releaseLoan(tx, row)
  if (staking && row.wallet_id === null) await releaseTankFee(tx, row)
  else if (row.kind === 'WITHDRAWAL' || row.kind === 'SWEEP' || staking) {
    const fuel = row.plan['fuel_id'] ? await tx.one<{ amount: string; settled: string | null }>(`select amount::text, plan->>'settled' settled from transactions where id = $1`, [row.plan['fuel_id']]) : undefined
    const held = BigInt(row.plan['float_taken'] ?? '0') + (fuel?.settled === '1' ? BigInt(fuel.amount) : 0n) - BigInt(row.plan['fees_paid'] ?? '0')
    const scope = { workspace: row.workspace_id, asset: row.fee_asset, address: row.source_id }
    await post(tx, 'float-release', row.id, [{ ...scope, kind: 'float_reserved', amount: -held }, { ...scope, kind: 'float', amount: held }])
  }
  if (row.kind === 'FUEL' || row.kind === 'DRAIN') {
    const fee = row.kind === 'FUEL' ? BigInt(row.plan['need'] ?? '0') : BigInt(row.plan['reserved_fee'] ?? '0')
    const scope = { workspace: row.workspace_id, asset: row.asset }
    await post(tx, 'release', row.id, [{ ...scope, kind: 'tank_reserved', amount: -(amount + fee) }, { ...scope, kind: 'tank', amount: amount + fee }])
    if (row.parent_id) await tx.query('update transactions set next_run_at = $2 where id = $1 and lease_token is null', [row.parent_id, tx.now()])
  }
  const state = row.plan['cancel'] ? 'CANCELLED' : staking && staking.at > 0 ? 'PARTIAL' : 'FAILED'
  const failureReason = staking ? `${reason}; ${leftOver(staking)}` : reason
  // What never reached a chain has cost nothing.
  const fee = staking ? BigInt(row.plan['fees_paid'] ?? '0') : 0n
  // The fee of a stake whose first call is in a block was earned.
  const refunded: Record<string, string> = row.platform_fee && state !== 'PARTIAL' ? { refunded: '1' } : {}
  if (row.plan['cancel']) await tx.query(`update replacements set state = 'DONE', updated_at = $2 where id = $1`, [row.plan['cancel'], tx.now()])
  await tx.query(
    `update replacements set state = 'REFUSED', reason = 'the transfer has failed', updated_at = $2
     where transaction_id = $1 and state in ('PENDING', 'FUELING')`, [row.id, tx.now()])
  await advance(tx, row, { state, status: 'failed', failure_reason: failureReason, fee, plan: refunded })
  if ('refunded' in refunded) await releasePlatformFee(tx, services, row.id)
  if (ASKED_FOR.has(row.kind)) {
    const shown = presentTransaction({ ...row, state, status: 'failed', failure_reason: failureReason, fee: fee.toString(), plan: { ...row.plan, ...refunded } }, services.registry)
    await emit(tx, row.workspace_id, row.sub_account_id, 'transaction.failed', stringifyJson(shown))
  }
}
