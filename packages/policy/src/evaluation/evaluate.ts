import type { Act } from '../act.ts'
import type { Rule } from '../document/rules.ts'
import { combineNeeds, countApprovals, type Approval, type Quorate } from './approvals.ts'
import type { CompiledRule, Need, Policy } from './compile.ts'
import type { Subject } from './conditions.ts'
import {
  describeWindows,
  measure,
  type Measured,
  type WindowContext,
  type WindowState,
} from './measure.ts'
import { prepareAct, type PreparedAct } from './prepare.ts'

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
  /** Of a denial: an `allow` would fit if the amount were not below its minimum. */
  readonly fitsAbove: boolean
  readonly windows: readonly WindowState[]
}

/** What the rules that are no `allow` make of an act. */
interface Restrictions {
  readonly isDenied: boolean
  readonly needs: readonly Need[]
  readonly tried: readonly Tried[]
  readonly measured: readonly Measured[]
}

const quorums = (needs: readonly Need[]): string =>
  needs.map(({ group, k }) => `${k} of ${group}`).join(' and ')

function restrict(prepared: PreparedAct, context: EvaluationContext): Restrictions {
  const { policy, subject } = prepared
  const { deny: denies, limit } = prepared.rules
  const requires = prepared.rules['require']
  const limits = limit.map((each) => ({
    rule: each.rule,
    measured: measure(policy, each, subject, context),
  }))
  const above = limits.filter(({ measured }) => measured.full.length > 0)
  const triedOf = ({ id, effect }: CompiledRule, why: string): Tried => ({
    rule: id,
    effect,
    fits: true,
    why,
  })
  return {
    isDenied: denies.length > 0 || above.some(({ rule }) => rule.deniesAbove),
    needs: combineNeeds(
      ...requires.map(({ rule }) => rule.needs),
      ...above.map(({ rule }) => rule.needs),
    ),
    tried: [
      ...denies.map(({ rule }) => triedOf(rule, 'denies the act')),
      ...above.map(({ rule, measured: { full } }) =>
        triedOf(
          rule,
          `${full.join('; ')}; ${rule.deniesAbove ? 'denies the act' : `adds ${quorums(rule.needs)}`}`,
        ),
      ),
      ...requires.map(({ rule }) => triedOf(rule, `adds ${quorums(rule.needs)}`)),
    ],
    measured: limits.map(({ measured }) => measured),
  }
}

/** An `allow` whose conditions hold, evaluated for an act. */
interface Way {
  readonly rule: CompiledRule
  /** Reasons why it does not fit; empty if it fits. */
  readonly failures: readonly string[]
  readonly needs: readonly Need[]
  readonly measured: Measured
}

/**
 * Evaluates the `allow` rules whose conditions hold. Their quorums are combined with those of other
 * rules.
 */
const waysOf = (
  { policy, subject, rules, whyUnreachable }: PreparedAct,
  context: EvaluationContext,
  added: readonly Need[],
): Way[] =>
  rules.allow.map((each): Way => {
    const { rule } = each
    const measured = measure(policy, each, subject, context)
    const needs = combineNeeds(rule.needs, added)
    const why = whyUnreachable(needs)
    return {
      rule,
      failures: why === null ? measured.full : [...measured.full, why],
      needs,
      measured,
    }
  })

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
    (a, b) =>
      a.missing - b.missing || a.total - b.total || (a.way.rule.id < b.way.rule.id ? -1 : 1),
  )
  return counted[0] ?? null
}

/** Yields every `allow` with the texts why it does not fit. */
function* explained(
  { policy, subject }: PreparedAct,
  ways: readonly Way[],
): Generator<{ rule: string; whys: readonly (() => string)[] }> {
  const evaluated = new Map(ways.map((way) => [way.rule, way]))
  for (const rule of policy.rules.allow) {
    const way = evaluated.get(rule)
    const whys = way
      ? way.failures.map((text) => () => text)
      : rule.conditions.flatMap((condition) => condition(subject) ?? [])
    yield { rule: rule.id, whys }
  }
}

/** Returns the `allow` with the fewest conditions that do not hold; the first by ID among equals. */
function nearestOf(prepared: PreparedAct, ways: readonly Way[]): Evaluation['nearest'] {
  let nearest: { rule: string; whys: readonly (() => string)[] } | undefined
  for (const each of explained(prepared, ways))
    if (each.whys.length > 0 && each.whys.length < (nearest?.whys.length ?? Infinity))
      nearest = each
  return nearest ? { rule: nearest.rule, why: nearest.whys.map((why) => why()).join('; ') } : null
}

/** Returns whether the minimum amount of an `allow` is its only condition that does not hold. */
const isBelowMinimumOnly = ({ policy, subject }: PreparedAct): boolean =>
  policy.rules.allow.some(
    ({ min, conditions }) =>
      subject.act.amount < (min?.get(subject.act.asset) ?? 0n) &&
      conditions.filter((condition) => condition(subject) !== null).length === 1,
  )

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
export const evaluate = (policy: Policy, act: Act, context: EvaluationContext): Evaluation =>
  evaluatePrepared(prepareAct(policy, act), context)

/**
 * Like {@link evaluate}, for an act that is judged several times. The texts of `tried` and `windows`
 * are written when they are read.
 */
export function evaluatePrepared(prepared: PreparedAct, context: EvaluationContext): Evaluation {
  const { policy, subject } = prepared
  const { now_s, via } = context
  const restrictions = restrict(prepared, context)
  const ways = waysOf(prepared, context, restrictions.needs)
  const fitting = ways.filter(({ failures }) => failures.length === 0)
  const usable = via === undefined ? fitting : fitting.filter(({ rule }) => rule.id === via)
  const best = restrictions.isDenied ? null : bestOf(policy, usable, subject, context)
  const nearest = best === null && !restrictions.isDenied ? nearestOf(prepared, ways) : null
  return {
    effect: best === null ? 'deny' : best.isMet ? 'allow' : 'approve',
    via: best?.way.rule.id ?? null,
    needs: best?.needs ?? [],
    approvedBy: best?.people ?? [],
    get tried() {
      const allows = [...explained(prepared, ways)].map(({ rule, whys }): Tried => ({
        rule,
        effect: 'allow',
        fits: whys.length === 0,
        why: whys[0]?.() ?? null,
      }))
      return [...restrictions.tried, ...allows]
    },
    nearest,
    get fitsAbove() {
      return best === null && !restrictions.isDenied && isBelowMinimumOnly(prepared)
    },
    get windows() {
      const measured = [...restrictions.measured, ...ways.map((way) => way.measured)]
      return measured.flatMap((each) => describeWindows(policy, each, now_s))
    },
  }
}
