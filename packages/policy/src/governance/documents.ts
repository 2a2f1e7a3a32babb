import { lint } from '../analysis/lint.ts'
import type { LintContext } from '../analysis/finding.ts'
import type { PolicyDocument } from '../document/shape.ts'
import { PolicyError } from '../error.ts'
import { compile, type Policy } from '../evaluation/compile.ts'
import { documentHash } from '../document/read.ts'
import { LIMITS } from '../limits.ts'
import type { KeyRef } from '../statements/quorum.ts'
import { verifyStatement, type SignedStatement } from '../statements/verify.ts'
import { atTime, firstInForce, type PendingEffect } from './effects.ts'
import type { Governance, PendingChange, Present } from './governance.ts'
import { assertQuorum, isRemoved, refuse, verified } from './statements.ts'

/** Where a document must apply: the node's own mode and workspace, and the hash of the identities. */
export type Place = Pick<PolicyDocument, 'mode' | 'workspace' | 'nodes'>

/** A document with a proof of possession by each key that is new in it. */
export interface ProvenDocument {
  readonly document: PolicyDocument
  readonly possessions: readonly SignedStatement[]
}

/** What all holders of a document know. */
export type Known = Pick<LintContext, 'registry' | 'previous'>

/**
 * All holders must decide the same about a document, and only errors decide. They do not know the
 * origins of the control panel, and API keys without an owner are no error.
 */
const NOT_KNOWN = { panelOrigins: null, enrolled: null }

/**
 * Judges the first document, which operators have typed.
 * @returns the state in which it is in force
 * @throws PolicyError the first fault
 */
export function install(
  { document, possessions }: ProvenDocument,
  place: Place,
  context: Known,
  present: Present,
): Governance {
  if (document.number !== 1) refuse('OTHER_POLICY', 'number', 'must be 1 in the first document')
  assertPlace(document, place)
  const policy = compile(document, context.registry)
  assertPossessions(policy, new Set(), possessions, present)
  assertNoFaults(document, context, present)
  return firstInForce(policy)
}

/** A proposed change with its approvals (statements of the kind `change`). */
export interface Proposal extends ProvenDocument {
  readonly approvals: readonly SignedStatement[]
}

/**
 * Times in Unix seconds at which both other nodes saw a proposal complete, by their signed words;
 * null if one of them has not given it.
 */
export type Witnesses = readonly [number, number] | null

/**
 * Judges the next document, whose approvals must be complete. It comes into force at the time that
 * the approvals name, or later: never before `delay_s` has passed since it was first seen here. Only
 * the words of both other nodes can prove an earlier sight, because one of them may be hostile. If
 * the same change is pending here, those words can only make it come into force earlier. A suspension
 * or revocation that was seen here does not count against a change that both other nodes have
 * accepted, because it may be later than the change.
 *
 * Signatures and the quorum are verified before the document is compiled and searched for faults, which
 * takes much longer.
 * @param present time at which the proposal is seen here
 * @returns null if it changes nothing
 * @throws PolicyError the first fault; `PENDING` if another change is pending; `NOT_YET` if too many
 *   changes of the same people were vetoed
 */
export function judgeChange(
  governance: Governance,
  { document, possessions, approvals }: Proposal,
  context: Known,
  present: Present,
  witnesses: Witnesses = null,
): PendingEffect | null {
  const { next, vetoed } = governance
  // Of the two other nodes one is honest, and it accepted the change before these came into effect.
  const without = { ...governance, suspensions: [], revoked: new Set<string>(), vetoedChanges: [] }
  const counted = witnesses === null ? governance : without
  const previous = assertSuccessor(governance, document)
  const hash = documentHash(document)
  const isPending = next?.policy.hash === hash
  if (isPending && witnesses === null) return null
  if (next && !isPending) refuse('PENDING', '', 'Another change is pending; it can be vetoed')
  const vetoers = vetoed.get(hash) ?? []
  if (vetoers.some((by) => !isRemoved(previous, { document }, by)))
    refuse('VETOED', '', 'The change was vetoed')
  // What both other nodes have seen by then was approved by then.
  const seen = Math.min(present.now_s, witnesses ? Math.max(...witnesses) : Infinity)
  const { actsAt, approvedBy } = assertApprovals(counted, hash, approvals, {
    ...present,
    now_s: seen,
  })
  assertNotVetoedOften(counted, document, approvedBy, present.now_s)
  const policy = compile(document, context.registry)
  for (const [person, keys] of policy.people)
    for (const { id, spki } of keys.values())
      if (counted.revoked.has(spki))
        refuse('KEY_REVOKED', 'people', `${id} of ${person} is revoked`)
  assertPossessions(policy, keysOf(previous), possessions, present)
  assertNoFaults(document, { ...context, previous: previous.document }, present)
  const acts_at_s = actsFrom(previous, { seen, actsAt, now_s: present.now_s })
  const effect = {
    type: 'pending' as const,
    hash,
    seen_at_s: present.now_s,
    acts_at_s,
    approved_for_s: actsAt,
    approved_by: approvedBy,
    vetoed_by: vetoers[0] ?? null,
    confirmed_by: [],
  }
  if (!isPending) return effect
  return acts_at_s < next.acts_at_s ? { ...pendingEffect(next), acts_at_s } : null
}

/** Returns when a change acts that was seen at a time, and whose approvals name a time. */
export function actsFrom(
  { document }: Policy,
  { seen, actsAt, now_s }: { seen: number; actsAt: number; now_s: number },
): number {
  const { delay_s } = document.change
  return seen + delay_s <= actsAt + LIMITS.sightSlackS ? actsAt : now_s + delay_s
}

/** Returns the effect by which a change is pending as it is. */
export const pendingEffect = (next: PendingChange): PendingEffect => ({
  type: 'pending',
  hash: next.policy.hash,
  seen_at_s: next.seen_at_s,
  acts_at_s: next.acts_at_s,
  approved_for_s: next.approved_for_s,
  approved_by: next.approvedBy,
  vetoed_by: next.vetoedBy,
  confirmed_by: next.confirmedBy,
})

/**
 * Checks that people whose changes were vetoed wait before they propose another successor of the same
 * document: those who end changes can then end each of them, however many variants a thief of a quorum
 * signs. Vetoes of people whom the document removes do not count, as in a veto of it.
 * @throws PolicyError `NOT_YET`
 */
function assertNotVetoedOften(
  { policy, vetoedChanges }: Governance,
  document: PolicyDocument,
  approvedBy: readonly string[],
  now_s: number,
): void {
  const counted = vetoedChanges.filter(({ by }) => !isRemoved(policy, { document }, by))
  for (const person of approvedBy) {
    const own = counted.filter((each) => each.approvedBy.includes(person))
    const surplus = own.length - LIMITS.vetoedChanges
    if (surplus < 0) continue
    const wait = Math.min(policy.document.change.delay_s * 2 ** surplus, LIMITS.delayS)
    const from = Math.max(...own.map(({ at_s }) => at_s)) + wait
    if (now_s < from)
      refuse(
        'NOT_YET',
        'approvals',
        `${own.length} changes of this document that ${person} has approved were vetoed; the next one is accepted from ${new Date(from * 1000).toISOString()} on`,
      )
  }
}

/**
 * Returns a time in Unix seconds at which all approvals were valid, if there is one. A holder that
 * has accepted them did so at that time or later.
 */
export function approvedAt(approvals: readonly SignedStatement[]): number {
  const timed = approvals.flatMap(({ statement }) => ('at' in statement ? [statement] : []))
  const latest = Math.max(...timed.map(({ at }) => at))
  return Math.min(latest, ...timed.map(({ expires }) => expires - 1))
}

/**
 * Judges a document again that was in force at this holder before, as its own backup proves. Its
 * signatures and its quorum are verified as of the time of the approvals. What has happened since
 * then does not count against it: their expiry, a veto, a suspension or revocation of a key, and a
 * stricter `lint`. It comes into force at once.
 * @param present time at which it is accepted again
 * @throws PolicyError the first fault
 */
export function judgeReinstatement(
  governance: Governance,
  { document, possessions, approvals }: Proposal,
  { registry }: Known,
  present: Present,
): PendingEffect {
  const previous = assertSuccessor(governance, document)
  const hash = documentHash(document)
  const earlier = { ...governance, suspensions: [], revoked: new Set<string>() }
  const at = { ...present, now_s: approvedAt(approvals) }
  const { actsAt, approvedBy } = assertApprovals(earlier, hash, approvals, at)
  assertPossessions(compile(document, registry), keysOf(previous), possessions, at)
  const { now_s } = present
  const times = { seen_at_s: now_s, acts_at_s: now_s, approved_for_s: actsAt }
  const rest = { approved_by: approvedBy, vetoed_by: null, confirmed_by: [] }
  return { type: 'pending', hash, ...times, ...rest }
}

/**
 * Applies what happens by time alone: a pending change comes into force, a suspension ends.
 * @param now_s Unix seconds
 */
export function advance(governance: Governance, now_s: number): Governance {
  const { next } = governance
  const isConfirmed =
    next !== null && (next.vetoedBy === null || next.confirmedBy.length >= LIMITS.confirmations)
  if (next === null || now_s < next.acts_at_s || !isConfirmed) return atTime(governance, now_s)
  return withPolicy(governance, next.policy, now_s)
}

/**
 * Returns the state in which another document is in force. A pending change and vetoes end; stops and
 * revocations remain.
 * @param now_s Unix seconds
 */
export function withPolicy(governance: Governance, policy: Policy, now_s: number): Governance {
  const before = atTime(governance, now_s)
  return {
    ...before,
    policy,
    next: null,
    vetoed: new Map(),
    vetoedChanges: [],
    // A suspension of a key that the new document does not contain has no meaning any more.
    suspensions: before.suspensions.filter(
      ({ target }) => spkiOf(policy, target) === spkiOf(governance.policy, target),
    ),
  }
}

const spkiOf = ({ people }: Policy, { person, key }: KeyRef): string | undefined =>
  people.get(person)?.get(key)?.spki

/**
 * Checks that a document follows the one in force.
 * @returns the one in force
 */
function assertSuccessor({ policy }: Governance, { number, previous }: PolicyDocument): Policy {
  if (number !== policy.document.number + 1 || previous !== policy.hash)
    refuse('OTHER_POLICY', 'previous', `is not the document ${policy.document.number} in force`)
  return policy
}

/** Returns the public keys (SPKI) of all people of a document. */
const keysOf = ({ people }: Policy): Set<string> =>
  new Set([...people.values()].flatMap((keys) => [...keys.values()].map(({ spki }) => spki)))

function assertPlace(document: PolicyDocument, place: Place): void {
  for (const field of ['mode', 'workspace', 'nodes'] as const)
    if (document[field] !== place[field])
      refuse('OTHER_WORKSPACE', field, 'is not that of this installation')
}

/** @throws PolicyError `LINT` */
function assertNoFaults(
  document: PolicyDocument,
  context: Known,
  { findFaults = lint }: Present,
): void {
  const fault = findFaults(document, { ...context, ...NOT_KNOWN }).find(
    ({ severity }) => severity === 'error',
  )
  if (fault) throw new PolicyError('LINT', fault.path, fault.message)
}

/**
 * Verifies the approvals of a document with a hash.
 * @returns the time in Unix seconds that all of them name, and the people who have given them
 */
function assertApprovals(
  governance: Governance,
  hash: string,
  approvals: readonly SignedStatement[],
  present: Present,
): { actsAt: number; approvedBy: string[] } {
  const found = approvals.map((signed, at) => {
    const { statement } = verified(governance, 'change', signed, present)
    if (statement.next.hash !== hash)
      refuse('OTHER_STATEMENT', `approvals[${at}].next.hash`, 'is not the hash of the document')
    return statement
  })
  assertQuorum(
    governance,
    'change',
    found.map(({ by: person, key }) => ({ person, key })),
  )
  const times = new Set(found.map(({ acts_at }) => acts_at))
  const [actsAt = 0] = times
  if (times.size > 1) refuse('OTHER_STATEMENT', 'approvals', 'name different times')
  const latest = present.now_s + LIMITS.delayS + LIMITS.statementS
  if (actsAt > latest) refuse('SHAPE', 'acts_at', `must be at most ${latest}`)
  return { actsAt, approvedBy: [...new Set(found.map(({ by }) => by))].sort() }
}

/**
 * Checks that the holder of each new key has agreed to the document.
 * @param known public keys that need no proof
 */
function assertPossessions(
  policy: Policy,
  known: ReadonlySet<string>,
  possessions: readonly SignedStatement[],
  { now_s, verify = verifyStatement }: Present,
): void {
  for (const [person, keys] of policy.people)
    for (const { id, spki } of keys.values()) {
      if (known.has(spki)) continue
      const proof = possessions.find(
        ({ statement: { kind, by, key } }) => kind === 'possession' && by === person && key === id,
      )
      if (!proof)
        return refuse('POSSESSION', 'possessions', `the proof of ${id} of ${person} is missing`)
      verify(policy, proof, { now_s, suspended: new Set() })
    }
}
