import type { SignedRequest } from '@custody/request-auth'
import { floatPostings, overdraws } from '../gas-tanks/float.ts'
import { reclaimEnergy } from '../gas-tanks/energy-loan.ts'
import { releaseNetworkFee } from '../gas-tanks/release.ts'
import type { Queryable, Database } from '../../core/database/pool.ts'
import { liveAttempts } from '../../core/engine/attempts.ts'
import { replacementsOf, type Replacement } from '../../core/engine/replacement.ts'
import { otherWalletPostings } from '../../core/engine/other-wallet.ts'
import { receiptsOf } from '../../core/engine/request.ts'
import {
  ENDED_IN_BLOCK,
  type Kind,
  type Outcome,
  type StateRule,
} from '../../core/engine/interfaces/kind.ts'
import type { Settings } from '../../core/settings/settings.ts'
import type { Environment } from '../../core/environment.ts'
import type { Registry, UnsignedTransaction } from '@custody/chains'
import type { Networks } from '../../core/engine/networks.ts'
import type { Metrics } from '../../core/metrics.ts'
import type { Logger } from 'pino'
import type { Forwards } from '../../core/engine/interfaces/listeners.ts'
import type { Aml } from '../aml/aml.ts'
import {
  awaitApproval,
  awaitPolicy,
  endApproval,
  returnForApproval,
} from '../approvals/wait-for-approvals.ts'
import { giveWay } from '../approvals/give-way.ts'
import type { WorkspacePolicies } from '../approvals/workspace-policies.ts'
import { endTransaction } from '../../core/engine/outcomes/settle.ts'
import { isForward, isOwnRequest, type TransactionRow } from '../../core/engine/transaction.ts'
import { generationOf, postSettled, reverseSettled } from '../../core/engine/settlement.ts'
import { post } from '../../core/ledger/post.ts'
import { platformFee } from '../prepaid-fee/fees.ts'
import type { Purpose } from '../../core/signing/sign.ts'
import { unbuild } from './unbuild.ts'
import {
  awaitUnfreezing,
  isUnfrozen,
  screenAgain,
  screenWithdrawal,
  startScreening,
} from './screening.ts'

interface Services {
  settings: Pick<Settings, 'feeBumpAfterMs'>
  environment: Environment
  database: Database
  registry: Registry
  networks: Networks
  metrics: Metrics
  log: Logger
  forwards: Forwards
  aml: Aml
  policies: WorkspacePolicies
}

/** The life of a transfer: its states, what runs in each, and what may follow. */
const statesOf = (services: Services): readonly StateRule<'WITHDRAWAL'>[] => [
  {
    state: 'CREATED',
    run: (row) => startScreening(services, row),
    next: ['QUEUED', 'SCREENING', 'VOIDING'],
    endsIfCancelled: true,
  },
  {
    state: 'SCREENING',
    run: (row) => screenWithdrawal(services, row),
    // Back to the state in which an obstacle arose.
    next: ['AML_HELD', 'QUEUED', 'FUELING', 'SIGNING', 'VOIDING'],
    endsIfCancelled: true,
  },
  {
    state: 'AML_HELD',
    run: (row) => awaitUnfreezing(services, row),
    next: ['SCREENING', 'VOIDING'],
    endsIfCancelled: true,
  },
  {
    state: 'QUEUED',
    run: 'build',
    next: ['FUELING', 'SIGNING', 'SCREENING', 'APPROVAL', 'VOIDING'],
    endsIfCancelled: true,
  },
  {
    state: 'APPROVAL',
    run: (row) => awaitApproval(services, row),
    // Back to the state in which approvals were missing.
    next: ['QUEUED', 'FUELING', 'SIGNING', 'VOIDING'],
    endsIfCancelled: true,
  },
  {
    state: 'FUELING',
    run: 'awaitFuel',
    // Back if the policy does not allow the fuel, or no longer allows the transfer.
    next: ['SIGNING', 'QUEUED', 'SCREENING', 'APPROVAL', 'VOIDING'],
  },
  {
    state: 'SIGNING',
    run: 'sign',
    // Back if screening finds an obstacle, or if it waited so long that its bytes would expire.
    next: ['SIGNED', 'SCREENING', 'APPROVAL', 'QUEUED', 'FUELING', 'VOIDING'],
    endsIfCancelled: true,
  },
  { state: 'SIGNED', run: 'broadcast', next: ['BROADCASTING'] },
  {
    state: 'BROADCASTING',
    run: 'broadcast',
    next: ['CONFIRMING', 'REPLACING', 'QUEUED', 'VOIDING'],
  },
  {
    state: 'CONFIRMING',
    run: 'confirm',
    // Built again, or failed, if it expired and the chain proves its absence.
    next: ['CONFIRMED', 'REVERTED', 'CANCELLED', 'BROADCASTING', 'REPLACING', 'QUEUED', 'VOIDING'],
  },
  { state: 'REPLACING', run: 'replace', next: ['BROADCASTING'] },
  // Back to signing if the nodes had just signed it; its cancellation then competes on the chain.
  { state: 'VOIDING', run: 'void', next: ['FAILED', 'CANCELLED', 'SIGNING', 'CONFIRMING'] },
  ...ENDED_IN_BLOCK,
  { state: 'CANCELLED', next: ['CONFIRMING'] },
  { state: 'FAILED', next: [] },
]

/** An outgoing transfer, requested by its caller or created by a standing rule. */
export const withdrawalKind = (services: Services): Kind<'WITHDRAWAL'> => ({
  ...platformFee(services),
  states: statesOf(services),
  isJudged: isOwnRequest,
  spendsBalance: () => true,
  heldBack: async (row) => (await screenAgain(services, row)) || (await awaitPolicy(services, row)),
  async refused(row, refusal) {
    const stateAfter = async (tx: Queryable) => {
      // A transfer that has taken fuel from the tank keeps its plan.
      const before = services.networks.get(row.network).fuelled ? 'FUELING' : 'QUEUED'
      return (await unbuild(services, tx, row, refusal.isUntouched)) ? before : row.state
    }
    if (await giveWay(services, row, refusal, stateAfter)) return true
    return returnForApproval(services, row, refusal, stateAfter)
  },
  maySubmit: (tx, row) => isUnfrozen(services, tx, row),
  async refusal(chain, { row, asset, amount }) {
    const refusal = await chain.refusal({
      to: row.destination_id as string,
      tag: row.address_tag,
      amount,
      asset,
    })
    return refusal && `${refusal.field}: ${refusal.reason}`
  },
  purpose: (row, replacement) => purposeOf(services, row, replacement),
  async settle(tx, row, o) {
    await (o.succeeded
      ? services.forwards.done(tx, row)
      : services.forwards.returned(tx, row, 'the chain reverted it'))
    await settle(services, tx, row, o)
    await reclaimEnergy(services, tx, row)
    await endTransaction(services, tx, row, o, true)
  },
  async undo(tx, row, { succeeded }) {
    if (!succeeded) await services.forwards.undone(tx, row)
    await reverseSettled(tx, row, ['settle'])
    return {}
  },
  isOwnPayment: isOwnRequest,
  isSignedTogether: isOwnRequest,
  isAskedFor: (row) => row.request !== null || isForward(row),
  async failing(tx, row, reason) {
    await services.forwards.returned(tx, row, reason)
    await endApproval(tx, row, reason)
  },
  async release(tx, row) {
    const account = { workspace: row.workspace_id, wallet: row.wallet_id, asset: row.asset }
    const total = BigInt(row.amount) + BigInt(row.plan.fee_reserve ?? '0')
    await post(tx, 'release', row.id, [
      { ...account, kind: 'reserved', amount: -total },
      { ...account, kind: 'available', amount: total },
    ])
    await releaseNetworkFee(services, tx, row)
    // The fee of a transfer that was confirmed once is not refunded.
    return row.platform_fee && generationOf(row) === 0 ? { plan: { refunded: '1' } } : {}
  },
  bumpAfterMs: () => services.settings.feeBumpAfterMs,
})

/**
 * Books a final transfer. Its fee is paid from its reservation: another wallet of the sub-account,
 * fuel, or the wallet itself.
 */
async function settle(
  services: Services,
  tx: Queryable,
  row: TransactionRow,
  o: Outcome,
): Promise<void> {
  const account = { workspace: row.workspace_id, wallet: row.wallet_id, asset: row.asset }
  const amount = BigInt(row.amount)
  const moved = o.succeeded
    ? { ...account, wallet: null, kind: 'chain' as const, amount }
    : {
        ...account,
        kind: 'available' as const,
        amount,
      }
  if (row.plan.fee_wallet !== undefined) {
    return postSettled(tx, row, 'settle', [
      { ...account, kind: 'reserved', amount: -amount },
      moved,
      ...otherWalletPostings(row, o.fee),
    ])
  }
  if (services.networks.get(row.network).fuelled) {
    const held = BigInt(row.plan.need ?? '0')
    return postSettled(
      tx,
      row,
      'settle',
      [
        { ...account, kind: 'reserved', amount: -amount },
        moved,
        ...floatPostings(row, held, o.fee),
      ],
      overdraws(held, o.fee),
    )
  }
  const total = amount + BigInt(row.plan.fee_reserve ?? '0')
  const left = (o.succeeded ? amount : 0n) + o.fee
  await postSettled(tx, row, 'settle', [
    { ...account, kind: 'reserved', amount: -total },
    { ...account, wallet: null, kind: 'chain', amount: left },
    { ...account, kind: 'available', amount: total - left },
  ])
}

/**
 * Returns the purpose that the signer nodes sign for: the caller's request or that of a forward's
 * rule. A replacement has its own request.
 */
async function purposeOf(
  services: Services,
  row: TransactionRow,
  replacement: Replacement | undefined,
): Promise<Purpose> {
  const rule = row.plan.rule_id
  const forward = rule === undefined ? null : await forwardPurpose(services, row, rule)
  if (forward && replacement?.kind !== 'CANCEL') return forward
  const pay = forward ?? {
    kind: 'pay' as const,
    ...(await receiptsOf(services, row.request, 'transactions', row.id)),
  }
  if (replacement?.kind === 'CANCEL') {
    return {
      kind: 'cancel',
      of: pay,
      ...(await receiptsOf(services, replacement.request, 'replacements', replacement.id)),
      replaces: await replacedBy(services.database, row),
    }
  }
  // The platform's own fee bump stays within the latest limit that the caller has signed.
  const faster =
    replacement?.kind === 'AUTO'
      ? (await replacementsOf(services.database, row)).findLast(
          ({ kind, state }) => kind === 'SPEED_UP' && state === 'DONE',
        )
      : replacement
  return faster && pay.kind === 'pay'
    ? { ...pay, speed_up: await receiptsOf(services, faster.request, 'replacements', faster.id) }
    : pay
}

/**
 * Returns the signed transactions of a payment that a cancellation replaces. They prove it to nodes
 * that did not sign them.
 */
async function replacedBy(
  database: Database,
  row: TransactionRow,
): Promise<{ unsigned: UnsignedTransaction; signed: string }[]> {
  const attempts = await liveAttempts(database, row)
  return attempts.flatMap(({ unsigned, signed, replacement }) =>
    replacement === 'CANCEL' ? [] : [{ unsigned, signed }],
  )
}

/** Returns the purpose of a forward, which is authorised by the request that created its rule. */
async function forwardPurpose(
  services: Services,
  { id, workspace_id: workspace }: TransactionRow,
  ruleId: string,
): Promise<Purpose> {
  const rule = await services.database.one<{ request: SignedRequest; receipts: unknown[] }>(
    'select request, receipts from forward_rules where workspace_id = $2 and id = $1',
    [ruleId, workspace],
  )
  if (!rule) throw new Error('a forward has no rule')
  return { kind: 'forward', id, rule: rule.request, receipts: rule.receipts }
}
