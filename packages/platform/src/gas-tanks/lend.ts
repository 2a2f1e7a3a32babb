import type { TronAction } from '@custody/chains'
import type { Queryable } from '../database/pool.ts'
import { lockedBalance, post, type Posting } from '../ledger/post.ts'
import type { Services } from '../engine/services.ts'
import type { TransactionRow } from '../engine/transaction.ts'
import { advance } from '../engine/lease.ts'

/** Stake of a tank that is lent for its energy, in sun, and what the two calls for it cost at most. */
export interface Loan { tank: string; amount: bigint; /** What the chain would lend, before what is under way. */ lendable: bigint; fee: bigint; backFee: bigint }

const scopeOf = (row: TransactionRow) => ({ workspace: row.workspace_id, asset: row.fee_asset })

/** The call of a loan or its return; null for every other kind of transaction. */
export function lendingOf(row: TransactionRow): TronAction | null {
  if (row.kind !== 'LEND' && row.kind !== 'LEND_BACK') return null
  return { kind: row.kind === 'LEND' ? 'delegate' : 'undelegate', resource: 'ENERGY', amount: BigInt(row.amount), receiver: row.destination_id }
}

/** What the fee of a tank's own call leaves of its reservation returns to the tank. */
export function tankFeePostings(row: TransactionRow, fee: bigint): Posting[] {
  const held = BigInt(row.plan['reserved_fee'] ?? '0')
  const scope = { workspace: row.workspace_id, asset: row.fee_asset }
  return [{ ...scope, kind: 'tank_reserved', amount: -held }, { ...scope, kind: 'chain', amount: fee }, { ...scope, kind: 'tank', amount: held - fee }]
}

export async function releaseTankFee(tx: Queryable, row: TransactionRow): Promise<void> {
  const held = BigInt(row.plan['reserved_fee'] ?? '0')
  await post(tx, 'tank-fee-release', row.id, [{ ...scopeOf(row), kind: 'tank_reserved', amount: -held }, { ...scopeOf(row), kind: 'tank', amount: held }])
}

/** Whether the tank can still lend so much; its stake and balance are locked until the database transaction ends. */
export async function canLend(tx: Queryable, row: TransactionRow, loan: Loan): Promise<boolean> {
  const staked = await lockedBalance(tx, { ...scopeOf(row), kind: 'staked_energy', address: loan.tank })
  // The chain lends nothing that today's use rests on, and knows nothing yet of loans that are not sent.
  const underWay = await lockedBalance(tx, { ...scopeOf(row), kind: 'staked_energy_reserved', address: loan.tank })
  return staked >= loan.amount && loan.lendable - underWay >= loan.amount && await lockedBalance(tx, { ...scopeOf(row), kind: 'tank' }) >= loan.fee + loan.backFee
}

/** Under {@link canLend}: the loan, with the fee of its return held beside its own. */
export async function reserveLoan(services: Services, tx: Queryable, row: TransactionRow, loan: Loan): Promise<string> {
  const id = services.environment.uuid()
  const scope = scopeOf(row)
  const fees = loan.fee + loan.backFee
  await post(tx, 'loan-reserve', id, [
    { ...scope, kind: 'staked_energy', address: loan.tank, amount: -loan.amount }, { ...scope, kind: 'staked_energy_reserved', address: loan.tank, amount: loan.amount },
    { ...scope, kind: 'tank', amount: -fees }, { ...scope, kind: 'tank_reserved', amount: fees },
  ])
  await insert(tx, row, 'LEND', id, loan.tank, row.source_id as string, loan.amount, { reserved_fee: loan.fee.toString(), back_fee: loan.backFee.toString() })
  return id
}

async function insert(tx: Queryable, of: TransactionRow, kind: 'LEND' | 'LEND_BACK', id: string, tank: string, borrower: string, amount: bigint, plan: Record<string, string>): Promise<void> {
  await tx.query(
    `insert into transactions (id, kind, workspace_id, sub_account_id, parent_id, asset, network, amount, fee, fee_asset, source_type, source_id,
         destination_type, destination_id, state, status, plan, next_run_at, created_at, updated_at)
     values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $6, 'GAS_TANK', $10, 'OMNIBUS', $11, 'QUEUED', 'pending', $12, $13, $13, $13)`,
    [id, kind, of.workspace_id, of.sub_account_id, kind === 'LEND' ? of.id : of.parent_id, of.fee_asset, of.network, amount.toString(), plan['reserved_fee'], tank, borrower,
      JSON.stringify({ fee_limit: '0', resource: 'ENERGY', ...plan }), tx.now()])
}

interface LoanState { status: string; failure_reason: string | null; settled: string | null }

export async function loanOf(database: Queryable, row: TransactionRow): Promise<LoanState | undefined> {
  if (!row.plan['loan_id']) return undefined
  const loan = await database.one<LoanState>(`select status, failure_reason, plan->>'settled' settled from transactions where id = $1`, [row.plan['loan_id']])
  if (!loan) throw new Error('the loan of this transfer is missing')
  return loan
}

/** A loan, or its return, is final. Its return was held for; whoever borrowed may have ended already. */
export async function settleLoan(services: Services, tx: Queryable, row: TransactionRow, o: { fee: bigint; succeeded: boolean; confirmations: number }): Promise<void> {
  const scope = scopeOf(row)
  const amount = BigInt(row.amount)
  const [tank, borrower] = [row.source_id as string, row.destination_id as string]
  const lends = row.kind === 'LEND'
  const fresh = await tx.one<{ ended: string | null }>(`select plan->>'ended' ended from transactions where id = $1 for update`, [row.id])
  const moved: Posting[] = !o.succeeded ? [] : lends
    ? [{ ...scope, kind: 'staked_energy_reserved', address: tank, amount: -amount }, { ...scope, kind: 'staked_energy', address: borrower, amount }]
    : [{ ...scope, kind: 'staked_energy', address: borrower, amount: -amount }, { ...scope, kind: 'staked_energy', address: tank, amount }]
  await post(tx, lends ? 'loan' : 'loan-return', row.id, [...moved, ...tankFeePostings(row, o.fee)])
  if (!o.succeeded && lends) await releaseLoan(tx, row, false)
  const outcome = o.succeeded ? { state: 'CONFIRMED', status: 'confirmed' as const, confirmed_at: new Date(services.environment.now()), plan: { settled: '1' } } : { state: 'REVERTED', status: 'failed' as const, failure_reason: 'the chain refused it' }
  await advance(tx, row, { ...outcome, hash: row.hash as string, fee: o.fee, confirmations: o.confirmations, last_error: null })
  if (!o.succeeded && !lends) services.log.error({ transaction: row.id, tank, borrower }, 'lent energy did not come back; the stake is still lent on the chain')
  if (lends && o.succeeded && fresh?.ended === '1') await queueReturn(services, tx, row)
  if (lends) await tx.query('update transactions set next_run_at = $2 where id = $1 and lease_token is null', [row.parent_id, tx.now()])
}

async function queueReturn(services: Services, tx: Queryable, loan: TransactionRow): Promise<void> {
  await insert(tx, loan, 'LEND_BACK', services.environment.uuid(), loan.source_id as string, loan.destination_id as string, BigInt(loan.amount), { reserved_fee: String(loan.plan['back_fee']) })
}

/** The transfer that energy was lent for has ended: it goes back to the tank, now or as soon as it has been lent. */
export async function takeEnergyBack(services: Services, tx: Queryable, row: TransactionRow): Promise<void> {
  if (!row.plan['loan_id']) return
  const loan = await tx.one<TransactionRow>('select * from transactions where id = $1 for update', [row.plan['loan_id']])
  if (!loan || loan.status === 'failed' || loan.plan['ended'] !== undefined) return
  await tx.query(`update transactions set plan = plan || '{"ended":"1"}' where id = $1`, [loan.id])
  if (loan.plan['settled'] === '1') await queueReturn(services, tx, loan)
}

/** A loan that never was: stake and fees are the tank's again. `whole`: its own fee was not spent. */
export async function releaseLoan(tx: Queryable, row: TransactionRow, whole = true): Promise<void> {
  const scope = scopeOf(row)
  const amount = BigInt(row.amount)
  const fees = BigInt(row.plan['back_fee'] ?? '0') + (whole ? BigInt(row.plan['reserved_fee'] ?? '0') : 0n)
  await post(tx, 'loan-release', row.id, [
    { ...scope, kind: 'staked_energy_reserved', address: row.source_id, amount: -amount }, { ...scope, kind: 'staked_energy', address: row.source_id, amount },
    { ...scope, kind: 'tank_reserved', amount: -fees }, { ...scope, kind: 'tank', amount: fees },
  ])
  if (row.parent_id) await tx.query('update transactions set next_run_at = $2 where id = $1 and lease_token is null', [row.parent_id, tx.now()])
}
