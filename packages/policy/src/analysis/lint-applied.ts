import type { Rule } from '../document/rules.ts'
import type { PolicyDocument } from '../document/shape.ts'
import { mayMeet } from './containment.ts'
import { warning, type Finding } from './finding.ts'

/** Approvals that the signer nodes do not ask for in this version, by field of the document. */
const NOT_ASKED = {
  enrolment:
    'The signer nodes do not ask for these approvals yet: operators enrol API keys without them.',
  orders:
    'The signer nodes do not ask for these approvals yet: operators order drains and gas tank stakes without them.',
} as const

/** Whether a rule names forwards, so that its author expects an effect on them. */
const namesForwards = ({ match }: Rule): boolean => match.action?.includes('forward') === true

const addsApprovals = (rule: Rule): boolean =>
  rule.effect === 'require' || (rule.effect === 'limit' && rule.above !== 'deny')

/** What the document states and the signer nodes do not apply, or apply by refusing. */
export function findUnapplied(document: PolicyDocument): Finding[] {
  const { rules } = document
  const found: Finding[] = (['enrolment', 'orders'] as const)
    .filter((field) => document[field] !== undefined)
    .map((field) => warning(field, 'NOT_APPLIED', NOT_ASKED[field]))
  const forwarding = rules.filter((rule) => rule.effect === 'allow' && namesForwards(rule))
  for (const [at, rule] of rules.entries()) {
    const isOwn = rule.effect === 'allow' && rule.approvals !== undefined && namesForwards(rule)
    const isAdded =
      addsApprovals(rule) && forwarding.some((other) => mayMeet(other.match, rule.match))
    if (isOwn || isAdded)
      found.push(
        warning(
          `rules[${at}]`,
          'FORWARD_APPROVALS',
          `Approvals of forwards are not collected yet: forwards that need those of the rule ${rule.id} are refused.`,
        ),
      )
  }
  return found
}
