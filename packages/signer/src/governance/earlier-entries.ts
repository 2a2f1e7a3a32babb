import {
  actsFrom,
  documentHash,
  isRemoved,
  LIMITS,
  pendingEffect,
  PolicyError,
  readDocument,
  readSigned,
  statementHash,
  type SignedStatement,
  type StatementOf,
} from '@custody/policy'
import { isPlain } from './apply.ts'
import { enrolmentEffect, isEnrolmentKnown, isOfEnrolment } from './enrolments.ts'
import { governanceOf, heldAt, isOfBackup, keptBy, type Held } from './held.ts'
import type { GovernanceEntry, Judged, JudgedOf } from './items.ts'
import { hashOfText } from './reset-rules.ts'
import { isStandingKnown, policiesSince, standingEffect } from './standing.ts'

// Earlier versions wrote entries without an effect, and judged them again whenever they read the record.
// These are the rules of those versions, without the checks that the entries have passed. They must not
// change: the records in `testing/policy-records` state what those versions held.

/**
 * Longest time in seconds between the judgement of an item and its entry. An entry that is later has an
 * item that a peer had seen before, and that was judged by the state of the time of the entry.
 */
const JUDGEMENT_S = 60

/** An entry of an earlier version with its effect. */
export interface EarlierEntry {
  /** Null if it changes nothing. */
  readonly entry: Judged | null
  /** What was changed because it would be refused now; null: nothing. */
  readonly note: string | null
}

type Other = Exclude<Judged, JudgedOf<'policy-known' | 'policy-uninstalled'>>

/**
 * Returns an entry with its effect. The entry is returned as it is if it has one.
 * @param before what the node holds after the entry before it
 * @throws PolicyError if the entry does not fit to what the node holds
 */
export function withEarlierEffect(before: Held, entry: GovernanceEntry): EarlierEntry {
  const { kind, body } = entry
  const judged = { kind, body } as Judged
  if (isPlain(judged) || judged.body.effect !== undefined) return { entry: judged, note: null }
  const { at_s } = judged.body
  const own_s = Math.max(at_s, Math.floor(entry.at / 1000))
  const times = own_s - at_s <= JUDGEMENT_S ? [at_s, own_s] : [own_s]
  let fault: PolicyError | null = null
  for (const now_s of times) {
    const held = heldAt(before, now_s)
    try {
      const clamped = clampedStop(judged, own_s)
      const effect = effectOf(held, judged, own_s)
      const by = { now_s, in_force: held.governance?.policy.hash ?? null }
      const complete = { ...judged, body: { ...judged.body, effect: { ...by, ...effect } } }
      return { entry: effect && (complete as Judged), note: clamped }
    } catch (error) {
      if (!(error instanceof PolicyError)) throw error
      fault ??= error
    }
  }
  throw fault!
}

const doesNotFit = (): never => {
  throw new PolicyError('OTHER_POLICY', '', 'does not fit to the entries before it')
}

/** Returns the effect of an entry; null if it changes nothing. @throws PolicyError */
function effectOf(held: Held, entry: Other, own_s: number): object | null {
  switch (entry.kind) {
    case 'policy-typed': {
      const hash = hashOfText(entry.body.document)
      return held.governance !== null || held.typed?.hash === hash ? null : { hash }
    }
    case 'policy-begun':
      return held.governance === null ? { hash: hashOfText(entry.body.document) } : null
    case 'policy-change':
      return changeEffect(held, entry.body)
    case 'policy-statement':
      return statementEffect(held, readSigned(entry.body.signed), entry.body.at_s)
    case 'policy-resumed':
      return resumeEffect(held, entry.body, own_s)
    case 'policy-confirmed': {
      const { hash, node } = entry.body
      const { next } = governanceOf(held)
      if (next?.policy.hash !== hash) return doesNotFit()
      return next.confirmedBy.includes(node) ? null : { type: 'confirm', hash, node }
    }
    case 'policy-approved':
      return approvedEffect(held, entry.body)
    case 'policy-followed':
      return { kept: keptBy(held, entry.body.chain) }
    default:
      return resetEffect(held, entry)
  }
}

type OfReset = JudgedOf<
  'policy-reset-typed' | 'policy-reset-complete' | 'policy-reset-withdrawn' | 'policy-reset-begun'
>

function resetEffect(held: Held, { kind, body }: OfReset): object | null {
  if (kind === 'policy-reset-complete' || kind === 'policy-reset-withdrawn') {
    if (held.reset?.hash !== body.hash) return doesNotFit()
    return kind === 'policy-reset-complete' && held.reset.complete !== null ? null : {}
  }
  const hash = hashOfText(body.document)
  if (kind === 'policy-reset-typed') {
    const { number, previous } = readDocument(body.document)
    return held.reset?.hash === hash ? null : { hash, number, previous }
  }
  if (held.chain.some((each) => each.hash === hash)) return null
  assertSuccessor(held, body.document)
  return { hash }
}

function assertSuccessor(held: Held, text: string): void {
  const { document, hash } = governanceOf(held).policy
  const { number, previous } = readDocument(text)
  if (number !== document.number + 1 || previous !== hash) doesNotFit()
}

function changeEffect(held: Held, body: JudgedOf<'policy-change'>['body']): object | null {
  const { document, approvals, witnesses, at_s: now_s } = body
  const { policy, next, vetoed } = governanceOf(held)
  assertSuccessor(held, document)
  const hash = documentHash(readDocument(document))
  const isPending = next?.policy.hash === hash
  if (next !== null && !isPending) doesNotFit()
  const signed = approvals
    .map(readSigned)
    .flatMap(({ statement }) => (statement.kind === 'change' ? [statement] : []))
  const actsAt = signed[0]?.acts_at ?? 0
  const seen = Math.min(now_s, witnesses ? Math.max(...witnesses) : Infinity)
  const isReinstated = isOfBackup(held, document)
  const acts_at_s = isReinstated ? now_s : actsFrom(policy, { seen, actsAt, now_s })
  if (isPending && !isReinstated)
    return acts_at_s < next.acts_at_s ? { ...pendingEffect(next), acts_at_s } : null
  return {
    type: 'pending',
    hash,
    seen_at_s: now_s,
    acts_at_s,
    approved_for_s: actsAt,
    approved_by: [...new Set(signed.map(({ by }) => by))].sort(),
    vetoed_by: isReinstated ? null : (vetoed.get(hash)?.[0] ?? null),
    confirmed_by: [],
  }
}

function statementEffect(held: Held, { statement }: SignedStatement, at_s: number): object | null {
  const governance = governanceOf(held)
  const hash = statementHash(statement)
  switch (statement.kind) {
    case 'veto':
      return vetoEffect(held, statement, at_s)
    case 'stop': {
      const { sub_account, by, at } = statement
      const earlier = governance.stops.find((each) => each.sub_account === sub_account)
      const ended = governance.resumedUpTo.get(sub_account) ?? -1
      if (at <= Math.max(ended, earlier?.at ?? -1)) return null
      return { type: 'stop', hash, sub_account, by, at }
    }
    case 'suspend': {
      const { by, target, at } = statement
      if (governance.suspensions.some((each) => each.hash === hash)) return null
      return { type: 'suspend', hash, by, target, ends_at_s: at + LIMITS.suspensionS }
    }
    case 'revoke': {
      const { person, key } = statement.target
      const spki = governance.policy.people.get(person)?.get(key)?.spki
      if (spki === undefined) return doesNotFit()
      return governance.revoked.has(spki) ? null : { type: 'revoke', spki }
    }
    default:
      return doesNotFit()
  }
}

function vetoEffect(
  held: Held,
  { by, policy: of, next: vetoed }: StatementOf<'veto'>,
  at_s: number,
) {
  const { policy, next, vetoed: before } = governanceOf(held)
  const { hash } = vetoed
  if (of.hash !== policy.hash) return doesNotFit()
  const effect = { type: 'veto', hash, by, approved_by: [] as readonly string[], at_s }
  const isPending = next?.policy.hash === hash
  if (isPending && isRemoved(policy, next.policy, by))
    return next.vetoedBy === null ? { ...effect, outcome: 'held' } : null
  if (before.get(hash)?.includes(by)) return null
  return isPending
    ? { ...effect, outcome: 'ended', approved_by: next.approvedBy }
    : { ...effect, outcome: 'early' }
}

/** Returns whether a stop is dated so late that its end would be refused now. */
const isPostDated = (at: number, own_s: number): boolean => at > own_s + LIMITS.clockSkewS

/**
 * Those versions did not verify the time of a stop that was ended. Its end then held for all stops up to
 * that time, and now holds for those up to the time of the entry.
 */
function resumeEffect(
  held: Held,
  { stop }: JudgedOf<'policy-resumed'>['body'],
  own_s: number,
): object | null {
  const { statement } = readSigned(stop)
  if (statement.kind !== 'stop') return doesNotFit()
  const { sub_account } = statement
  const at = isPostDated(statement.at, own_s) ? own_s : statement.at
  if (at <= (governanceOf(held).resumedUpTo.get(sub_account) ?? -1)) return null
  return { type: 'resume', stop: statementHash(statement), sub_account, at }
}

/** Returns what is logged about the end of a post-dated stop; null for other entries. */
function clampedStop(entry: Other, own_s: number): string | null {
  if (entry.kind !== 'policy-resumed') return null
  const { statement } = readSigned(entry.body.stop)
  if (statement.kind !== 'stop' || !isPostDated(statement.at, own_s)) return null
  const [dated, ended] = [statement.at, own_s].map((at) => new Date(at * 1000).toISOString())
  return `the end of a stop that is dated ${dated} ends stops up to ${ended} only`
}

function approvedEffect(held: Held, body: JudgedOf<'policy-approved'>['body']): object | null {
  const [first] = body.approvals
  const { statement } = readSigned(first!)
  if (statement.kind !== 'approval') return doesNotFit()
  const documents = { governance: governanceOf(held), chain: held.chain }
  const [policy] = policiesSince(documents, statement.policy.hash)
  if (policy === undefined) return doesNotFit()
  if (isOfEnrolment(body.approvals)) {
    const effect = enrolmentEffect(policy, body.approvals)
    return isEnrolmentKnown(held.enrolments, effect) ? null : effect
  }
  const effect = standingEffect(policy, body)
  return isStandingKnown(held.approved, effect) ? null : effect
}
