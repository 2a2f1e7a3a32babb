import { actSentences, ownerOf, type PolicyDocument } from '@custody/policy'
import { countDecisions, verifyDecisions } from './decisions.ts'
import { documentsByHash } from './documents.ts'
import { refuse } from './errors.ts'
import { readDetail } from './read-detail.ts'
import { documentOf, verifyPayment, type VerifiedPayment } from './payment.ts'
import type { Place } from './place.ts'
import { assertSeconds } from './seconds.ts'
import { assertCaller } from './token.ts'
import type {
  ApprovalQuestion,
  DocumentSource,
  StatedPolicy,
  VerifiedApproval,
  VerifiedDecision,
} from './types.ts'

const payments = new WeakMap<VerifiedApproval, VerifiedPayment>()

/** Returns what was verified. @throws ApprovalError `SHAPE` if the object is not of a verification */
export const paymentOf = (verified: VerifiedApproval): VerifiedPayment =>
  payments.get(verified) ?? refuse('SHAPE', 'only the result of a verification can be signed')

const isAt = (place: Place, { mode, workspace, nodes }: PolicyDocument): boolean =>
  mode === place.mode && workspace === place.workspace && nodes === place.nodes

/** What {@link verifyAt} needs besides the installation. */
export interface PlacedQuestion extends Omit<ApprovalQuestion, 'trust'> {
  /** Documents that the platform returned; used only if `documents` is empty. */
  claimed?: readonly DocumentSource[]
  /** The document that signer nodes state to be in force; null: fewer than two do. */
  stated?: Pick<StatedPolicy, 'hash' | 'stated_by'> | null
}

/**
 * Verifies an approval for an installation that was loaded before.
 * @throws ApprovalError; TypeError if `now_s` is not a whole number of seconds
 */
export async function verifyAt(
  place: Place,
  { approval, documents, claimed = [], stated = null, callers, id, now_s }: PlacedQuestion,
): Promise<VerifiedApproval> {
  if (now_s !== undefined) assertSeconds('now_s', now_s)
  const detail = readDetail(approval)
  const isOwn = documents.length > 0
  const known = documentsByHash(isOwn ? documents : claimed)
  const payment = verifyPayment(place, (hash) => known.get(hash), id ?? detail.id, detail)
  const { document, base, action, facts, claims } = payment
  const now = detail.state === 'open' ? (now_s ?? Math.floor(Date.now() / 1000)) : null
  const own = [...known].filter(([, each]) => isAt(place, each))
  const newest = Math.max(...own.map(([, { number }]) => number))
  if (now !== null && document.number < newest)
    refuse(
      'OLDER_DOCUMENT',
      `the transfer was judged by policy document ${document.number}, and document ${newest} is known: approvals under the earlier one do not count. Try again in a minute`,
    )
  if (callers !== undefined) await assertCaller(detail.request.token, callers)
  const earlier = own
    .filter(([, { number }]) => number < document.number)
    .map(([hash, each]) => documentOf(place, () => each, { number: each.number, hash }))
  const decisions = verifyDecisions(payment, detail.have, { now_s: now, earlier })
  const { rule, isOwnOnly, needs, isComplete } = countDecisions(
    payment,
    decisions,
    detail.needs,
    now,
  )
  const peopleWith = (decision: VerifiedDecision['decision']) => [
    ...new Set(
      decisions.flatMap((each) =>
        each.decision === decision && each.status === 'valid' ? [each.by] : [],
      ),
    ),
  ]
  const verified: VerifiedApproval = {
    id: base.id,
    state: detail.state,
    action,
    facts,
    sentences: actSentences(action, facts),
    statement: { v: 1, ...base, action, facts },
    policy: {
      ...base.policy,
      document,
      is_own: isOwn,
      stated_by: stated?.hash === base.policy.hash ? stated.stated_by : [],
    },
    request: {
      api_key: claims.sub,
      person: ownerOf(payment.policy, { api_key: claims.sub }),
      issued_at: claims.iat,
      is_signature_verified: callers !== undefined,
    },
    decisions,
    approved_by: peopleWith('approve'),
    rejected_by: peopleWith('reject'),
    rule,
    requires_own_address: isOwnOnly,
    needs,
    is_complete: isComplete,
  }
  payments.set(verified, payment)
  return verified
}
