import { assertAct, assetOf, type Act } from '../act.ts'
import { PolicyError } from '../error.ts'
import type { Rule } from '../document/rules.ts'
import {
  combineNeeds,
  countApprovals,
  whyUnreachable,
  type Approval,
  type Quorate,
} from './approvals.ts'
import type { CompiledRule, Need, Policy } from './compile.ts'
import { addressKey, type Subject } from './conditions.ts'
import { measure, type WindowContext, type WindowState } from './measure.ts'
import { metersOf, type Charge } from './windows.ts'

/** What an evaluation needs besides the document and the act. */
export interface EvaluationContext extends WindowContext {
  /** Verified approvals of this act under this document. */
  readonly approvals: readonly Approval[]
  /** Suspended keys, as `keyName` names them. */
  readonly suspended: ReadonlySet<string>
  /**
   * ID of the `allow` rule by which the act is to pass. The act is denied if that rule does not fit,
   * even if another one does. Undefined: the rule that needs the fewest further approvals.
   */
  readonly via?: string
}

/** Reason why a rule does not fit, or what a rule adds. */
export interface Tried {
  readonly rule: string
  readonly effect: Rule['effect']
  /** The rule applies: an `allow` lets the act through, any other rule restricts it. */
  readonly fits: boolean
  /** Null for an `allow` that fits. */
  readonly why: string | null
}

/** Result of an evaluation. */
export interface Evaluation {
  /** `approve`: the act passes once all quorums of `needs` are reached. */
  readonly effect: 'allow' | 'approve' | 'deny'
  /** ID of the rule by which the act passes; null if it is denied. */
  readonly via: string | null
  readonly needs: readonly Quorate[]
  /** People whose approvals count. */
  readonly approvedBy: readonly string[]
  /** Every `allow`, and every other rule that restricts the act; sorted by effect and ID. */
  readonly tried: readonly Tried[]
  /** Of a denial: the `allow` with the fewest conditions that do not hold, with all of them. */
  readonly nearest: { readonly rule: string; readonly why: string } | null
  readonly windows: readonly WindowState[]
}

/** Derives from an act what conditions and windows need. */
export function subjectOf(policy: Policy, act: Act): Subject {
  assertAct(policy.registry, act)
  if (act.workspace !== policy.document.workspace)
    throw new PolicyError('ACT', 'workspace', `must be ${policy.document.workspace}`)
  const asset = assetOf(policy.registry, act.asset, 'asset')
  const paymentKey = policy.registry.paymentKey(act.network, act.to.address)
  return {
    act,
    owner: policy.owners.get(act.api_key) ?? null,
    asset,
    feeAsset: assetOf(policy.registry, asset.fee_asset, 'asset'),
    paymentKey,
    listKeys: {
      address: addressKey(act.network, act.to.address),
      paymentKey: addressKey(act.network, paymentKey),
    },
  }
}

/** Returns whether all conditions of a rule hold. */
const matches = ({ conditions }: CompiledRule, subject: Subject): boolean =>
  conditions.every((condition) => condition(subject) === null)

/** What the rules that are no `allow` make of an act. */
interface Restrictions {
  readonly isDenied: boolean
  readonly needs: readonly Need[]
  readonly tried: readonly Tried[]
  readonly windows: readonly WindowState[]
}

const quorums = (needs: readonly Need[]): string =>
  needs.map(({ group, k }) => `${k} of ${group}`).join(' and ')

function restrict(policy: Policy, subject: Subject, context: EvaluationContext): Restrictions {
  const { deny, limit } = policy.rules
  const denies = deny.filter((rule) => matches(rule, subject))
  const requires = policy.rules['require'].filter((rule) => matches(rule, subject))
  const limits = limit
    .filter((rule) => matches(rule, subject))
    .map((rule) => ({ rule, ...measure(policy, rule, subject, context) }))
  const above = limits.filter(({ full }) => full.length > 0)
  const triedOf = ({ id, effect }: CompiledRule, why: string): Tried => ({
    rule: id,
    effect,
    fits: true,
    why,
  })
  return {
    isDenied: denies.length > 0 || above.some(({ rule }) => rule.deniesAbove),
    needs: combineNeeds(
      ...requires.map(({ needs }) => needs),
      ...above.map(({ rule }) => rule.needs),
    ),
    tried: [
      ...denies.map((rule) => triedOf(rule, 'denies the act')),
      ...above.map(({ rule, full }) =>
        triedOf(
          rule,
          `${full.join('; ')}; ${rule.deniesAbove ? 'denies the act' : `adds ${quorums(rule.needs)}`}`,
        ),
      ),
      ...requires.map((rule) => triedOf(rule, `adds ${quorums(rule.needs)}`)),
    ],
    windows: limits.flatMap(({ states }) => states),
  }
}

/** An `allow`, evaluated for an act. */
interface Way {
  readonly rule: string
  /** Reasons why it does not fit; empty if it fits. */
  readonly failures: readonly (() => string)[]
  readonly needs: readonly Need[]
  readonly windows: readonly WindowState[]
}

/** Evaluates the `allow` rules. Their quorums are combined with those of other rules. */
function waysOf(
  policy: Policy,
  subject: Subject,
  context: EvaluationContext,
  added: readonly Need[],
): Way[] {
  const reached = new Map<string, string | null>()
  const unreachable = (needs: readonly Need[]): string | null => {
    const key = JSON.stringify(needs)
    const known = reached.get(key)
    if (known !== undefined) return known
    const why = whyUnreachable(policy, needs, subject.owner)
    reached.set(key, why)
    return why
  }
  return policy.rules.allow.map((rule): Way => {
    const failures: (() => string)[] = []
    for (const condition of rule.conditions) {
      const why = condition(subject)
      if (why !== null) failures.push(why)
    }
    if (failures.length > 0) return { rule: rule.id, failures, needs: [], windows: [] }
    const { states, full } = measure(policy, rule, subject, context)
    const needs = combineNeeds(rule.needs, added)
    const why = unreachable(needs)
    return {
      rule: rule.id,
      failures: (why === null ? full : [...full, why]).map((text) => () => text),
      needs,
      windows: states,
    }
  })
}

/** Of the rules that fit, the one with the fewest missing approvals, then the fewest, then by ID. */
function bestOf(
  policy: Policy,
  ways: readonly Way[],
  subject: Subject,
  { approvals, now_s, suspended }: EvaluationContext,
): { way: Way; needs: Quorate[]; isMet: boolean; people: string[] } | null {
  const { owner, act } = subject
  const counted = ways.map((way) => {
    const { needs, isMet, people } = countApprovals(policy, way.needs, approvals, {
      now_s,
      suspended,
      owner,
      issued_at: act.issued_at,
      isStanding: act.standing !== null,
    })
    const missing = needs.reduce((sum, { k, have }) => sum + k - have, 0)
    return { way, needs, isMet, people, missing, total: needs.reduce((sum, { k }) => sum + k, 0) }
  })
  counted.sort(
    (a, b) => a.missing - b.missing || a.total - b.total || (a.way.rule < b.way.rule ? -1 : 1),
  )
  return counted[0] ?? null
}

/** Returns the `allow` with the fewest conditions that do not hold; the first by ID among equals. */
function nearestOf(ways: readonly Way[]): Evaluation['nearest'] {
  let nearest: Way | undefined
  for (const way of ways)
    if (way.failures.length > 0 && way.failures.length < (nearest?.failures.length ?? Infinity))
      nearest = way
  return nearest
    ? { rule: nearest.rule, why: nearest.failures.map((why) => why()).join('; ') }
    : null
}

/**
 * Judges an act. The order of the rules has no influence:
 *
 * 1. A matching `deny` denies the act.
 * 2. A matching `limit` whose window would be exceeded denies it, or adds approvals.
 * 3. Every matching `require` adds approvals.
 * 4. An `allow` fits if its conditions hold, its windows have room, and all approvals can be reached.
 *    One that fits is enough. Without one, the act is denied.
 *
 * @throws PolicyError `ACT` or `UNKNOWN_ASSET` if the act contradicts itself
 */
export function evaluate(policy: Policy, act: Act, context: EvaluationContext): Evaluation {
  const subject = subjectOf(policy, act)
  const restrictions = restrict(policy, subject, context)
  const ways = waysOf(policy, subject, context, restrictions.needs)
  const fitting = ways.filter(({ failures }) => failures.length === 0)
  const usable =
    context.via === undefined ? fitting : fitting.filter(({ rule }) => rule === context.via)
  const best = restrictions.isDenied ? null : bestOf(policy, usable, subject, context)
  const tried: Tried[] = [
    ...restrictions.tried,
    ...ways.map(({ rule, failures }): Tried => ({
      rule,
      effect: 'allow',
      fits: failures.length === 0,
      why: failures[0]?.() ?? null,
    })),
  ]
  const windows = [...restrictions.windows, ...ways.flatMap((way) => way.windows)]
  if (best === null)
    return {
      effect: 'deny',
      via: null,
      needs: [],
      approvedBy: [],
      tried,
      nearest: restrictions.isDenied ? null : nearestOf(ways),
      windows,
    }
  return {
    effect: best.isMet ? 'allow' : 'approve',
    via: best.way.rule,
    needs: best.needs,
    approvedBy: best.people,
    tried,
    nearest: null,
    windows,
  }
}

/**
 * Returns the charges of an act that passes by a rule: the windows of that rule, and those of every
 * `limit` that the act matches. A node writes them down before it signs, and never takes them back,
 * whatever becomes of the transaction.
 * @param via ID of an `allow` rule
 * @throws PolicyError `ACT` if there is no such rule
 */
export function chargesOf(policy: Policy, act: Act, via: string): Charge[] {
  const subject = subjectOf(policy, act)
  const way = policy.rules.allow.find(({ id }) => id === via)
  if (way === undefined) throw new PolicyError('ACT', 'via', `${via} is not an allow rule`)
  const limits = policy.rules.limit.filter((rule) => matches(rule, subject))
  return [way, ...limits]
    .flatMap(({ windows }) => windows)
    .flatMap((window) => metersOf(window, subject))
    .map(({ key, hours, amounts }) => ({ key, hours, amounts }))
}
