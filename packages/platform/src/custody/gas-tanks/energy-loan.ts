import type { TronAction } from '@custody/chains'
import type { Queryable, Database } from '../../core/database/pool.ts'
import { lockedBalance, post, type Posting } from '../../core/ledger/post.ts'
import type { Loan } from '../../core/engine/chain.ts'
import { insertTransaction } from '../../core/engine/insert.ts'
import { advance, wakeOne } from '../../core/engine/lease.ts'
import {
  ENDED_IN_BLOCK,
  type Kind,
  type StateRule,
  type Outcome,
} from '../../core/engine/interfaces/kind.ts'
import { postSettled, reverseSettled, settlementReference } from '../../core/engine/settlement.ts'
import type { Environment } from '../../core/environment.ts'
import type { Logger } from 'pino'
import type { Plan, TransactionRow } from '../../core/engine/transaction.ts'
import { fuelOf, type Supply } from './float.ts'

interface Services {
  environment: Environment
  database: Database
  log: Logger
}

const scopeOf = (row: TransactionRow) => ({ workspace: row.workspace_id, asset: row.fee_asset })

/** Returns the delegate or undelegate call of an energy loan or its return. */
function callOf(row: TransactionRow): TronAction {
  return {
    kind: row.kind === 'LEND' ? 'delegate' : 'undelegate',
    resource: 'ENERGY',
    amount: BigInt(row.amount),
    receiver: row.destination_id,
  }
}

/**
 * Returns the postings of the fee of a gas tank's own call; the unused part of the reservation
 * returns to the tank.
 */
export function tankFeePostings(row: TransactionRow, fee: bigint): Posting[] {
  const held = BigInt(row.plan.reserved_fee ?? '0')
  const scope = { workspace: row.workspace_id, asset: row.fee_asset }
  return [
    { ...scope, kind: 'tank_reserved', amount: -held },
    { ...scope, kind: 'chain', amount: fee },
    { ...scope, kind: 'tank', amount: held - fee },
  ]
}

export async function releaseTankFee(tx: Queryable, row: TransactionRow): Promise<void> {
  const held = BigInt(row.plan.reserved_fee ?? '0')
  await post(tx, 'tank-fee-release', settlementReference(row), [
    { ...scopeOf(row), kind: 'tank_reserved', amount: -held },
    { ...scopeOf(row), kind: 'tank', amount: held },
  ])
}

/**
 * Whether the tank can still delegate this much stake. Its stake and balance stay locked until the
 * database transaction ends.
 */
export async function canLend(tx: Queryable, row: TransactionRow, loan: Loan): Promise<boolean> {
  const staked = await lockedBalance(tx, {
    ...scopeOf(row),
    kind: 'staked_energy',
    address: loan.tank,
  })
  // `lendable` is reported by the chain, which does not know loans that are reserved but not sent
  // yet, so these are subtracted.
  const underWay = await lockedBalance(tx, {
    ...scopeOf(row),
    kind: 'staked_energy_reserved',
    address: loan.tank,
  })
  return (
    staked >= loan.amount &&
    loan.lendable - underWay >= loan.amount &&
    (await lockedBalance(tx, {
      ...scopeOf(row),
      kind: 'tank',
    })) >=
      loan.fee + loan.backFee
  )
}

/**
 * Reserves a loan after {@link canLend}, with its own fee and the fee of its return.
 * @returns id of the loan transaction
 */
export async function reserveLoan(
  services: Pick<Services, 'environment'>,
  tx: Queryable,
  row: TransactionRow,
  loan: Loan,
): Promise<string> {
  const id = services.environment.uuid()
  const scope = scopeOf(row)
  const fees = loan.fee + loan.backFee
  await post(tx, 'loan-reserve', id, [
    { ...scope, kind: 'staked_energy', address: loan.tank, amount: -loan.amount },
    {
      ...scope,
      kind: 'staked_energy_reserved',
      address: loan.tank,
      amount: loan.amount,
    },
    { ...scope, kind: 'tank', amount: -fees },
    { ...scope, kind: 'tank_reserved', amount: fees },
  ])
  await insertLoan(tx, row, {
    kind: 'LEND',
    id,
    tank: loan.tank,
    borrower: row.source_id as string,
    amount: loan.amount,
    plan: { reserved_fee: loan.fee.toString(), back_fee: loan.backFee.toString() },
  })
  return id
}

/** A loan of a tank's stake to an address, or its return; `amount` in sun. */
interface LoanTransaction {
  kind: 'LEND' | 'LEND_BACK'
  id: string
  tank: string
  borrower: string
  amount: bigint
  plan: Plan & { reserved_fee: string }
}

/** Inserts the transaction of a loan or its return. */
async function insertLoan(
  tx: Queryable,
  of: TransactionRow,
  { kind, id, tank, borrower, amount, plan }: LoanTransaction,
): Promise<void> {
  await insertTransaction(tx, {
    id,
    kind,
    state: 'QUEUED',
    workspace_id: of.workspace_id,
    sub_account_id: of.sub_account_id,
    parent_id: kind === 'LEND' ? of.id : of.parent_id,
    asset: of.fee_asset,
    network: of.network,
    amount,
    fee: BigInt(plan.reserved_fee),
    fee_asset: of.fee_asset,
    source_type: 'GAS_TANK',
    source_id: tank,
    destination_type: 'OMNIBUS',
    destination_id: borrower,
    plan: { fee_limit: '0', resource: 'ENERGY', ...plan },
  })
}

export async function loanOf(
  database: Queryable,
  row: TransactionRow,
): Promise<Supply | undefined> {
  return row.plan.loan_id ? fuelOf(database, row.workspace_id, row.plan.loan_id) : undefined
}

/**
 * Books a final loan or return. If the borrowing transfer has already ended, the loan is returned
 * immediately; the fee of the return was reserved with the loan.
 */
async function settleLoan(
  services: Services,
  tx: Queryable,
  row: TransactionRow,
  o: Outcome,
): Promise<void> {
  const scope = scopeOf(row)
  const amount = BigInt(row.amount)
  const [tank, borrower] = [row.source_id as string, row.destination_id as string]
  const lends = row.kind === 'LEND'
  const fresh = await tx.one<{ ended: string | null }>(
    `select plan->>'ended' ended from transactions where workspace_id = $2
    and id = $1 for update`,
    [row.id, row.workspace_id],
  )
  const moved: Posting[] = !o.succeeded
    ? []
    : lends
      ? [
          { ...scope, kind: 'staked_energy_reserved', address: tank, amount: -amount },
          { ...scope, kind: 'staked_energy', address: borrower, amount },
        ]
      : [
          { ...scope, kind: 'staked_energy', address: borrower, amount: -amount },
          { ...scope, kind: 'staked_energy', address: tank, amount },
        ]
  await postSettled(tx, row, lends ? 'loan' : 'loan-return', [
    ...moved,
    ...tankFeePostings(row, o.fee),
  ])
  if (!o.succeeded && lends) await releaseLoan(tx, row, false)
  const outcome = o.succeeded
    ? {
        state: 'CONFIRMED' as const,
        status: 'confirmed' as const,
        confirmed_at: new Date(services.environment.now()),
        plan: { settled: '1' },
      }
    : {
        state: 'REVERTED' as const,
        status: 'failed' as const,
        failure_reason: 'the chain rejected it',
      }
  await advance(tx, row, {
    ...outcome,
    hash: row.hash as string,
    fee: o.fee,
    confirmations: o.confirmations,
    last_error: null,
  })
  if (!o.succeeded && !lends) {
    services.log.error(
      { transaction: row.id, tank, borrower },
      'energy that a gas tank lent was not returned; it is still delegated on the chain',
    )
  }
  if (lends && o.succeeded && fresh?.ended === '1') await queueReturn(services, tx, row)
  if (lends) await wakeOne(tx, row.workspace_id, row.parent_id)
}

/** Queues the return of a loan. */
async function queueReturn(
  services: Pick<Services, 'environment'>,
  tx: Queryable,
  loan: TransactionRow,
): Promise<void> {
  // After a reorganisation a loan is booked again, and its return may be under way.
  if (await returnOf(tx, loan)) return
  await insertLoan(tx, loan, {
    kind: 'LEND_BACK',
    id: services.environment.uuid(),
    tank: loan.source_id as string,
    borrower: loan.destination_id as string,
    amount: BigInt(loan.amount),
    plan: { reserved_fee: loan.plan.back_fee ?? '0', loan_id: loan.id },
  })
}

/** Returns the return of a loan; undefined if none was queued. */
const returnOf = (
  tx: Queryable,
  loan: TransactionRow,
): Promise<Pick<TransactionRow, 'id' | 'status'> | undefined> =>
  tx.one(
    `select id, status from transactions where workspace_id = $1 and parent_id = $2 and kind = 'LEND_BACK'
       and plan->>'loan_id' = $3 and state <> 'FAILED' limit 1`,
    [loan.workspace_id, loan.parent_id, loan.id],
  )

/** Ends the return of a loan that the chain took back and that can no longer be made. */
async function endReturn(tx: Queryable, loan: TransactionRow): Promise<void> {
  const back = await returnOf(tx, loan)
  if (back?.status !== 'pending') return
  await tx.query(
    `update transactions set state = 'FAILED', status = 'failed', failure_reason = $3, fee = 0,
       next_run_at = null, lease_until = null, lease_token = null, waiting = null, updated_at = $4
     where workspace_id = $1 and id = $2`,
    [
      loan.workspace_id,
      back.id,
      'a reorganisation of the chain took back the loan, so there is nothing to return',
      tx.now(),
    ],
  )
  await tx.query(
    `update chain_transactions set state = 'VOID' where workspace_id = $1 and transaction_id = $2
       and state in ('BUILT', 'SIGNED', 'EXPIRED')`,
    [loan.workspace_id, back.id],
  )
}

/**
 * Returns delegated energy to the tank when its transfer has ended, or, if the loan is pending, as
 * soon as the loan is final.
 */
export async function reclaimEnergy(
  services: Pick<Services, 'environment'>,
  tx: Queryable,
  row: TransactionRow,
): Promise<void> {
  if (!row.plan.loan_id) return
  const loan = await tx.one<TransactionRow>(
    'select * from transactions where workspace_id = $2 and id = $1 for update',
    [row.plan.loan_id, row.workspace_id],
  )
  if (!loan || loan.status === 'failed' || loan.plan.ended !== undefined) return
  await tx.query(
    `update transactions set plan = plan || '{"ended":"1"}' where workspace_id = $2 and id = $1`,
    [loan.id, loan.workspace_id],
  )
  if (loan.plan.settled === '1') await queueReturn(services, tx, loan)
}

/**
 * Releases stake and fees of a failed loan to the tank.
 * @param whole whether the loan's own fee was not spent
 */
async function releaseLoan(tx: Queryable, row: TransactionRow, whole = true): Promise<void> {
  const scope = scopeOf(row)
  const amount = BigInt(row.amount)
  const fees =
    BigInt(row.plan.back_fee ?? '0') + (whole ? BigInt(row.plan.reserved_fee ?? '0') : 0n)
  await post(tx, 'loan-release', settlementReference(row), [
    { ...scope, kind: 'staked_energy_reserved', address: row.source_id, amount: -amount },
    {
      ...scope,
      kind: 'staked_energy',
      address: row.source_id,
      amount,
    },
    { ...scope, kind: 'tank_reserved', amount: -fees },
    { ...scope, kind: 'tank', amount: fees },
  ])
  await wakeOne(tx, row.workspace_id, row.parent_id)
}

const LOAN_STATES: readonly StateRule<'LEND' | 'LEND_BACK'>[] = [
  { state: 'QUEUED', run: 'build', next: ['SIGNING', 'FAILED'] },
  { state: 'SIGNING', run: 'sign', next: ['SIGNED', 'QUEUED', 'FAILED'] },
  { state: 'SIGNED', run: 'broadcast', next: ['BROADCASTING'] },
  { state: 'BROADCASTING', run: 'broadcast', next: ['CONFIRMING', 'QUEUED', 'FAILED'] },
  {
    state: 'CONFIRMING',
    run: 'confirm',
    next: ['CONFIRMED', 'REVERTED', 'BROADCASTING', 'QUEUED', 'FAILED'],
  },
  ...ENDED_IN_BLOCK,
  { state: 'FAILED', next: [] },
]

/**
 * Kinds of the calls that delegate energy for one transfer and undelegate it, authorised by that
 * transfer's request.
 */
const lending = (
  services: Services,
  kind: 'delegate' | 'undelegate',
): Kind<'LEND' | 'LEND_BACK'> => ({
  states: LOAN_STATES,
  action: callOf,
  async purpose(row, _replacement, of) {
    const parent = await services.database.one<TransactionRow>(
      'select * from transactions where workspace_id = $2 and id = $1',
      [row.parent_id, row.workspace_id],
    )
    if (!parent) throw new Error('a loan of energy has no parent transaction')
    return { kind: 'lend', step: kind, for: await of(parent) }
  },
  settle: (tx, row, o) => settleLoan(services, tx, row, o),
  async undo(tx, row) {
    await reverseSettled(tx, row, ['loan', 'loan-return', 'loan-release'])
    return { settled: null }
  },
})

export const loanKind = (services: Services): Kind<'LEND'> => ({
  ...lending(services, 'delegate'),
  async release(tx, row) {
    await releaseLoan(tx, row)
    await endReturn(tx, row)
    return {}
  },
})

/** The return of a loan, which is retried until the tank has the stake back. */
export const loanReturnKind = (services: Services): Kind<'LEND_BACK'> => ({
  ...lending(services, 'undelegate'),
  retriesFailure: true,
})
