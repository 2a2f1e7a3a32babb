import { LIMITS, type CarriedApproval } from '@custody/policy'
import type { Registry } from '@custody/chains'
import type { Logger } from 'pino'
import type { Database, Queryable } from '../../core/database/pool.ts'
import type { Environment } from '../../core/environment.ts'
import { decisionsOf } from '../../core/signing/approvals.ts'
import type { SignerNodes } from '../../core/signing/nodes.ts'
import { judgeRule } from '../approvals/judge-rule.ts'
import type { Judgement } from '../approvals/judgement.ts'
import { closeRequest, expiryOf, noteNeeds, openRequest } from '../approvals/requests.ts'
import type { Outcome, WorkspacePolicies } from '../approvals/workspace-policies.ts'
import { presentItem } from '../policies/present-item.ts'
import type { RuleRow } from './rule.ts'

interface Services {
  environment: Environment
  database: Database
  registry: Registry
  signers: SignerNodes
  policies: WorkspacePolicies
  log: Pick<Logger, 'info' | 'warn'>
}

/** Interval at which a waiting rule is judged again, in milliseconds. An approval wakes it. */
const POLL_MS = 60_000
/** Interval at which a rule is judged again that cannot be decided now, in milliseconds. */
const LATER_MS = 5000
/** Time for the nodes to inform each other about approvals, in milliseconds. */
const PRESENTED_MS = 500

/** Reason that a rule shows while approvals are missing. */
export const missingReason = ({ refusal }: Judgement): string =>
  (refusal?.message ?? 'the policy requires approvals').slice(0, 500)

/**
 * Returns when the request for approvals of a new rule expires: after six days, or with the rule. The
 * rule then ends. A rule that was active before waits for approvals until it expires itself.
 */
export const newRuleExpiry = ({ expires_at: end }: Pick<RuleRow, 'expires_at'>, now: Date): Date =>
  new Date(Math.min(end.getTime(), now.getTime() + LIMITS.approvalS * 1000))

/**
 * ACTIVE → APPROVAL: lets a rule wait whose forwards require approvals of people, which are not on
 * the records of the signer nodes.
 * @param amount of the forward that requires them, in the smallest unit; null: of each forward
 */
export async function requireApprovals(
  services: Services,
  rule: RuleRow,
  judgement: Judgement,
  amount: string | null,
): Promise<void> {
  const isWaiting = await services.database.transaction(async (tx) => {
    const turned = await tx.one(
      `update forward_rules set state = 'APPROVAL', approval_amount = $3, last_error = $4,
         next_run_at = $5, updated_at = $6
       where workspace_id = $1 and id = $2 and state = 'ACTIVE' returning id`,
      [
        rule.workspace_id,
        rule.id,
        amount,
        missingReason(judgement),
        new Date(services.environment.now() + POLL_MS),
        tx.now(),
      ],
    )
    if (turned) await openRequest(tx, rule, judgement, rule.expires_at)
    return turned !== undefined
  })
  if (!isWaiting) return
  services.log.warn(
    { rule: rule.id },
    'a forwarding rule waits, because the policy requires approvals of people',
  )
  services.environment.checkpoint('rule.approval')
}

/**
 * APPROVAL → ACTIVE, once the approvals are on the records of the signer nodes; → ENDING, if a person
 * has rejected the rule, or if the approvals of a new rule did not arrive in time.
 */
export async function awaitRuleApprovals(services: Services, rule: RuleRow): Promise<void> {
  const { database } = services
  const decisions = await decisionsOf(database, rule)
  const end = await endOf(services, rule, decisions)
  if (end !== null) return endFor(services, rule, end)
  services.policies.noteGoverned(rule.workspace_id)
  const amount = rule.approval_amount
  const recorded = await judgeRule(services, rule, amount)
  if (recorded.kind !== 'approval' || decisions.length === 0)
    return settle(services, rule, recorded, decisions)
  const outcome = await judgeRule(services, rule, amount, decisions)
  if (outcome.kind !== 'allowed') return settle(services, rule, outcome, decisions)
  await present(services, rule, outcome.judgement, decisions)
}

type End = { state: 'rejected' | 'expired'; reason: string }

/** Returns why a rule ends that waits for approvals; null if it does not. */
async function endOf(
  { database, environment }: Services,
  rule: RuleRow,
  decisions: readonly CarriedApproval[],
): Promise<End | null> {
  // A rejection was verified by two nodes before it was stored.
  const rejected = decisions.filter(({ decision }) => decision === 'reject')
  if (rejected.length > 0) {
    const people = rejected.map(({ by }) => by).join(', ')
    return { state: 'rejected', reason: `APPROVAL_REJECTED: ${people} rejected the rule` }
  }
  const expiresAt = await expiryOf(database, rule)
  if (expiresAt === undefined || environment.now() < expiresAt.getTime()) return null
  return {
    state: 'expired',
    reason: 'APPROVAL_EXPIRED: the approvals that the policy requires did not arrive in time',
  }
}

/** Starts the end of a rule: two signer nodes store a void of its request first. */
async function endFor({ database }: Services, rule: RuleRow, { state, reason }: End) {
  await database.transaction(async (tx) => {
    const turned = await tx.one(
      `update forward_rules set state = 'ENDING', end_reason = $3, last_error = null,
         next_run_at = $4, updated_at = $4
       where workspace_id = $1 and id = $2 and state = 'APPROVAL' returning id`,
      [rule.workspace_id, rule.id, reason, tx.now()],
    )
    if (turned) await closeRequest(tx, rule, state)
  })
}

/** Decides about a waiting rule by what the nodes say, if no decision has arrived meanwhile. */
async function settle(
  { database, environment }: Services,
  rule: RuleRow,
  outcome: Outcome,
  decisions: readonly CarriedApproval[],
): Promise<void> {
  const isActive = await database.transaction(async (tx) => {
    // People's decisions are written under the same lock, so none is overlooked.
    const row = await tx.one<{ state: string }>(
      'select state from forward_rules where workspace_id = $1 and id = $2 for update',
      [rule.workspace_id, rule.id],
    )
    if (row?.state !== 'APPROVAL') return false
    if (JSON.stringify(await decisionsOf(tx, rule)) !== JSON.stringify(decisions)) return false
    if (outcome.kind === 'later') {
      await wait(tx, rule, outcome.message, LATER_MS)
      return false
    }
    if (outcome.kind === 'approval') {
      await openRequest(tx, rule, outcome.judgement, rule.expires_at)
      await wait(tx, rule, missingReason(outcome.judgement), POLL_MS)
      return false
    }
    if (outcome.kind === 'allowed') await noteNeeds(tx, rule, outcome.judgement)
    // If the policy denies the forwards now, the rule states that when it makes one.
    await closeRequest(tx, rule, outcome.kind === 'allowed' ? 'approved' : 'ended')
    await tx.query(
      `update forward_rules set state = 'ACTIVE', approval_amount = null, failures = 0,
         last_error = null, next_run_at = $3, updated_at = $3
       where workspace_id = $1 and id = $2`,
      [rule.workspace_id, rule.id, tx.now()],
    )
    return true
  })
  if (isActive) environment.checkpoint('rule.approved')
}

const wait = (tx: Queryable, rule: RuleRow, reason: string, ms: number): Promise<unknown> =>
  tx.query(
    `update forward_rules set last_error = $3, next_run_at = $4::timestamptz + $5 * interval '1 millisecond'
     where workspace_id = $1 and id = $2 and state = 'APPROVAL'`,
    [rule.workspace_id, rule.id, reason.slice(0, 500), tx.now(), ms],
  )

/** Returns the signed statements of decisions that reach the quorums, as the nodes record them. */
const signedApprovals = (
  { statement, approved_by: people }: Judgement,
  decisions: readonly CarriedApproval[],
): string[] =>
  decisions
    .filter(({ decision, by }) => decision === 'approve' && people.includes(by))
    .slice(0, LIMITS.approvals)
    .map(({ id: _id, signature, passkey, ...signer }) =>
      JSON.stringify({
        statement: { kind: 'approval', ...statement, ...signer },
        signature,
        passkey,
      }),
    )

/**
 * Presents complete approvals to all nodes, which record them and inform each other. The rule becomes
 * active when two nodes have them on record.
 */
async function present(
  services: Services,
  rule: RuleRow,
  judgement: Judgement,
  decisions: readonly CarriedApproval[],
): Promise<void> {
  services.environment.checkpoint('rule.presenting')
  const { held, refusals } = await presentItem(services.signers, {
    kind: 'approved',
    workspace: judgement.statement.workspace,
    approvals: signedApprovals(judgement, decisions),
  })
  const reason = refusals[0]?.text ?? 'fewer than two signer nodes have recorded the approvals'
  if (held.length >= 2) await wait(services.database, rule, missingReason(judgement), PRESENTED_MS)
  else await wait(services.database, rule, reason, LATER_MS)
}
