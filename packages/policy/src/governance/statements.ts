import type { Policy } from '../evaluation/compile.ts'
import { PolicyError, type PolicyErrorCode } from '../error.ts'
import { assertSuspension, countQuorum, type KeyRef } from '../statements/quorum.ts'
import { statementHash, type StatementKind, type StatementOf } from '../statements/shapes.ts'
import { assertStatement, verifyStatement, type SignedStatement } from '../statements/verify.ts'
import { LIMITS } from '../limits.ts'
import type {
  ConfirmEffect,
  ResumeEffect,
  RevokeEffect,
  StatementEffect,
  StopEffect,
  SuspendEffect,
  VetoEffect,
} from './effects.ts'
import {
  blockedKeys,
  suspendedKeys,
  type EndedStop,
  type Governance,
  type PendingChange,
  type Present,
} from './governance.ts'

export const refuse = (code: PolicyErrorCode, path: string, message: string): never => {
  throw new PolicyError(code, path, message)
}

/**
 * Verifies a statement of a kind by the document in force.
 * @returns the statement and its hash
 * @throws PolicyError also if its key was revoked
 */
export function verified<Kind extends StatementKind>(
  governance: Governance,
  kind: Kind,
  signed: SignedStatement,
  { now_s, verify = verifyStatement }: Present,
): { statement: StatementOf<Kind>; hash: string } {
  const { policy, revoked } = governance
  const { statement } = signed
  if (statement.kind !== kind) refuse('SHAPE', 'kind', `must be ${kind}`)
  const key = policy.people.get(statement.by)?.get(statement.key)
  if (key && revoked.has(key.spki))
    refuse('KEY_REVOKED', 'key', `${statement.key} of ${statement.by} is revoked`)
  const hash = verify(policy, signed, { now_s, suspended: suspendedKeys(governance) })
  return { statement: statement as StatementOf<Kind>, hash }
}

/**
 * Judges a veto. It ends the pending change, unless it removes the person who vetoes it. Such a change
 * waits until the operators of two nodes confirm it: a stolen key that is to be removed could otherwise
 * never be. A veto of a change that has not been seen here holds when the change arrives.
 *
 * A person can always veto the pending change. How many can be pending is limited by those who propose
 * them (`judgeChange`).
 * @returns null if it changes nothing
 * @throws PolicyError `NOT_ALLOWED` if the person has vetoed too many changes that are not pending here
 */
function judgeVeto(
  governance: Governance,
  signed: SignedStatement,
  present: Present,
): VetoEffect | null {
  const { statement } = verified(governance, 'veto', signed, present)
  const { policy, next, vetoed, vetoedChanges } = governance
  const { by } = statement
  const { hash } = statement.next
  const effect = { type: 'veto' as const, hash, by, approved_by: [], at_s: present.now_s }
  const isPending = next?.policy.hash === hash
  if (isPending && isRemoved(policy, next.policy, by))
    return next.vetoedBy === null ? { ...effect, outcome: 'held' } : null
  if (vetoed.get(hash)?.includes(by)) return null
  if (isPending) return { ...effect, outcome: 'ended', approved_by: next.approvedBy }
  const ended = new Set(vetoedChanges.map((each) => each.hash))
  const early = [...vetoed].filter(([of, people]) => !ended.has(of) && people.includes(by))
  if (early.length >= LIMITS.earlyVetoes && !ended.has(hash))
    refuse('NOT_ALLOWED', 'by', `${by} has vetoed too many changes that are not pending here`)
  return { ...effect, outcome: 'early' }
}

/**
 * Judges the confirmation of a change that a person whom it removes has vetoed.
 * @param node whose operator typed the hash
 * @returns null if it changes nothing
 * @throws PolicyError `OTHER_POLICY`
 */
export function judgeConfirmation(
  governance: Governance,
  hash: string,
  node: number,
): ConfirmEffect | null {
  const { confirmedBy } = pendingOf(governance, hash, 'hash')
  return confirmedBy.includes(node) ? null : { type: 'confirm', hash, node }
}

type Documented = Pick<Policy, 'document'>

/** Returns whether a document contains none of a person's present keys. */
export function isRemoved(present: Documented, next: Documented, person: string): boolean {
  const kept = new Set(keysOfPerson(next, person))
  return !keysOfPerson(present, person).some((spki) => kept.has(spki))
}

/** Returns the public keys (SPKI) of a person; an empty list if the document does not contain them. */
const keysOfPerson = ({ document }: Documented, person: string): string[] =>
  document.people
    .filter(({ id }) => id === person)
    .flatMap(({ keys }) => keys.map(({ spki }) => spki))

function pendingOf({ next }: Governance, hash: string, path: string): PendingChange {
  return next?.policy.hash === hash
    ? next
    : refuse('OTHER_POLICY', path, 'is not the hash of the pending change')
}

/**
 * Judges a stop of the workspace or of one sub-account. A later stop of the same scope replaces it.
 * @returns null if it changes nothing
 * @throws PolicyError `EXPIRED` if the stop, or a later one, was ended
 */
function judgeStop(
  governance: Governance,
  signed: SignedStatement,
  present: Present,
): StopEffect | null {
  const { statement, hash } = verified(governance, 'stop', signed, present)
  const { sub_account, by, at } = statement
  if (isEnded(governance, { hash, sub_account, at }))
    refuse('EXPIRED', 'at', 'is not later than a stop that was ended; sign it again')
  const earlier = governance.stops.find((each) => each.sub_account === sub_account)
  if (earlier && earlier.at >= at) return null
  const others = governance.stops.filter((each) => each !== earlier)
  if (others.length >= LIMITS.stops)
    refuse('NOT_ALLOWED', 'sub_account', 'too many are stopped; stop the whole workspace')
  return { type: 'stop', hash, sub_account, by, at }
}

/** Returns whether a stop, or a later one of its scope, was ended. */
const isEnded = (
  { resumedUpTo, endedStops }: Governance,
  { hash, sub_account, at }: EndedStop,
): boolean =>
  at <= (resumedUpTo.get(sub_account) ?? -1) || endedStops.some((each) => each.hash === hash)

/**
 * Verifies a stop that is to be ended, which need not have been seen here. A key of any document up to
 * the one in force can have signed it, if that document let its person stop. A stop does not expire.
 * @param documents at least one; the one in force last
 * @throws PolicyError by the document in force; `NOT_YET` if the time of the stop is in the future
 */
function assertSignedStop(
  documents: readonly Policy[],
  signed: SignedStatement,
  { now_s, verify = verifyStatement }: Present,
): EndedStop {
  const { statement } = signed
  if (statement.kind !== 'stop') return refuse('SHAPE', 'stop.kind', 'must be stop')
  const { sub_account, at } = statement
  if (at > now_s + LIMITS.clockSkewS)
    refuse('NOT_YET', 'stop.at', 'is in the future; check both clocks')
  const context = { now_s: at, suspended: new Set<string>() }
  const tried = new Set<string | undefined>()
  let fault: PolicyError | null = null
  for (const policy of documents.toReversed()) {
    try {
      const { spki } = assertStatement(policy, statement, context)
      if (tried.has(spki)) continue
      tried.add(spki)
      return { hash: verify(policy, signed, context), sub_account, at }
    } catch (error) {
      if (!(error instanceof PolicyError)) throw error
      fault ??= error
    }
  }
  const { code, path, message } = fault!
  return refuse(code, `stop.${path}`, message.slice(path.length + 2))
}

/**
 * Judges the end of a stop, which also ends the earlier ones of its scope.
 * @param stopped the signed stop, so that a node that has not seen it can still refuse it later
 * @param approvals signed statements of the kind `resume`
 * @param earlier documents before the one in force, the first one first
 * @returns null if it changes nothing
 * @throws PolicyError `QUORUM` if the approvals are not sufficient
 */
export function judgeResume(
  governance: Governance,
  { stopped, approvals }: { stopped: SignedStatement; approvals: readonly SignedStatement[] },
  present: Present,
  earlier: readonly Policy[],
): ResumeEffect | null {
  const hash = statementHash(stopped.statement)
  const signers = approvals.map((signed, at) => {
    const { statement } = verified(governance, 'resume', signed, present)
    if (statement.stop !== hash)
      refuse('OTHER_STATEMENT', `approvals[${at}].stop`, 'is not the hash of the stop')
    return { person: statement.by, key: statement.key }
  })
  assertQuorum(governance, 'resume', signers)
  const ended = assertSignedStop([...earlier, governance.policy], stopped, present)
  if (isEnded(governance, ended)) return null
  return { type: 'resume', stop: hash, sub_account: ended.sub_account, at: ended.at }
}

/** @throws PolicyError `QUORUM` */
export function assertQuorum(
  governance: Governance,
  of: 'change' | 'resume',
  signers: readonly KeyRef[],
): void {
  const { policy } = governance
  const { approvals } = policy.document[of]
  const { needs, isMet } = countQuorum(policy, approvals, signers, blockedKeys(governance))
  if (isMet) return
  const counted = needs.map(({ group, k, have }) => `${have} of ${k} of ${group}`).join(' and ')
  refuse('QUORUM', 'approvals', `are not sufficient for ${of}: ${counted}`)
}

/**
 * Judges a suspension of another person's key for seven days from the time of the statement, so that it
 * ends at the same time at each holder, and cannot be extended by showing it late. Those who remain must
 * be able to change the document and to end a stop; revoked keys are not among them.
 * @returns null if it changes nothing
 * @throws PolicyError `NOT_ALLOWED`
 */
function judgeSuspension(
  governance: Governance,
  signed: SignedStatement,
  present: Present,
): SuspendEffect | null {
  const { statement, hash } = verified(governance, 'suspend', signed, present)
  const { policy, suspensions } = governance
  const { by, target, at } = statement
  if (suspensions.some((each) => each.hash === hash)) return null
  assertSuspension(policy, { by, target }, suspensions, blockedKeys(governance))
  return { type: 'suspend', hash, by, target, ends_at_s: at + LIMITS.suspensionS }
}

/**
 * Judges the revocation of one of the signer's own keys, at once and permanently.
 * @returns null if the key is already revoked
 */
function judgeRevocation(
  governance: Governance,
  signed: SignedStatement,
  present: Present,
): RevokeEffect | null {
  const { statement } = verified(governance, 'revoke', signed, present)
  const { policy, revoked } = governance
  const { person, key } = statement.target
  const { spki } = policy.people.get(person)!.get(key)!
  return revoked.has(spki) ? null : { type: 'revoke', spki }
}

/**
 * Judges a veto, stop, suspension or revocation.
 * @returns null if it changes nothing
 * @throws PolicyError also for other kinds of statements
 */
export function judgeStatement(
  governance: Governance,
  signed: SignedStatement,
  present: Present,
): StatementEffect | null {
  switch (signed.statement.kind) {
    case 'veto':
      return judgeVeto(governance, signed, present)
    case 'stop':
      return judgeStop(governance, signed, present)
    case 'suspend':
      return judgeSuspension(governance, signed, present)
    case 'revoke':
      return judgeRevocation(governance, signed, present)
    default:
      return refuse('SHAPE', 'kind', 'must be veto, stop, suspend or revoke')
  }
}
