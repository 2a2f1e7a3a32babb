import { fail } from '../../core/engine/chain.ts'
import { isOwnRequest, type TransactionRow } from '../../core/engine/transaction.ts'
import { receiptsOf } from '../../core/engine/request.ts'
import { ENDED_IN_BLOCK, type Kind, type StateRule } from '../../core/engine/interfaces/kind.ts'
import type { Environment } from '../../core/environment.ts'
import type { Database } from '../../core/database/pool.ts'
import type { Registry } from '@custody/chains'
import type { Metrics } from '../../core/metrics.ts'
import type { Aml } from '../aml/aml.ts'
import {
  awaitApproval,
  awaitPolicy,
  endApproval,
  returnForApproval,
} from '../approvals/wait-for-approvals.ts'
import type { WorkspacePolicies } from '../approvals/workspace-policies.ts'
import { releaseFloat } from '../gas-tanks/float.ts'
import { releaseTankFee, reclaimEnergy } from '../gas-tanks/energy-loan.ts'
import { platformFee } from '../prepaid-fee/fees.ts'
import { priceStaking, stepRefusal } from './build.ts'
import { giveBackStake, leftOver } from './fail.ts'
import { nextRecorded } from './recorded.ts'
import { settleStaking } from './settle.ts'
import { undoStep } from './undo.ts'
import { generationOf } from '../../core/engine/settlement.ts'
import { actionOf, stakingOf, type StakingKind } from './steps.ts'

interface Services {
  environment: Environment
  database: Database
  registry: Registry
  metrics: Metrics
  aml: Aml
  policies: WorkspacePolicies
}

const statesOf = (services: Services): readonly StateRule<StakingKind>[] => [
  {
    state: 'QUEUED',
    run: 'build',
    next: ['APPROVAL', 'FUELING', 'SIGNING', 'VOIDING', 'FAILED', 'PARTIAL'],
  },
  // Only a stake, before its first call.
  {
    state: 'APPROVAL',
    run: (row) => awaitApproval(services, row),
    next: ['QUEUED', 'SIGNING', 'VOIDING'],
  },
  // The next call, after the earlier one is in a block; or a call that was found in the nodes'
  // records.
  {
    state: 'FUELING',
    run: 'awaitFuel',
    // Back to QUEUED if the policy does not allow the fuel.
    next: ['SIGNING', 'QUEUED', 'CONFIRMING', 'VOIDING', 'FAILED', 'PARTIAL'],
  },
  {
    state: 'SIGNING',
    run: 'sign',
    next: ['SIGNED', 'APPROVAL', 'QUEUED', 'FUELING', 'VOIDING', 'FAILED', 'PARTIAL'],
  },
  { state: 'SIGNED', run: 'broadcast', next: ['BROADCASTING'] },
  {
    state: 'BROADCASTING',
    run: 'broadcast',
    next: ['CONFIRMING', 'QUEUED', 'VOIDING', 'FAILED', 'PARTIAL'],
  },
  {
    state: 'CONFIRMING',
    run: 'confirm',
    next: [
      // The next call, if it is signed already.
      'BROADCASTING',
      'FUELING',
      'CONFIRMED',
      'REVERTED',
      'PARTIAL',
      'QUEUED',
      'VOIDING',
      'FAILED',
    ],
  },
  { state: 'VOIDING', run: 'void', next: ['CONFIRMING', 'FAILED', 'PARTIAL'] },
  ...ENDED_IN_BLOCK,
  { state: 'PARTIAL', next: ['CONFIRMING'] },
  { state: 'FAILED', next: [] },
]

/**
 * Whether a policy may require approvals of the next call. A stake that the nodes refuse after its
 * first call ends with what is staked.
 */
const isFirstOfStake = (row: TransactionRow<StakingKind>): boolean =>
  row.kind === 'STAKE' && stakingOf(row).at === 0

/**
 * A stake, an unstake or a release: consecutive calls to the chain, requested by a caller or by an
 * operator's order.
 */
export const stakingKind = (services: Services): Kind<StakingKind> => ({
  ...platformFee(services),
  states: statesOf(services),
  isJudged: (row) => row.kind === 'STAKE' && isOwnRequest(row),
  spendsBalance: (row) => row.kind === 'STAKE' && isFirstOfStake(row),
  heldBack: async (row) => isFirstOfStake(row) && (await awaitPolicy(services, row)),
  refused: async (row, refusal) =>
    isFirstOfStake(row) && returnForApproval(services, row, refusal, async () => row.state),
  endsIfHeld: async (row) => row.plan.order !== undefined && isFirstOfStake(row),
  failing: (tx, row, reason) => endApproval(tx, row, reason),
  action: (row) => actionOf(stakingOf(row)),
  refusal: (chain, task) => stepRefusal(services, chain, task),
  price: (chain, task) => priceStaking(services, chain, task),
  async recorded(row) {
    if (row.plan.adopted_steps === undefined) return null
    const hash = await nextRecorded(services, row)
    if (hash !== null) return { hash }
    return row.plan.adopted === undefined
      ? null
      : fail('its next call was never signed, and its request is no longer available')
  },
  async purpose(row) {
    if (row.plan.order !== undefined) return { kind: 'tank-stake', order: row.plan.order }
    return {
      kind: 'stake',
      step: actionOf(stakingOf(row)).kind,
      ...(await receiptsOf(services, row.request, 'transactions', row.id)),
    }
  },
  async settle(tx, row, o) {
    if (!o.staking) throw new Error('the chain does not report the result of a staking call')
    await settleStaking(services, tx, row, stakingOf(row), { ...o, staking: o.staking })
  },
  undo: (tx, row, { step }) => undoStep(tx, row, step),
  async release(tx, row, reason) {
    const under = stakingOf(row)
    await giveBackStake(tx, row, under)
    await reclaimEnergy(services, tx, row)
    await (row.wallet_id === null ? releaseTankFee(tx, row) : releaseFloat(tx, row))
    const isPartial = under.at > 0
    return {
      ...(isPartial ? { state: 'PARTIAL' as const } : {}),
      reason: `${reason}; ${leftOver(under)}`,
      fee: BigInt(row.plan.fees_paid ?? '0'),
      // The fee of a stake whose first call is in a block is not refunded.
      // Nor that of one that was confirmed once.
      ...(row.platform_fee && !isPartial && generationOf(row) === 0
        ? { plan: { refunded: '1' } }
        : {}),
    }
  },
})
