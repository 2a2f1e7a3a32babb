import { stringifyJson } from '@custody/request-auth'
import type { Queryable } from '../database/pool.ts'
import { emit, post, type Posting } from '../ledger/post.ts'
import type { Services } from '../engine/services.ts'
import { presentTransaction } from '../engine/present.ts'
import type { TransactionRow } from '../engine/transaction.ts'
import { floatPostings, overdraws } from '../gas-tanks/float.ts'
import { recordEnd } from '../engine/record-end.ts'
import { advance } from '../engine/lease.ts'
import { tankFeePostings } from '../gas-tanks/energy-loan.ts'
import { giveBackStake, leftOver } from './fail.ts'
import { release } from './release.ts'
import { actionOf, poolsOf, stakeAccounts, type Staking, type StakingStep } from './steps.ts'

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

/** Books a final step. Then the next step is built, or the staking transaction is completed. */
export async function settleStaking(
  services: Services,
  tx: Queryable,
  row: TransactionRow,
  staking: Staking,
  o: StepOutcome,
): Promise<void> {
  const { kind: step } = actionOf(staking)
  const paid = BigInt(row.plan.fees_paid ?? '0') + o.fee
  const isLast = !o.succeeded || staking.at === staking.steps.length - 1
  const held = BigInt(row.plan.need ?? '0') - paid + o.fee
  await post(
    tx,
    `staking-${step}`,
    row.id,
    [
      ...(o.succeeded ? moves(row, staking, step) : []),
      ...(row.wallet_id === null
        ? tankFeePostings(row, o.fee)
        : isLast
          ? floatPostings(row, held, o.fee)
          : [
              {
                workspace: row.workspace_id,
                asset: row.fee_asset,
                kind: 'float_reserved' as const,
                address: row.source_id,
                amount: -o.fee,
              },
              {
                workspace: row.workspace_id,
                asset: row.fee_asset,
                kind: 'chain' as const,
                amount: o.fee,
              },
            ]),
    ],
    overdraws(held, o.fee),
  )
  if (!o.succeeded) {
    await giveBackStake(tx, row, staking)
    const reason = `the chain executed the ${step} and reverted it; ${leftOver(staking)}`
    await advance(tx, row, {
      state: 'REVERTED',
      status: 'failed',
      failure_reason: reason,
      fee: paid,
      confirmations: o.confirmations,
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
  if (step === 'unfreeze') await noteCooldown(tx, row, staking, o.staking.time)
  // The chain's unfreeze call also releases TRX whose cooldown is over, even if no release was
  // requested.
  const released =
    o.staking.withdrawn > 0n ? await release(services, tx, row, o.staking.withdrawn) : 0n
  if (!isLast) {
    await advance(tx, row, {
      state: 'FUELING',
      plan: { step: String(staking.at + 1), fees_paid: paid.toString(), earlier: null },
      confirmations: 0,
      last_error: null,
      run_in_ms: 0,
    })
    return
  }
  const confirmedAt = new Date(services.environment.now())
  const amount = staking.kind === 'RELEASE' ? released : staking.amount
  await advance(tx, row, {
    state: 'CONFIRMED',
    status: 'confirmed',
    confirmed_at: confirmedAt,
    amount,
    fee: paid,
    confirmations: o.confirmations,
    last_error: null,
    ...(row.hash === null ? {} : { hash: row.hash }),
  })
  recordEnd(services, row, 'confirmed')
  const shown = presentTransaction(
    {
      ...row,
      state: 'CONFIRMED',
      status: 'confirmed',
      confirmed_at: confirmedAt,
      amount: amount.toString(),
      fee: paid.toString(),
      confirmations: o.confirmations,
    },
    services.registry,
  )
  await emit(
    tx,
    row.workspace_id,
    row.sub_account_id,
    'transaction.confirmed',
    stringifyJson(shown),
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
      amount: shown.amount,
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

async function noteCooldown(
  tx: Queryable,
  row: TransactionRow,
  { account, address, resource, amount }: Staking,
  blockTime: number,
): Promise<void> {
  const releaseAt = new Date(blockTime + Number(row.plan.delay_days) * DAY_MS)
  await tx.query(
    `insert into cooldowns (transaction_id, wallet_id, network, account, address, resource, amount, release_at, workspace_id)
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
