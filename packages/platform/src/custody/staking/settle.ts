import { stringifyJson } from '@custody/request-auth'
import type { Queryable } from '../../core/database/pool.ts'
import { emit, type Posting } from '../../core/ledger/post.ts'
import { postSettled } from '../../core/engine/settlement.ts'
import type { Environment } from '../../core/environment.ts'
import type { Registry } from '@custody/chains'
import type { Metrics } from '../../core/metrics.ts'
import { presentTransaction } from '../../core/engine/present.ts'
import type { TransactionRow } from '../../core/engine/transaction.ts'
import { floatPostings, overdraws } from '../gas-tanks/float.ts'
import { recordEnd } from '../../core/engine/outcomes/record-end.ts'
import { advance } from '../../core/engine/lease.ts'
import { tankFeePostings } from '../gas-tanks/energy-loan.ts'
import { giveBackStake, leftOver } from './fail.ts'
import { release } from './release.ts'
import { actionOf, poolsOf, stakeAccounts, type Staking, type StakingStep } from './steps.ts'

interface Services {
  environment: Environment
  registry: Registry
  metrics: Metrics
}

const DAY_MS = 86_400_000
const EVENTS = {
  STAKE: 'staking.staked',
  UNSTAKE: 'staking.unstaked',
  RELEASE: 'staking.released',
} as const

/** Result of a step on the chain, once it is final; `staking` as reported by the chain. */
export interface StepOutcome {
  fee: bigint
  succeeded: boolean
  confirmations: number
  staking: { withdrawn: bigint; time: number }
}

/**
 * Books a final step. Then the next step is built, or the staking transaction is completed or, if
 * the chain reverted the step, failed.
 */
export async function settleStaking(
  services: Services,
  tx: Queryable,
  row: TransactionRow,
  staking: Staking,
  outcome: StepOutcome,
): Promise<void> {
  const { kind: step } = actionOf(staking)
  const paid = BigInt(row.plan.fees_paid ?? '0') + outcome.fee
  const isLast = !outcome.succeeded || staking.at === staking.steps.length - 1
  const reserved = BigInt(row.plan.need ?? '0') - paid + outcome.fee
  await postSettled(
    tx,
    row,
    `staking-${step}`,
    [
      ...(outcome.succeeded ? moves(row, staking, step) : []),
      ...feePostings(row, outcome.fee, reserved, isLast),
    ],
    overdraws(reserved, outcome.fee),
  )
  if (!outcome.succeeded) return failStaking(services, tx, row, staking, { ...outcome, paid })
  if (step === 'unfreeze') await insertCooldown(tx, row, staking, outcome.staking.time)
  // The chain's unfreeze call also releases TRX whose cooldown is over, even if no release was
  // requested.
  const released =
    outcome.staking.withdrawn > 0n
      ? await release(services, tx, row, outcome.staking.withdrawn)
      : 0n
  if (!isLast) {
    // After a reorganisation the next call may be signed already.
    const signed = await signedCall(tx, row, staking.steps[staking.at + 1])
    await advance(tx, row, {
      state: signed === undefined ? 'FUELING' : 'BROADCASTING',
      ...(signed === undefined ? {} : { hash: signed.hash }),
      plan: { step: String(staking.at + 1), fees_paid: paid.toString(), earlier: null },
      confirmations: 0,
      last_error: null,
      run_in_ms: 0,
    })
    return
  }
  await completeStaking(services, tx, row, staking, {
    paid,
    confirmations: outcome.confirmations,
    amount: staking.kind === 'RELEASE' ? released : staking.amount,
  })
}

const signedCall = (
  tx: Queryable,
  row: TransactionRow,
  step: StakingStep | undefined,
): Promise<{ hash: string } | undefined> =>
  tx.one(
    `select hash from chain_transactions where workspace_id = $1 and transaction_id = $2 and step = $3
       and state in ('SIGNED', 'INCLUDED')`,
    [row.workspace_id, row.id, step],
  )

/**
 * Returns the postings of a step's fee: from the gas tank, or from the float that was reserved for
 * it. The last step returns the rest of the reservation.
 */
function feePostings(
  row: TransactionRow,
  fee: bigint,
  reserved: bigint,
  isLast: boolean,
): Posting[] {
  if (row.wallet_id === null) return tankFeePostings(row, fee)
  if (isLast) return floatPostings(row, reserved, fee)
  return [
    {
      workspace: row.workspace_id,
      asset: row.fee_asset,
      kind: 'float_reserved',
      address: row.source_id,
      amount: -fee,
    },
    {
      workspace: row.workspace_id,
      asset: row.fee_asset,
      kind: 'chain',
      amount: fee,
    },
  ]
}

/** Ends a staking transaction whose step the chain reverted, and returns its reserved stake. */
async function failStaking(
  services: Services,
  tx: Queryable,
  row: TransactionRow,
  staking: Staking,
  { paid, confirmations }: { paid: bigint; confirmations: number },
): Promise<void> {
  await giveBackStake(tx, row, staking)
  const reason = `the chain executed the ${actionOf(staking).kind} and reverted it; ${leftOver(staking)}`
  await advance(tx, row, {
    state: 'REVERTED',
    status: 'failed',
    failure_reason: reason,
    fee: paid,
    confirmations,
    last_error: null,
  })
  recordEnd(services, row, 'failed')
  return emit(
    tx,
    row.workspace_id,
    row.sub_account_id,
    'transaction.failed',
    stringifyJson(
      presentTransaction(
        {
          ...row,
          state: 'REVERTED',
          status: 'failed',
          failure_reason: reason,
          fee: paid.toString(),
        },
        services.registry,
      ),
    ),
  )
}

/** Completes a staking transaction after its last step and emits its events. */
async function completeStaking(
  services: Services,
  tx: Queryable,
  row: TransactionRow,
  staking: Staking,
  { paid, confirmations, amount }: { paid: bigint; confirmations: number; amount: bigint },
): Promise<void> {
  const confirmedAt = new Date(services.environment.now())
  await advance(tx, row, {
    state: 'CONFIRMED',
    status: 'confirmed',
    confirmed_at: confirmedAt,
    amount,
    fee: paid,
    confirmations,
    last_error: null,
    ...(row.hash === null ? {} : { hash: row.hash }),
  })
  recordEnd(services, row, 'confirmed')
  const presented = presentTransaction(
    {
      ...row,
      state: 'CONFIRMED',
      status: 'confirmed',
      confirmed_at: confirmedAt,
      amount: amount.toString(),
      fee: paid.toString(),
      confirmations,
    },
    services.registry,
  )
  await emit(
    tx,
    row.workspace_id,
    row.sub_account_id,
    'transaction.confirmed',
    stringifyJson(presented),
  )
  await emit(
    tx,
    row.workspace_id,
    row.sub_account_id,
    EVENTS[staking.kind],
    stringifyJson({
      id: row.id,
      asset: row.asset,
      address: staking.address,
      ...(staking.resource === null ? {} : { resource: staking.resource }),
      amount: presented.amount,
      hash: row.hash,
    }),
  )
}

/** Returns the postings of a step. */
function moves(
  row: TransactionRow,
  { account, address, resource, amount, at, steps }: Staking,
  step: StakingStep,
): Posting[] {
  if (step === 'withdraw') return []
  const { staked, reserved } = stakeAccounts(resource)
  const { scope, held } = poolsOf(row)
  switch (step) {
    // A stake that is going to be delegated stays reserved until then.
    case 'freeze':
      return [
        { ...scope, kind: held, amount: -amount },
        { ...scope, kind: at === steps.length - 1 ? staked : reserved, address: account, amount },
      ]
    case 'delegate':
      return [
        { ...scope, kind: reserved, address: account, amount: -amount },
        { ...scope, kind: staked, address, amount },
      ]
    case 'undelegate':
      return [
        { ...scope, kind: reserved, address, amount: -amount },
        { ...scope, kind: reserved, address: account, amount },
      ]
    case 'unfreeze':
      return [
        { ...scope, kind: reserved, address: account, amount: -amount },
        { ...scope, kind: 'cooling', address, amount },
      ]
  }
}

/** Stores when the unstaked amount can be released. */
async function insertCooldown(
  tx: Queryable,
  row: TransactionRow,
  { account, address, resource, amount }: Staking,
  blockTime: number,
): Promise<void> {
  const releaseAt = new Date(blockTime + Number(row.plan.delay_days) * DAY_MS)
  await tx.query(
    `insert into cooldowns (transaction_id, wallet_id, network, account, address, resource, amount,
      release_at, workspace_id)
     values ($1, $2, $3, $4, $5, $6, $7, $8, $9) on conflict do nothing`,
    [
      row.id,
      row.wallet_id,
      row.network,
      account,
      address,
      resource,
      amount.toString(),
      releaseAt,
      row.workspace_id,
    ],
  )
}
