import {
  carriedApproval,
  combineNeeds,
  countApprovals,
  LIMITS,
  ownerOf,
  PolicyError,
  prepareAct,
  verifyStatement,
  type Act,
  type Approval,
  type Need,
  type Policy,
} from '@custody/policy'
import { parsedBy } from '@custody/request-auth/bodies'
import { cut, refuse } from './errors.ts'
import { decisionStatement, type VerifiedPayment } from './payment.ts'
import type { GivenDecision } from './shapes.ts'
import type { VerifiedDecision, VerifiedNeed } from './types.ts'

/** Greatest number of decisions about one transfer. */
const DECISIONS_MAX = 2 * LIMITS.approvals
const NONE: ReadonlySet<string> = new Set()

/** Returns the fault of a decision under a document at a time; null if it verifies. */
function faultOf(
  payment: VerifiedPayment,
  policy: Policy,
  decision: GivenDecision,
  now_s: number,
): PolicyError | null {
  const { number } = policy.document
  const base = { ...payment.base, policy: { number, hash: policy.hash } }
  const statement = decisionStatement({ ...payment, base }, decision)
  const { signature, passkey } = decision
  const proof = passkey ? { passkey } : { signature }
  try {
    verifyStatement(policy, { statement, ...proof }, { now_s, suspended: NONE })
    return null
  } catch (error) {
    if (error instanceof PolicyError) return error
    throw error
  }
}

/** Returns decisions without repetitions, because each one costs a verification. */
export function distinct(decisions: readonly GivenDecision[]): GivenDecision[] {
  if (decisions.length > DECISIONS_MAX)
    refuse('SHAPE', `have contains more than ${DECISIONS_MAX} decisions`)
  return [...new Map(decisions.map((each) => [JSON.stringify(each), each])).values()]
}

/**
 * Returns decisions whose signatures verify now, and leaves out all others.
 * @throws ApprovalError `SHAPE` if there are too many
 */
export const currentDecisions = (
  payment: VerifiedPayment,
  decisions: readonly GivenDecision[],
  now_s: number,
): GivenDecision[] =>
  distinct(decisions).filter((each) => faultOf(payment, payment.policy, each, now_s) === null)

/**
 * Verifies decisions that the platform returned with a transfer. One that does not verify is
 * `ignored`: it counts for nothing, as at the signer nodes.
 * @param earlier documents before the one in the statement
 * @param context `now_s`: null if the transfer is closed
 * @throws ApprovalError `SHAPE` if there are too many, or `DECISION` if one has an unknown form
 */
export function verifyDecisions(
  payment: VerifiedPayment,
  decisions: readonly GivenDecision[],
  { now_s, earlier }: { now_s: number | null; earlier: readonly Policy[] },
): VerifiedDecision[] {
  return distinct(decisions).map((given): VerifiedDecision => {
    if (parsedBy(carriedApproval, { id: payment.base.id, ...given })?.success !== true)
      return refuse('DECISION', 'a decision that the platform returned has an unknown form')
    const { by, key, decision, at, expires } = given
    const shown = { by, key, decision, at, expires, reason: null }
    const fault = faultOf(payment, payment.policy, given, now_s ?? at)
    if (fault === null) return { ...shown, status: 'valid' }
    if (fault.code === 'EXPIRED' && faultOf(payment, payment.policy, given, at) === null)
      return { ...shown, status: 'expired' }
    if (earlier.some((policy) => faultOf(payment, policy, given, at) === null))
      return { ...shown, status: 'superseded' }
    return { ...shown, status: 'ignored', reason: cut(fault.message) }
  })
}

/** Returns the transfer as a document judges it, without the fee, which only the nodes know. */
function actOf({ base, action, facts, claims }: VerifiedPayment, own: Act['to']['own']): Act {
  const { standing } = facts
  return {
    id: base.id,
    subject: base.subject,
    step: '',
    action,
    workspace: base.workspace,
    sub_account: facts.sub_account,
    api_key: claims.sub,
    asset: facts.asset,
    network: facts.network,
    amount: BigInt(facts.amount ?? standing?.min_amount ?? 0),
    to: { address: facts.to, tag: facts.tag, own },
    fee: { max: 0n, limit: BigInt(facts.fee_max ?? 0) },
    issued_at: claims.iat,
    standing: standing && {
      min_amount: BigInt(standing.min_amount),
      daily_cap: BigInt(standing.daily_cap),
      ends_at: standing.ends_at,
    },
    resource: facts.resource,
  }
}

/** An `allow` rule that fits, with its quorums and those of every matching `require`. */
interface Way {
  rule: string
  /** It fits only if the destination is an own address, which only the signer nodes know. */
  isOwnOnly: boolean
  needs: Need[]
}

/**
 * Returns the ways in which a document can allow a transfer, whatever its windows and limits are.
 * Whether the destination is an own address is not known here: rules for own addresses are ways only
 * if no other rule fits.
 * @throws ApprovalError `FACTS`
 */
function waysOf(payment: VerifiedPayment): Way[] {
  const waysTo = (own: Act['to']['own']): Way[] => {
    const { rules } = prepareAct(payment.policy, actOf(payment, own))
    const added = rules['require'].map(({ rule }) => rule.needs)
    if (rules.deny.length > 0) return []
    return rules.allow.map(({ rule: { id, needs } }) => ({
      rule: id,
      isOwnOnly: own !== null,
      needs: combineNeeds(needs, ...added),
    }))
  }
  try {
    const ways = waysTo(null)
    if (ways.length > 0 || payment.facts.tag !== null) return ways
    return [...waysTo('sub_account'), ...waysTo('workspace')]
  } catch (error) {
    if (error instanceof PolicyError) return refuse('FACTS', error.message)
    throw error
  }
}

const totalOf = ({ needs }: Way): number => needs.reduce((sum, { k }) => sum + k, 0)

/**
 * Returns the way that the platform's statement is about: the largest one that requires no more than
 * it states. If it states less than every way requires, the smallest way.
 */
function wayFor(ways: readonly Way[], stated: ReadonlyMap<string, number>): Way | undefined {
  const largest = ways.toSorted((a, b) => totalOf(b) - totalOf(a))
  const within = ({ needs }: Way) => needs.every(({ group, k }) => (stated.get(group) ?? 0) >= k)
  return largest.find(within) ?? largest.at(-1)
}

/**
 * Counts verified approvals. The quorums are those of the document; the platform can only add to
 * them, because a limit of the document that is used up adds approvals.
 * @param stated quorums that the platform states
 * @param now_s null if the transfer is closed
 * @throws ApprovalError `NEEDS` if the document does not have a stated group, or `FACTS`
 */
export function countDecisions(
  payment: VerifiedPayment,
  decisions: readonly VerifiedDecision[],
  stated: readonly { group: string; k: number }[],
  now_s: number | null,
): { rule: string | null; isOwnOnly: boolean; needs: VerifiedNeed[]; isComplete: boolean } {
  const { policy, claims, facts } = payment
  for (const { group } of stated)
    if (!policy.groups.has(group))
      refuse(
        'NEEDS',
        `the platform states approvals of ${cut(group)}, which is no group of the document`,
      )
  const kOf = new Map(stated.map(({ group, k }) => [group, k]))
  const way = wayFor(waysOf(payment), kOf)
  const own = (way?.needs ?? []).map((need) => ({
    ...need,
    k: Math.max(need.k, kOf.get(need.group) ?? 0),
  }))
  const more = stated
    .filter(({ group }) => own.every((need) => need.group !== group))
    .map(({ group, k }) => ({
      group,
      k,
      initiator: false,
      approval_s: LIMITS.approvalDefaultS,
      recorded_s: null,
    }))
  const needs = combineNeeds(own, more)
  const approvals: Approval[] = decisions.filter(
    ({ decision, status }) => decision === 'approve' && status === 'valid',
  )
  // The person of an enrolment is on record at the nodes only. Without an owner, no approval counts.
  const owner = ownerOf(policy, { api_key: claims.sub })
  const counted = countApprovals(policy, needs, approvals, {
    now_s: now_s ?? Math.max(claims.iat, ...approvals.map(({ at }) => at)),
    issued_at: claims.iat,
    owner,
    suspended: NONE,
    isStanding: facts.standing !== null,
  })
  const mayApprove = ({ group, initiator }: Need): string[] =>
    (policy.groups.get(group) ?? []).filter(
      (person) => (initiator || person !== owner) && approvals.every(({ by }) => by !== person),
    )
  return {
    rule: way?.rule ?? null,
    needs: counted.needs.map((each, at) => ({ ...each, may_approve: mayApprove(needs[at]!) })),
    isOwnOnly: way?.isOwnOnly === true,
    isComplete:
      way?.isOwnOnly === false &&
      counted.isMet &&
      decisions.every(({ decision, status }) => decision !== 'reject' || status !== 'valid'),
  }
}
