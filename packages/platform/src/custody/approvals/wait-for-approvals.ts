import type { Registry } from '@custody/chains'
import type { CarriedApproval } from '@custody/policy'
import type { Database, Queryable } from '../../core/database/pool.ts'
import type { SigningRefusal } from '../../core/engine/interfaces/kind.ts'
import { advance } from '../../core/engine/lease.ts'
import { refusalReason } from '../../core/signing/refusal.ts'
import { isForward, type State, type TransactionRow } from '../../core/engine/transaction.ts'
import type { Environment } from '../../core/environment.ts'
import { decisionsOf } from '../../core/signing/approvals.ts'
import { ownPathsOf } from '../../core/signing/own-paths.ts'
import { waitMs } from './judge-again.ts'
import { closeRequest, expiryOf, noteNeeds, openRequest } from './requests.ts'
import type { Outcome, WorkspacePolicies } from './workspace-policies.ts'

interface Services {
  environment: Environment
  database: Database
  registry: Registry
  policies: WorkspacePolicies
}

/**
 * Interval at which a transfer is judged again that waits for approvals, in milliseconds. A decision
 * wakes it immediately, and so does a policy change that is proposed over the API. The poll finds what
 * was entered at the nodes, and the expiry.
 */
const APPROVAL_POLL_MS = 600_000
/** Time until a transfer is judged whose workspace has many waiting transfers, in milliseconds. */
const PACED_MS = 5000
/** Time until a transfer is judged again whose approved signature was refused, in milliseconds. */
const REPEATED_MS = 30_000
const REJECTED = 'APPROVAL_REJECTED'
const EXPIRED = 'APPROVAL_EXPIRED'

/**
 * Returns the caller's own request of a transfer or stake; null for a forward of a standing rule and
 * for an operator's order.
 */
function ownRequest(row: TransactionRow): NonNullable<TransactionRow['request']> | null {
  return isForward(row) ? null : row.request
}

/** Lets the signer nodes judge a transfer, before anything is fixed for it. */
async function judge(
  services: Services,
  row: TransactionRow,
  decisionsOf: () => Promise<readonly CarriedApproval[]>,
): Promise<Outcome> {
  const request = ownRequest(row)
  if (request === null) return { kind: 'none' }
  const { api_key: _, ...signed } = request
  return services.policies.judge(row.workspace_id, signed, async () => ({
    decisions: await decisionsOf(),
    ...(row.plan.fee_judged === undefined ? {} : { fee_max: row.plan.fee_judged }),
    to_path: (await ownPathsOf(services, row.workspace_id, [row.id])).get(row.id),
  }))
}

/** Starts the failure of a transfer: two signer nodes store a void first. */
const voidFor = (database: Queryable, row: TransactionRow, reason: string): Promise<void> =>
  advance(database, row, { state: 'VOIDING', plan: { reason }, last_error: null, run_in_ms: 0 })

const denial = (message: string): string => refusalReason({ code: 'POLICY_DENIED', message })

/**
 * Postpones the judgement of a waiting transfer if its workspace has had many.
 * @returns whether it was postponed
 */
async function isPaced(
  { policies, database }: Services,
  row: TransactionRow,
  waits: 'POLICY' | 'APPROVAL',
): Promise<boolean> {
  if (policies.mayJudgeAgain(row.workspace_id)) return false
  await advance(database, row, { waits, run_in_ms: PACED_MS })
  return true
}

/**
 * Lets two nodes judge a transfer before it is built, so that one that they would not sign now takes
 * no nonce and no coins, for which other transfers would wait.
 * @returns whether the transfer must not be processed further
 */
export async function awaitPolicy(services: Services, row: TransactionRow): Promise<boolean> {
  if (row.state === 'SIGNING' || ownRequest(row) === null) return false
  if (row.waiting?.code === 'POLICY' && (await isPaced(services, row, 'POLICY'))) return true
  const outcome = await judge(services, row, () => decisionsOf(services.database, row))
  switch (outcome.kind) {
    case 'none':
    case 'allowed':
      return false
    case 'approval':
      await services.database.transaction(async (tx) => {
        await openRequest(tx, row, outcome.judgement)
        await advance(tx, row, {
          state: 'APPROVAL',
          waits: 'APPROVAL',
          last_error: null,
          plan: { approval_from: row.state },
          run_in_ms: APPROVAL_POLL_MS,
        })
      })
      services.environment.checkpoint('transaction.approval')
      return true
    case 'denied':
      await voidFor(services.database, row, denial(outcome.message))
      return true
    case 'later':
      await advance(services.database, row, {
        waits: 'POLICY',
        last_error: outcome.message.slice(0, 500),
        run_in_ms: waitMs(outcome.freesAt, services.environment.now()),
      })
      return true
  }
}

/**
 * SIGNING → APPROVAL, if the signer nodes refuse a transfer because approvals are missing.
 * @param stateAfter lets the transfer release what is fixed for it, if no node has ever started to
 *   sign it, and returns the state in which it continues once it is approved
 * @returns whether the transfer waits for approvals now
 */
export async function returnForApproval(
  services: Services,
  row: TransactionRow,
  { code, message }: Omit<SigningRefusal, 'isUntouched'>,
  stateAfter: (tx: Queryable) => Promise<State>,
): Promise<boolean> {
  if (code !== 'POLICY_APPROVAL' || ownRequest(row) === null) return false
  services.policies.noteGoverned(row.workspace_id)
  await services.database.transaction(async (tx) => {
    const fee = await largestFee(tx, row)
    const continues = await stateAfter(tx)
    const isRepeated = (await expiryOf(tx, row)) !== undefined
    await advance(tx, row, {
      state: 'APPROVAL',
      waits: 'APPROVAL',
      last_error: message.slice(0, 500),
      plan: { approval_from: continues, ...(fee === null ? {} : { fee_judged: fee }) },
      // Nodes that sign together count more than each of them alone, so they may refuse repeatedly.
      run_in_ms: isRepeated ? REPEATED_MS : 0,
    })
  })
  services.environment.checkpoint('transaction.approval')
  return true
}

/**
 * Returns the largest fee with which the nodes have judged a transfer, in the smallest unit. The fee
 * counts in windows and conditions, so a judgement without it could allow what they refuse to sign.
 */
async function largestFee(tx: Queryable, row: TransactionRow): Promise<string | null> {
  const found = await tx.one<{ fee: string | null }>(
    `select max(fee_max)::text fee from chain_transactions where workspace_id = $2
      and transaction_id = $1`,
    [row.id, row.workspace_id],
  )
  return found?.fee ?? null
}

/**
 * APPROVAL → the state that the transfer came from, once the approvals suffice; → VOIDING, if a
 * person has rejected it, or if the approvals did not arrive in time.
 */
export async function awaitApproval(services: Services, row: TransactionRow): Promise<void> {
  const { database, environment } = services
  const decisions = await decisionsOf(database, row)
  const end = await endOf(services, row, decisions)
  if (end !== null) return voidFor(database, row, end)
  services.policies.noteGoverned(row.workspace_id)
  // The code is absent until the transfer has been judged in this state.
  const waits = row.waiting?.code === 'POLICY' ? 'POLICY' : 'APPROVAL'
  if (row.waiting && (await isPaced(services, row, waits))) return
  const outcome = await judge(services, row, async () => decisions)
  if (outcome.kind === 'denied') return voidFor(database, row, denial(outcome.message))
  const isApproved = await database.transaction(async (tx) => {
    // People's decisions are written under the same lock, so none is overlooked.
    await tx.query('select 1 from transactions where workspace_id = $1 and id = $2 for update', [
      row.workspace_id,
      row.id,
    ])
    if (JSON.stringify(await decisionsOf(tx, row)) !== JSON.stringify(decisions)) {
      await advance(tx, row, { waits: 'APPROVAL', run_in_ms: 0 })
      return false
    }
    return settle(tx, row, outcome, environment.now())
  })
  if (isApproved) environment.checkpoint('transaction.approved')
}

/** Returns why a transfer ends that waits for approvals; null if it does not. */
async function endOf(
  { database, environment }: Services,
  row: TransactionRow,
  decisions: readonly CarriedApproval[],
): Promise<string | null> {
  // A rejection was verified by two nodes before it was stored.
  const rejected = decisions.filter(({ decision }) => decision === 'reject')
  if (rejected.length > 0)
    return `${REJECTED}: ${rejected.map(({ by }) => by).join(', ')} rejected the ${nounOf(row)}`
  const expiresAt = await expiryOf(database, row)
  if (expiresAt === undefined || environment.now() < expiresAt.getTime()) return null
  return `${EXPIRED}: the approvals that the policy requires did not arrive in time`
}

const nounOf = ({ kind }: TransactionRow): string => (kind === 'STAKE' ? 'stake' : 'transfer')

/** @returns whether the transfer is approved */
async function settle(
  tx: Queryable,
  row: TransactionRow,
  outcome: Exclude<Outcome, { kind: 'denied' }>,
  nowMs: number,
): Promise<boolean> {
  if (outcome.kind === 'later') {
    await advance(tx, row, {
      waits: 'POLICY',
      last_error: outcome.message.slice(0, 500),
      run_in_ms: waitMs(outcome.freesAt, nowMs),
    })
    return false
  }
  if (outcome.kind === 'approval') {
    await openRequest(tx, row, outcome.judgement)
    const expiresAt = (await expiryOf(tx, row)) as Date
    await advance(tx, row, {
      waits: 'APPROVAL',
      last_error: null,
      run_in_ms: Math.min(APPROVAL_POLL_MS, Math.max(0, expiresAt.getTime() - nowMs)),
    })
    return false
  }
  if (outcome.kind === 'allowed') await noteNeeds(tx, row, outcome.judgement)
  await closeRequest(tx, row, 'approved')
  await advance(tx, row, {
    state: (row.plan.approval_from ?? 'QUEUED') as State,
    last_error: null,
    run_in_ms: 0,
  })
  return true
}

/** Closes the approval request of a transfer that fails. */
export const endApproval = (tx: Queryable, row: TransactionRow, reason: string): Promise<void> =>
  closeRequest(
    tx,
    row,
    reason.startsWith(REJECTED) ? 'rejected' : reason.startsWith(EXPIRED) ? 'expired' : 'ended',
  )
