import type { AllowRule, Rule } from '../document/rules.ts'
import { combineNeeds, whyUnreachable } from '../evaluation/approvals.ts'
import { needsOf, type Need, type Policy } from '../evaluation/compile.ts'
import { allowIncludes, matchIncludes, mayMeet } from './containment.ts'
import { warning, type Finding } from './finding.ts'

interface Numbered<T extends Rule = Rule> {
  readonly rule: T
  readonly path: string
}

const isAllow = (each: Numbered): each is Numbered<AllowRule> => each.rule.effect === 'allow'

/** Approvals that a rule which is no `allow` may add. */
function addedNeeds(rule: Rule): Need[] {
  if (rule.effect === 'require') return needsOf(rule)
  return rule.effect === 'limit' && rule.above !== 'deny' ? needsOf(rule.above) : []
}

/** An `allow` that another one makes superfluous, or whose windows add up with those of another. */
function findOverlaps(
  allows: readonly Numbered<AllowRule>[],
  limits: readonly Numbered[],
): Finding[] {
  /** A limit that matches every act of both rules caps them together. */
  const areCapped = (a: Rule, b: Rule): boolean =>
    limits.some(({ rule: { match } }) => [a, b].every((each) => matchIncludes(match, each.match)))
  return allows.flatMap(({ rule, path }, at) => {
    const container = allows.find(
      (other, number) =>
        number !== at &&
        allowIncludes(other.rule, rule, 'two rules') &&
        // Of two rules that include each other, only the later one is reported.
        (number < at || !allowIncludes(rule, other.rule, 'two rules')),
    )
    if (container !== undefined)
      return [
        warning(
          path,
          'CONTAINED',
          `The rule ${container.rule.id} allows everything that the rule ${rule.id} allows.`,
        ),
      ]
    const adding =
      rule.windows &&
      allows.find(
        (other, number) =>
          number < at &&
          other.rule.windows !== undefined &&
          mayMeet(other.rule.match, rule.match, 'allow') &&
          !areCapped(other.rule, rule),
      )
    return adding
      ? [
          warning(
            `${path}.windows`,
            'WINDOWS_ADD_UP',
            `Acts that fit both ${adding.rule.id} and ${rule.id} may use the windows of both. A limit rule caps them together.`,
          ),
        ]
      : []
  })
}

/** Entries by which a rule restricts one tag of an account, which any other tag avoids. */
function findSingleTags({ rule, path }: Numbered): Finding[] {
  const { to } = rule.match
  if (rule.effect === 'allow' || to === undefined || to === 'any') return []
  return (to.addresses ?? []).flatMap(({ tag }, at) =>
    tag === undefined
      ? []
      : [
          warning(
            `${path}.match.to.addresses[${at}].tag`,
            'ONE_TAG',
            `The rule ${rule.id} restricts payments with this tag only, and the account can be paid with every other tag. Leave out tag to restrict all of them.`,
          ),
        ],
  )
}

/** Quorums of an `allow`: the number of people of each group. */
const quorumOf = ({ approvals = [] }: AllowRule): number =>
  approvals.reduce((sum, { k }) => sum + k, 0)

/**
 * Rules that allow refunds with fewer approvals than transfers of the same assets. Which payment is a
 * refund is the word of the caller.
 */
function findEasyRefunds(allows: readonly Numbered<AllowRule>[]): Finding[] {
  const refunds = allows.filter(({ rule }) => rule.match.action.includes('refund'))
  const transfers = allows.filter(({ rule }) => rule.match.action.includes('transfer'))
  return refunds.flatMap(({ rule, path }) => {
    // As transfers, the same payments would need what the easiest of these rules needs.
    const others = transfers.filter(
      (other) =>
        mayMeet({ ...rule.match, action: ['transfer'] }, other.rule.match, 'allow') &&
        quorumOf(other.rule) > quorumOf(rule),
    )
    const asEasy = transfers.some((other) =>
      allowIncludes(
        other.rule,
        { ...rule, match: { ...rule.match, action: ['transfer'] } },
        'same rule',
      ),
    )
    return others.length === 0 || asEasy
      ? []
      : [
          warning(
            path,
            'EASY_REFUND',
            `The rule ${rule.id} allows refunds with fewer approvals than ${others.map((other) => other.rule.id).join(', ')} allows transfers. The caller decides which payment is a refund, and the nodes do not know invoices, so limit refunds as transfers.`,
          ),
        ]
  })
}

/** Rules that never have an effect, or more effect than their author may expect. */
export function findRuleFaults(policy: Policy): Finding[] {
  const all = policy.document.rules.map((rule, at): Numbered => ({ rule, path: `rules[${at}]` }))
  const allows = all.filter(isAllow)
  const adding = all.filter(({ rule }) => addedNeeds(rule).length > 0)
  const found: Finding[] = findOverlaps(
    allows,
    all.filter(({ rule }) => rule.effect === 'limit'),
  )
  if (allows.length === 0)
    found.push(
      warning('rules', 'NOTHING_ALLOWED', 'No rule allows anything, so every act is denied.'),
    )
  for (const { rule, path } of all)
    if (rule.effect === 'deny' && rule.amount === undefined && Object.keys(rule.match).length === 0)
      found.push(warning(path, 'EVERYTHING_DENIED', `The rule ${rule.id} denies every act.`))
  found.push(...all.flatMap(findSingleTags), ...findEasyRefunds(allows))
  for (const { rule, path } of allows) {
    const meeting = adding.filter((other) => mayMeet(rule.match, other.rule.match, 'restriction'))
    const needs = combineNeeds(needsOf(rule), ...meeting.map((other) => addedNeeds(other.rule)))
    // The requester's own part is left out: it depends on the API key.
    const others = needs.map((need) => ({ ...need, initiator: true }))
    if (meeting.length > 0 && whyUnreachable(policy, others, null) !== null)
      found.push(
        warning(
          path,
          'COMBINED_UNREACHABLE',
          `An act that also matches ${meeting.map((other) => other.rule.id).join(', ')} is denied, because all approvals together cannot be reached.`,
        ),
      )
  }
  return found
}
