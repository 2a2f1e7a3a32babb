import {
  blockedKeys,
  countQuorum,
  enrolmentApproval,
  PolicyError,
  readSigned,
  type EnrolmentFacts,
  type Governance,
  type Policy,
  type Present,
  type SignedStatement,
  type StatementOf,
} from '@custody/policy'
import { fingerprintOfKey, parsePublicKey } from '@custody/request-auth'
import { canonicalJson } from '@custody/request-auth/web'
import { Refusal } from '../errors.ts'
import type { Enrolment } from '../store/state-content.ts'
import { policiesSince, type Body, type Documents } from './standing.ts'

/** An enrolment that enough people have approved under a document. */
interface ApprovedEnrolment {
  /** Number and hash of the document. */
  readonly number: number
  readonly policy: string
  /** Canonical JSON of what people approved. */
  readonly facts: string
}

/** Approved enrolments by API key, oldest first. */
export type ApprovedEnrolments = ReadonlyMap<string, readonly ApprovedEnrolment[]>

type StatementOfEnrolment = Extract<StatementOf<'approval'>, { action: 'enrolment' }>
type ApprovalOfEnrolment = SignedStatement & { readonly statement: StatementOfEnrolment }

const isApproval = (signed: SignedStatement): signed is ApprovalOfEnrolment =>
  signed.statement.kind === 'approval' && signed.statement.action === 'enrolment'

/** Returns whether approvals are of an enrolment, by the first of them. @throws PolicyError */
export const isOfEnrolment = ([first]: readonly string[]): boolean =>
  first !== undefined && isApproval(readSigned(first))

/**
 * Returns the enrolment and the document that approvals name, as text; null if they are of something
 * else.
 * @throws PolicyError
 */
export function enrolmentMeaning([first]: readonly string[]): string | null {
  if (first === undefined) return null
  const signed = readSigned(first)
  return isApproval(signed) ? meaningOf(signed.statement) : null
}

const meaningOf = ({ policy, facts }: StatementOfEnrolment): string =>
  canonicalJson({ policy, facts })

/** Reads approvals, which must all be of the same enrolment. @throws PolicyError */
function readApprovals(texts: readonly string[]): ApprovalOfEnrolment[] {
  const all = texts.map((text, at) => {
    const signed = readSigned(text)
    if (!isApproval(signed) || signed.statement.decision !== 'approve')
      throw new PolicyError('SHAPE', `approvals[${at}]`, 'must approve an enrolment')
    return signed
  })
  const [first] = all
  for (const [at, { statement }] of all.entries())
    if (meaningOf(statement) !== meaningOf(first!.statement))
      throw new PolicyError(
        'OTHER_STATEMENT',
        `approvals[${at}]`,
        'must approve the same enrolment under the same document as the first approval',
      )
  return all
}

/** Checks that a statement has the `id` and `subject` of its facts. @throws PolicyError */
function assertSubject(policy: Policy, { id, subject, facts }: StatementOfEnrolment): void {
  const expected = enrolmentApproval(policy, facts)
  for (const [field, own, value] of [
    ['id', id, expected.id],
    ['subject', subject, expected.subject],
  ] as const)
    if (own !== value)
      throw new PolicyError('SHAPE', `statement.${field}`, `must be ${value}, by the facts`)
}

/** Effect of approvals of an enrolment. */
export interface EnrolmentEffect extends ApprovedEnrolment {
  readonly type: 'enrolment'
  readonly api_key: string
}

/**
 * Judges the approvals of an enrolment. They must suffice by the document that they name; later changes
 * of the document and later suspensions of keys do not end them.
 *
 * That document must be in force. If both other nodes have recorded the approvals while this node was
 * away, it may be an earlier one.
 * @param verify verifies a statement
 * @returns null if the enrolment is on record as approved under that document
 * @throws PolicyError `NOT_ALLOWED` if the approvals do not suffice
 */
export function judgeEnrolment(
  documents: Documents & { readonly governance: Governance },
  before: ApprovedEnrolments,
  { approvals: texts, at_s: now_s, by_both: byBoth }: Omit<Body, 'node'>,
  verify: NonNullable<Present['verify']>,
): EnrolmentEffect | null {
  const { governance } = documents
  const signed = readApprovals(texts)
  const { policy: named } = signed[0]!.statement
  const earlier = byBoth ? policiesSince(documents, named.hash)[0] : undefined
  const policy = earlier ?? governance.policy
  const suspended = byBoth ? new Set<string>() : blockedKeys(governance)
  for (const each of signed) {
    assertSubject(policy, each.statement)
    verify(policy, each, { now_s, suspended })
  }
  assertEnough(policy, signed, suspended)
  const effect = enrolmentEffect(policy, texts)
  return isEnrolmentKnown(before, effect) ? null : effect
}

/** Returns whether an enrolment is on record as approved under a document. */
export const isEnrolmentKnown = (
  before: ApprovedEnrolments,
  { api_key, policy, facts }: EnrolmentEffect,
): boolean =>
  before.get(api_key)?.some((each) => each.policy === policy && each.facts === facts) === true

/**
 * Returns the effect of approvals of an enrolment, without verifying them.
 * @param policy the document that they name
 */
export function enrolmentEffect(policy: Policy, approvals: readonly string[]): EnrolmentEffect {
  const { facts } = readApprovals(approvals)[0]!.statement
  const approved = { number: policy.document.number, policy: policy.hash }
  return { type: 'enrolment', api_key: facts.api_key, ...approved, facts: canonicalJson(facts) }
}

/** Adds an enrolment that people have approved. */
export function withEnrolment(
  before: ApprovedEnrolments,
  { api_key, number, policy, facts }: EnrolmentEffect,
): ApprovedEnrolments {
  const known = before.get(api_key) ?? []
  return new Map(before).set(api_key, [...known, { number, policy, facts }])
}

function assertEnough(
  policy: Policy,
  signed: readonly ApprovalOfEnrolment[],
  suspended: ReadonlySet<string>,
): void {
  const { number, enrolment } = policy.document
  if (enrolment === undefined)
    throw new PolicyError(
      'NOT_ALLOWED',
      'approvals',
      `The policy ${number} requires no approvals of enrolments`,
    )
  const signers = signed.map(({ statement: { by, key } }) => ({ person: by, key }))
  const { isMet, needs } = countQuorum(policy, enrolment.approvals, signers, suspended)
  if (isMet) return
  const missing = needs.filter(({ k, have }) => have < k)
  const text = missing.map(({ group, k, have }) => `${k - have} of ${group}`).join(' and ')
  throw new PolicyError('NOT_ALLOWED', 'approvals', `Approvals are missing: ${text}`)
}

/** What a node has on record about the documents of a workspace and the approved enrolments. */
interface Held extends Documents {
  readonly enrolments: ApprovedEnrolments
}

/** Returns what people approve of an enrolment. */
export const enrolmentFactsOf = (
  enrolment: Pick<Enrolment, 'api_key' | 'public_key_pem' | 'role' | 'sub_account_name' | 'person'>,
): EnrolmentFacts => ({
  api_key: enrolment.api_key,
  fingerprint: fingerprintOfKey(parsePublicKey(enrolment.public_key_pem)),
  role: enrolment.role,
  sub_account: enrolment.sub_account_name ?? '',
  // Absent without a person, so that approvals of earlier enrolments keep their bytes.
  ...(enrolment.person === undefined ? {} : { person: enrolment.person }),
})

/**
 * Returns whether an API key lacks the approvals that its enrolment requires. They count if they were
 * given under the policy in force at the enrolment, or under a later one.
 */
export function lacksApproval({ chain, enrolments }: Held, enrolment: Enrolment): boolean {
  const { approval_policy: first } = enrolment
  if (first === undefined) return false
  const approved = enrolments.get(enrolment.api_key) ?? []
  if (approved.length === 0) return true
  const facts = canonicalJson(enrolmentFactsOf(enrolment))
  return !approved.some(
    (each) =>
      each.facts === facts && each.number >= first && chain[each.number - 1]?.hash === each.policy,
  )
}

/** Checks that an enrolment has the approvals that it requires. @throws Refusal `ENROLMENT_APPROVAL` */
export function assertApproved(held: Held, enrolment: Enrolment): void {
  if (!lacksApproval(held, enrolment)) return
  const isRequired = held.governance?.policy.document.enrolment !== undefined
  throw new Refusal(
    'ENROLMENT_APPROVAL',
    isRequired
      ? `The enrolment of the API key ${enrolment.api_key} requires approvals by the policy of the workspace: use "policy approve-enrolment"`
      : `The enrolment of the API key ${enrolment.api_key} was never approved, and the policy in force no longer requires it: enter the enrolment again at this node`,
  )
}
