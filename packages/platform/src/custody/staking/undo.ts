import type { Queryable } from '../../core/database/pool.ts'
import { floatReference } from '../gas-tanks/float.ts'
import { reverseSettled } from '../../core/engine/settlement.ts'
import type { Plan, TransactionRow } from '../../core/engine/transaction.ts'
import { stakingOf, type StakingKind, type StakingStep } from './steps.ts'

/** Entries that a step's result posts beside its own, and those of the operation's end. */
const WITH_A_STEP = ['staking-release', 'release', 'float-release', 'tank-fee-release']

/**
 * Takes back a booked step whose block has left the chain, and everything that was booked after it: the
 * later steps are in later blocks. The operation continues with this step.
 * @returns the changes of the plan
 */
export async function undoStep(
  tx: Queryable,
  row: TransactionRow<StakingKind>,
  step: StakingStep | null,
): Promise<Plan<StakingKind>> {
  const { steps, kind } = stakingOf(row)
  const at = step === null ? -1 : steps.indexOf(step)
  if (at < 0) throw new Error(`a ${kind} has no step ${step ?? ''}`)
  await reverseSettled(
    tx,
    row,
    [...steps.slice(at).map((each) => `staking-${each}`), ...WITH_A_STEP],
    [floatReference(row)],
  )
  await tx.query(
    'update cooldowns set released_by = null where workspace_id = $2 and released_by = $1',
    [row.id, row.workspace_id],
  )
  // A release takes everything that had matured when it was requested.
  if (kind === 'RELEASE')
    await tx.query(
      `update cooldowns set releasing_by = $1 where workspace_id = $2 and wallet_id = $3
         and released_by is null and releasing_by is null and release_at <= (
           select created_at from transactions where workspace_id = $2 and id = $1)`,
      [row.id, row.workspace_id, row.wallet_id],
    )
  if (step === 'unfreeze')
    await tx.query('delete from cooldowns where workspace_id = $2 and transaction_id = $1', [
      row.id,
      row.workspace_id,
    ])
  const earlier = await tx.one<{ fees: string | null }>(
    `select sum(fee)::text fees from chain_transactions where workspace_id = $2 and transaction_id = $1
       and state = 'CONFIRMED' and step = any($3)`,
    [row.id, row.workspace_id, steps.slice(0, at)],
  )
  return { step: at === 0 ? null : String(at), fees_paid: earlier?.fees ?? null }
}
