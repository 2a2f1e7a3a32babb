import type { Policy } from '../evaluation/compile.ts'
import type { KeyRef } from '../statements/quorum.ts'
import type { Governance, PendingChange, Suspension } from './governance.ts'

/**
 * A change is pending from now on, or acts earlier than it did. The document is in the item. Times in
 * Unix seconds, as {@link PendingChange}.
 */
export interface PendingEffect {
  readonly type: 'pending'
  /** Hash of the document. */
  readonly hash: string
  readonly seen_at_s: number
  readonly acts_at_s: number
  readonly approved_for_s: number
  readonly approved_by: readonly string[]
  readonly vetoed_by: string | null
  readonly confirmed_by: readonly number[]
}

/**
 * A veto. `early`: the change is not pending here. `ended`: it was pending until now. `held`: it removes
 * the person, so it waits for the operators.
 */
export interface VetoEffect {
  readonly type: 'veto'
  /** Hash of the document. */
  readonly hash: string
  readonly by: string
  readonly outcome: 'early' | 'ended' | 'held'
  /** People who had approved the change that ended; empty for other outcomes. */
  readonly approved_by: readonly string[]
  /** Unix seconds at which the veto was judged. */
  readonly at_s: number
}

/** A stop is in force, and replaces the one of the same scope. */
export interface StopEffect {
  readonly type: 'stop'
  readonly hash: string
  readonly sub_account: string | null
  readonly by: string
  /** Unix seconds of the statement. */
  readonly at: number
}

/** A stop was ended, and with it all earlier ones of its scope. */
export interface ResumeEffect {
  readonly type: 'resume'
  /** Hash of the stop. */
  readonly stop: string
  readonly sub_account: string | null
  /** Unix seconds of the stop: `resumedUpTo` from that time on. */
  readonly at: number
}

/** A key counts for nothing until a time in Unix seconds. */
export interface SuspendEffect {
  readonly type: 'suspend'
  readonly hash: string
  readonly by: string
  readonly target: KeyRef
  readonly ends_at_s: number
}

/** A public key (SPKI) counts for nothing any more. */
export interface RevokeEffect {
  readonly type: 'revoke'
  readonly spki: string
}

/** The operator of a node has confirmed the pending change. */
export interface ConfirmEffect {
  readonly type: 'confirm'
  /** Hash of the document. */
  readonly hash: string
  readonly node: number
}

export type StatementEffect = VetoEffect | StopEffect | SuspendEffect | RevokeEffect

/**
 * What an item changes, after it was judged. It contains everything that {@link withEffect} needs, so
 * that a record can be read again by every later version without another judgement.
 */
export type Effect = PendingEffect | StatementEffect | ResumeEffect | ConfirmEffect

/** Returns the state in which a first document is in force. */
export const firstInForce = (policy: Policy): Governance => ({
  policy,
  next: null,
  vetoed: new Map(),
  vetoedChanges: [],
  stops: [],
  resumedUpTo: new Map(),
  endedStops: [],
  suspensions: [],
  revoked: new Set(),
})

/**
 * Returns the state after an effect. This never refuses an effect, and nothing else changes the state
 * of a workspace, except time ({@link atTime}).
 * @param next the document of the item; only a pending change needs it
 * @param now_s Unix seconds of the state
 */
export function withEffect(
  governance: Governance,
  effect: Effect,
  next: Policy | null,
  now_s: number,
): Governance {
  switch (effect.type) {
    case 'pending':
      return { ...governance, next: next && pendingOf(effect, next) }
    case 'veto':
      return withVeto(governance, effect)
    case 'stop':
      return withStop(governance, effect)
    case 'resume': {
      const { stop: hash, sub_account, at } = effect
      const stops = governance.stops.filter((each) => each.hash !== hash)
      const endedStops = [...governance.endedStops, { hash, sub_account, at }]
      return atTime({ ...governance, stops, endedStops }, now_s)
    }
    case 'suspend': {
      const { hash, by, target, ends_at_s } = effect
      return {
        ...governance,
        suspensions: [...governance.suspensions, { hash, by, target, ends_at_s }],
      }
    }
    case 'revoke':
      return { ...governance, revoked: new Set([...governance.revoked, effect.spki]) }
    case 'confirm':
      return withConfirmation(governance, effect)
  }
}

const pendingOf = (effect: PendingEffect, policy: Policy): PendingChange => ({
  policy,
  seen_at_s: effect.seen_at_s,
  acts_at_s: effect.acts_at_s,
  approved_for_s: effect.approved_for_s,
  approvedBy: effect.approved_by,
  vetoedBy: effect.vetoed_by,
  confirmedBy: effect.confirmed_by,
})

function withVeto(
  governance: Governance,
  { hash, by, outcome, approved_by, at_s }: VetoEffect,
): Governance {
  const { next, vetoed, vetoedChanges } = governance
  const isPending = next?.policy.hash === hash
  if (outcome === 'held')
    return isPending ? { ...governance, next: { ...next, vetoedBy: by } } : governance
  const change = { hash, by, approvedBy: approved_by, at_s }
  return {
    ...governance,
    next: isPending ? null : next,
    vetoed: new Map([...vetoed, [hash, [...(vetoed.get(hash) ?? []), by]]]),
    vetoedChanges: outcome === 'ended' ? [...vetoedChanges, change] : vetoedChanges,
  }
}

function withStop(governance: Governance, { hash, sub_account, by, at }: StopEffect): Governance {
  const others = governance.stops.filter((each) => each.sub_account !== sub_account)
  return { ...governance, stops: [...others, { hash, sub_account, by, at }] }
}

function withConfirmation(governance: Governance, { hash, node }: ConfirmEffect): Governance {
  const { next } = governance
  if (next?.policy.hash !== hash) return governance
  return { ...governance, next: { ...next, confirmedBy: [...next.confirmedBy, node] } }
}

/**
 * Returns the state at a time at which the same document is in force: suspensions have ended, and ended
 * stops have reached their own time.
 * @param now_s Unix seconds
 * @returns the same value if nothing has changed
 */
export function atTime(governance: Governance, now_s: number): Governance {
  const { suspensions, endedStops } = governance
  const isOpen = ({ ends_at_s }: Suspension): boolean => now_s < ends_at_s
  const reached = endedStops.filter(({ at }) => at <= now_s)
  if (reached.length === 0)
    return suspensions.every(isOpen)
      ? governance
      : { ...governance, suspensions: suspensions.filter(isOpen) }
  const resumedUpTo = new Map(governance.resumedUpTo)
  for (const { sub_account, at } of reached)
    resumedUpTo.set(sub_account, Math.max(at, resumedUpTo.get(sub_account) ?? at))
  return {
    ...governance,
    suspensions: suspensions.filter(isOpen),
    resumedUpTo,
    endedStops: endedStops.filter(({ at }) => at > now_s),
    stops: governance.stops.filter(
      ({ sub_account, at }) => at > (resumedUpTo.get(sub_account) ?? -1),
    ),
  }
}
