import {
  blockedKeys,
  factsOf,
  PolicyError,
  readSigned,
  statementHash,
  type Act,
  type Approval,
  type Governance,
  type OrderApproval,
  type Policy,
  type Present,
  type SignedStatement,
  type StatementOf,
} from '@custody/policy'
import { canonicalJson } from '@custody/request-auth/web'

/**
 * Maximum number of records about one rule or order from each node. A peer can add only what people
 * have signed, and it cannot use up the number of another node.
 */
const RECORDS_MAX = 64

/** An approval of a standing rule or of an order, whose signature was verified. */
interface RecordedApproval extends Approval {
  /** Public key of the approver in the document under which it was given. */
  readonly spki: string
  /** Hash of the statement. */
  readonly hash: string
}

/** Approvals of a standing rule or of an order that a node has recorded together. */
interface StandingRecord {
  /** Hash of the document under which people approved. */
  readonly policy: string
  readonly subject: string
  /** Canonical JSON of what people approved. */
  readonly facts: string
  /** Node from which this node has them. */
  readonly node: number
  readonly approvals: readonly RecordedApproval[]
}

/** Records by the name of what was approved; those of one name oldest first. */
export type StandingRecords = ReadonlyMap<string, readonly StandingRecord[]>

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

/** Actions whose approvals stay on record: people approve them once, and nodes judge each use. */
const STANDING = ['forward', 'drain', 'tank-stake'] as const
type StandingAction = (typeof STANDING)[number]

type StandingStatement = StatementOf<'approval'> & { readonly action: StandingAction }
type StandingApproval = SignedStatement & { readonly statement: StandingStatement }

/** What approvals must be of: a standing rule, or an order of operators. */
type Approved = Pick<StandingStatement, 'action' | 'id' | 'subject' | 'facts'>

const nameOf = ({ action, id }: Pick<Approved, 'action' | 'id'>): string => `${action} ${id}`

/** Returns the documents from the one with a hash to the one in force; empty if it is unknown. */
export function policiesSince({ governance, chain }: Documents, hash: string): Policy[] {
  const at = chain.findIndex((each) => each.hash === hash)
  if (at < 0 || governance === null) return []
  const later = chain.slice(at + 1).flatMap(({ before }) => before?.policy ?? [])
  return [...later, governance.policy]
}

const isStanding = (signed: SignedStatement): signed is StandingApproval =>
  signed.statement.kind === 'approval' &&
  (STANDING as readonly string[]).includes(signed.statement.action) &&
  signed.statement.decision === 'approve'

const meaningOf = ({ action, id, subject, policy, facts }: StandingStatement): string =>
  canonicalJson({ action, id, subject, policy, facts })

/** Reads approvals, which must be of one standing rule or of one order. @throws PolicyError */
function readApprovals(texts: readonly string[]): StandingApproval[] {
  const all = texts.map((text, at) => {
    const signed = readSigned(text)
    if (!isStanding(signed))
      throw new PolicyError(
        'SHAPE',
        `approvals[${at}]`,
        'must approve a forwarding rule, a drain or a stake of a gas tank',
      )
    return signed
  })
  const [first] = all
  for (const [at, { statement }] of all.entries())
    if (meaningOf(statement) !== meaningOf(first!.statement))
      throw new PolicyError(
        'OTHER_STATEMENT',
        `approvals[${at}]`,
        'must approve the same rule or order under the same document as the first approval',
      )
  return all
}

/** Effect of approvals of a standing rule or of an order: their record. */
export interface StandingEffect extends Omit<StandingRecord, 'node'> {
  readonly type: 'standing'
  /** Name of what was approved. */
  readonly name: string
}

/**
 * Judges approvals of a standing rule or of an order. Their signatures and times are verified, and not
 * whether they suffice: each transaction is judged by the document that is in force then.
 *
 * They must be given under the document in force. If both other nodes have recorded them while this
 * node was away, it may be an earlier document.
 * @param verify verifies a statement
 * @returns null if they are on record
 * @throws PolicyError
 */
export function judgeStanding(
  documents: Documents & { readonly governance: Governance },
  before: StandingRecords,
  { approvals: texts, at_s: now_s, node, by_both: byBoth }: Body,
  verify: NonNullable<Present['verify']>,
): StandingEffect | null {
  const { governance } = documents
  const signed = readApprovals(texts)
  const { policy: named } = signed[0]!.statement
  const earlier = byBoth ? policiesSince(documents, named.hash)[0] : undefined
  const policy = earlier ?? governance.policy
  const suspended = byBoth ? new Set<string>() : blockedKeys(governance)
  for (const each of signed) verify(policy, each, { now_s, suspended })
  const effect = effectOf(policy, signed, now_s)
  if (isStandingKnown(before, effect)) return null
  const known = before.get(effect.name) ?? []
  if (known.filter((each) => each.node === node).length >= RECORDS_MAX)
    throw new PolicyError(
      'NOT_ALLOWED',
      'approvals',
      `It was approved ${RECORDS_MAX} times already; create a new one`,
    )
  return effect
}

/** Returns whether all approvals are on record together. */
export const isStandingKnown = (
  before: StandingRecords,
  { name, approvals }: StandingEffect,
): boolean =>
  before
    .get(name)
    ?.some(({ approvals: recorded }) =>
      approvals.every(({ hash }) => recorded.some((each) => each.hash === hash)),
    ) === true

/** @throws PolicyError `UNKNOWN_KEY` */
function effectOf(
  policy: Policy,
  signed: readonly StandingApproval[],
  recorded_at: number,
): StandingEffect {
  const [first] = signed
  const { subject, facts } = first!.statement
  const approvals = signed.map(({ statement }) => {
    const { by, key, at, expires } = statement
    const spki = policy.people.get(by)?.get(key)?.spki
    if (spki === undefined)
      throw new PolicyError('UNKNOWN_KEY', 'key', `${key} is not a key of ${by}`)
    return { by, key, at, expires, spki, hash: statementHash(statement), recorded_at }
  })
  const what = { policy: policy.hash, subject, facts: canonicalJson(facts) }
  return { type: 'standing', name: nameOf(first!.statement), ...what, approvals }
}

/** Adds approvals to those on record. */
export function withStanding(
  before: StandingRecords,
  { name, policy, subject, facts, approvals }: StandingEffect,
  node: number,
): StandingRecords {
  const record = { policy, subject, facts, node, approvals }
  return new Map(before).set(name, [...(before.get(name) ?? []), record])
}

/**
 * Returns the effect of approvals of a standing rule or of an order, without verifying them.
 * @param policy the document that they name
 * @throws PolicyError
 */
export const standingEffect = (policy: Policy, { approvals, at_s }: Body): StandingEffect =>
  effectOf(policy, readApprovals(approvals), at_s)

/**
 * Returns the approvals that this node has recorded of the standing rule of a forward, the latest
 * record first. The caller checks suspensions and quorums.
 */
export function approvalsOnRecord(
  documents: Documents,
  standing: StandingRecords,
  act: Act,
): Approval[][] {
  const { governance } = documents
  if (act.standing === null || governance === null) return []
  const { id, subject } = act
  const of = { action: 'forward' as const, id, subject }
  return recordsOf(documents, standing, of, () => factsOf(act, governance.policy.registry))
}

/** Returns the approvals that this node has recorded of an order, as {@link approvalsOnRecord}. */
export const orderApprovalsOnRecord = (
  documents: Documents,
  standing: StandingRecords,
  order: Pick<OrderApproval, 'action' | 'id' | 'subject' | 'facts'>,
): Approval[][] => recordsOf(documents, standing, order, () => order.facts)

/**
 * Returns the approvals of exactly these facts, by record, the latest first. An approval ends for good
 * with the first document that does not contain its key.
 */
function recordsOf(
  documents: Documents,
  standing: StandingRecords,
  of: Pick<Approved, 'action' | 'id' | 'subject'>,
  factsOfIt: () => Approved['facts'],
): Approval[][] {
  const records = standing.get(nameOf(of)) ?? []
  if (records.length === 0) return []
  const facts = canonicalJson(factsOfIt())
  return records
    .filter((record) => record.subject === of.subject && record.facts === facts)
    .map(({ policy, approvals }) => {
      const policies = policiesSince(documents, policy)
      const isListed = ({ by, key, spki }: RecordedApproval): boolean =>
        policies.length > 0 &&
        policies.every(({ people }) => people.get(by)?.get(key)?.spki === spki)
      return approvals.filter(isListed)
    })
    .toReversed()
}
