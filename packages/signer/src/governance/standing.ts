import {
  blockedKeys,
  factsOf,
  PolicyError,
  readSigned,
  type Act,
  type Approval,
  type Governance,
  type Policy,
  type Present,
  type SignedStatement,
  type StatementOf,
} from '@custody/policy'
import { canonicalJson } from '@custody/request-auth/web'

/**
 * Maximum number of records about one standing rule from each node. A peer can add only what people
 * have signed, and it cannot use up the number of another node.
 */
const RECORDS_MAX = 64

/** An approval of a standing rule, whose signature was verified. */
interface RecordedApproval extends Approval {
  /** Public key of the approver in the document under which it was given. */
  readonly spki: string
  /** Hash of the statement. */
  readonly hash: string
}

/** Approvals of a standing rule that a node has recorded together. */
interface ApprovedRule {
  /** Hash of the document under which people approved. */
  readonly policy: string
  readonly subject: string
  /** Canonical JSON of what people approved. */
  readonly facts: string
  /** Node from which this node has them. */
  readonly node: number
  readonly approvals: readonly RecordedApproval[]
}

/** Records about standing rules, by the public ID of the rule; those of one rule oldest first. */
export type ApprovedRules = ReadonlyMap<string, readonly ApprovedRule[]>

/** Documents of a workspace, as far as they matter to approvals on record. */
export interface Documents {
  readonly governance: Governance | null
  /** The documents that came into force; `before` is what was in force before each of them. */
  readonly chain: readonly { readonly hash: string; readonly before: Governance | null }[]
}

/** The body of an entry about approvals. */
export interface Body {
  readonly approvals: readonly string[]
  readonly at_s: number
  readonly node: number
  readonly by_both: boolean
}

type ApprovalOfRule = SignedStatement & { readonly statement: StatementOf<'approval'> }

/** Returns the documents from the one with a hash to the one in force; empty if it is unknown. */
export function policiesSince({ governance, chain }: Documents, hash: string): Policy[] {
  const at = chain.findIndex((each) => each.hash === hash)
  if (at < 0 || governance === null) return []
  const later = chain.slice(at + 1).flatMap(({ before }) => before?.policy ?? [])
  return [...later, governance.policy]
}

const isOfRule = (signed: SignedStatement): signed is ApprovalOfRule =>
  signed.statement.kind === 'approval' &&
  signed.statement.action === 'forward' &&
  signed.statement.decision === 'approve'

const meaningOf = ({ id, subject, policy, facts }: StatementOf<'approval'>): string =>
  canonicalJson({ id, subject, policy, facts })

/** Reads approvals, which must be of one standing rule. @throws PolicyError */
function readApprovals(texts: readonly string[]): ApprovalOfRule[] {
  const all = texts.map((text, at) => {
    const signed = readSigned(text)
    if (!isOfRule(signed))
      throw new PolicyError('SHAPE', `approvals[${at}]`, 'must approve a forwarding rule')
    return signed
  })
  const [first] = all
  for (const [at, { statement }] of all.entries())
    if (meaningOf(statement) !== meaningOf(first!.statement))
      throw new PolicyError(
        'OTHER_STATEMENT',
        `approvals[${at}]`,
        'must approve the same rule under the same document as the first approval',
      )
  return all
}

/**
 * Adds approvals of a standing rule to those on record. Their signatures and times are verified, and
 * not whether they suffice: each forward is judged by the document that is in force then.
 *
 * They must be given under the document in force. If both other nodes have recorded them while this
 * node was away, it may be an earlier document.
 * @param verify verifies a statement
 * @returns the same value if they are on record
 * @throws PolicyError
 */
export function withApproved(
  documents: Documents & { readonly governance: Governance },
  before: ApprovedRules,
  { approvals: texts, at_s: now_s, node, by_both: byBoth }: Body,
  verify: NonNullable<Present['verify']>,
): ApprovedRules {
  const { governance } = documents
  const signed = readApprovals(texts)
  const { id, subject, facts, policy: named } = signed[0]!.statement
  const earlier = byBoth ? policiesSince(documents, named.hash)[0] : undefined
  const policy = earlier ?? governance.policy
  const suspended = byBoth ? new Set<string>() : blockedKeys(governance)
  const approvals = signed.map((each): RecordedApproval => {
    const hash = verify(policy, each, { now_s, suspended })
    const { by, key, at, expires } = each.statement
    const { spki } = policy.people.get(by)!.get(key)!
    return { by, key, at, expires, spki, hash, recorded_at: now_s }
  })
  const known = before.get(id) ?? []
  const isIn = ({ approvals: recorded }: ApprovedRule): boolean =>
    approvals.every(({ hash }) => recorded.some((each) => each.hash === hash))
  if (known.some(isIn)) return before
  if (known.filter((each) => each.node === node).length >= RECORDS_MAX)
    throw new PolicyError(
      'NOT_ALLOWED',
      'approvals',
      `The rule was approved ${RECORDS_MAX} times already; create a new one`,
    )
  const rule = { policy: policy.hash, subject, facts: canonicalJson(facts), node, approvals }
  return new Map(before).set(id, [...known, rule])
}

/**
 * Returns the approvals that this node has recorded of the standing rule of a forward, the latest
 * record first. An approval ends for good with the first document that does not contain its key. The
 * caller checks suspensions and quorums.
 */
export function approvalsOnRecord(
  documents: Documents,
  approved: ApprovedRules,
  act: Act,
): Approval[][] {
  const { governance } = documents
  const rules = act.standing === null || governance === null ? [] : (approved.get(act.id) ?? [])
  if (rules.length === 0) return []
  const facts = canonicalJson(factsOf(act, governance!.policy.registry))
  return rules
    .filter((rule) => rule.subject === act.subject && rule.facts === facts)
    .map(({ policy, approvals }) => {
      const policies = policiesSince(documents, policy)
      const isListed = ({ by, key, spki }: RecordedApproval): boolean =>
        policies.length > 0 &&
        policies.every(({ people }) => people.get(by)?.get(key)?.spki === spki)
      return approvals.filter(isListed)
    })
    .toReversed()
}
