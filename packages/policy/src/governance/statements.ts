import type { Policy } from '../evaluation/compile.ts'
import { PolicyError, type PolicyErrorCode } from '../error.ts'
import { assertSuspension, countQuorum, type KeyRef } from '../statements/quorum.ts'
import type { StatementKind, StatementOf } from '../statements/shapes.ts'
import { verifyStatement, type SignedStatement } from '../statements/verify.ts'
import { LIMITS } from '../limits.ts'
import {
  blockedKeys,
  suspendedKeys,
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
 * Ends the pending change, unless it removes the person who vetoes it. Such a change waits until the
 * operators of two nodes confirm it: a stolen key that is to be removed could otherwise never be.
 * A veto of a change that has not been seen here holds when the change arrives.
 * @throws PolicyError `NOT_ALLOWED` if the person has vetoed too many changes of this document
 */
export function veto(
  governance: Governance,
  signed: SignedStatement,
  present: Present,
): Governance {
  const { statement } = verified(governance, 'veto', signed, present)
  const { policy, next, vetoed } = governance
  const { by } = statement
  const { hash } = statement.next
  const vetoers = vetoed.get(hash) ?? []
  if (next?.policy.hash === hash && isRemoved(policy, next.policy, by))
    return next.vetoedBy === null ? { ...governance, next: { ...next, vetoedBy: by } } : governance
  if (vetoers.includes(by)) return governance
  if ([...vetoed.values()].filter((each) => each.includes(by)).length >= LIMITS.vetoes)
    refuse('NOT_ALLOWED', 'by', `${by} has vetoed too many changes of this document`)
  return {
    ...governance,
    next: next?.policy.hash === hash ? null : next,
    vetoed: new Map([...vetoed, [hash, [...vetoers, by]]]),
  }
}

/**
 * Confirms a change that a person whom it removes has vetoed.
 * @param node whose operator typed the hash
 * @throws PolicyError `OTHER_POLICY`
 */
export function confirm(governance: Governance, hash: string, node: number): Governance {
  const next = pendingOf(governance, hash, 'hash')
  if (next.confirmedBy.includes(node)) return governance
  return { ...governance, next: { ...next, confirmedBy: [...next.confirmedBy, node] } }
}

/** Returns whether a document contains none of a person's present keys. */
export function isRemoved(present: Policy, next: Policy, person: string): boolean {
  const kept = new Set(keysOfPerson(next, person))
  return !keysOfPerson(present, person).some((spki) => kept.has(spki))
}

/** Returns the public keys (SPKI) of a person; an empty list if the document does not contain them. */
const keysOfPerson = ({ document }: Policy, person: string): string[] =>
  document.people
    .filter(({ id }) => id === person)
    .flatMap(({ keys }) => keys.map(({ spki }) => spki))

function pendingOf({ next }: Governance, hash: string, path: string): PendingChange {
  return next?.policy.hash === hash
    ? next
    : refuse('OTHER_POLICY', path, 'is not the hash of the pending change')
}

/**
 * Stops signing for the workspace or one sub-account. A later stop of the same scope replaces it.
 * @throws PolicyError `EXPIRED` if the stop, or a later one, was ended
 */
export function stop(
  governance: Governance,
  signed: SignedStatement,
  present: Present,
): Governance {
  const { statement, hash } = verified(governance, 'stop', signed, present)
  const { sub_account, by, at } = statement
  if (at <= (governance.resumedUpTo.get(sub_account) ?? -1))
    refuse('EXPIRED', 'at', 'is not later than a stop that was ended; sign it again')
  const earlier = governance.stops.find((each) => each.sub_account === sub_account)
  if (earlier && earlier.at >= at) return governance
  const others = governance.stops.filter((each) => each !== earlier)
  if (others.length >= LIMITS.stops)
    refuse('NOT_ALLOWED', 'sub_account', 'too many are stopped; stop the whole workspace')
  return { ...governance, stops: [...others, { hash, sub_account, by, at }] }
}

/**
 * Ends a stop and the earlier ones of its scope.
 * @param stopped the signed stop, so that a node that has not seen it can still refuse it later
 * @param approvals signed statements of the kind `resume`
 * @throws PolicyError `QUORUM` if the approvals are not sufficient
 */
export function resume(
  governance: Governance,
  stopped: { readonly hash: string; readonly sub_account: string | null; readonly at: number },
  approvals: readonly SignedStatement[],
  present: Present,
): Governance {
  const signers = approvals.map((signed, at) => {
    const { statement } = verified(governance, 'resume', signed, present)
    if (statement.stop !== stopped.hash)
      refuse('OTHER_STATEMENT', `approvals[${at}].stop`, 'is not the hash of the stop')
    return { person: statement.by, key: statement.key }
  })
  assertQuorum(governance, 'resume', signers)
  const { sub_account, at: upTo } = stopped
  if (upTo <= (governance.resumedUpTo.get(sub_account) ?? -1)) return governance
  return {
    ...governance,
    stops: governance.stops.filter((each) => each.sub_account !== sub_account || each.at > upTo),
    resumedUpTo: new Map([...governance.resumedUpTo, [sub_account, upTo]]),
  }
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
 * Suspends another person's key for seven days from the time of the statement, so that it ends at the
 * same time at each holder, and cannot be extended by showing it late. Those who remain must be able
 * to change the document and to end a stop; revoked keys are not among them.
 * @throws PolicyError `NOT_ALLOWED`
 */
export function suspend(
  governance: Governance,
  signed: SignedStatement,
  present: Present,
): Governance {
  const { statement, hash } = verified(governance, 'suspend', signed, present)
  const { policy, suspensions } = governance
  const { by, target, at } = statement
  const ends_at_s = at + LIMITS.suspensionS
  if (suspensions.some((each) => each.hash === hash)) return governance
  assertSuspension(policy, { by, target }, suspensions, blockedKeys(governance))
  return { ...governance, suspensions: [...suspensions, { hash, by, target, ends_at_s }] }
}

/**
 * Revokes one of the signer's own keys, at once and permanently.
 * @returns the same value if the key is already revoked
 */
export function revoke(
  governance: Governance,
  signed: SignedStatement,
  present: Present,
): Governance {
  const { statement } = verified(governance, 'revoke', signed, present)
  const { policy, revoked } = governance
  const { person, key } = statement.target
  const { spki } = policy.people.get(person)!.get(key)!
  return revoked.has(spki) ? governance : { ...governance, revoked: new Set([...revoked, spki]) }
}
