import type { Rule } from '../document/rules.ts'
import type { PolicyDocument } from '../document/shape.ts'
import { documentHash } from '../document/read.ts'
import { PolicyError } from '../error.ts'
import type { Policy } from '../evaluation/compile.ts'
import { evaluate } from '../evaluation/evaluate.ts'
import { ownerOf } from '../evaluation/prepare.ts'
import { error, warning, type Finding, type LintContext } from './finding.ts'

const windowsOf = (rule: Rule) => ('windows' in rule ? (rule.windows ?? []) : [])

/** Whether the document may follow the one in force, and which windows begin again. */
export function findChainFaults(document: PolicyDocument, { previous }: LintContext): Finding[] {
  if (previous === undefined) return []
  const found: Finding[] = []
  for (const field of ['mode', 'workspace', 'nodes'] as const)
    if (document[field] !== previous[field])
      found.push(
        error(field, 'NOT_SUCCESSOR', `The field must be ${previous[field]}, as in force.`),
      )
  if (document.number !== previous.number + 1)
    found.push(error('number', 'NOT_SUCCESSOR', `The number must be ${previous.number + 1}.`))
  if (document.previous !== documentHash(previous))
    found.push(
      error('previous', 'NOT_SUCCESSOR', 'The field must be the hash of the document in force.'),
    )
  const rules = new Map(document.rules.map((rule) => [rule.id, rule]))
  for (const rule of previous.rules)
    for (const { name, per } of windowsOf(rule)) {
      const next = rules.get(rule.id)
      if (next && windowsOf(next).some((each) => each.name === name && each.per === per)) continue
      found.push(
        warning(
          'rules',
          'WINDOW_GONE',
          `The window ${name} of the rule ${rule.id} ends. What it has counted is not transferred to another window.`,
        ),
      )
    }
  return found
}

const describePerson = (person: string | undefined): string =>
  person === undefined ? 'none' : `${person}, who is not in the document`

/** What would no longer pass: API keys without an owner, and standing rules. */
export function findOperationalFaults(
  policy: Policy,
  { enrolled, persons = new Map(), forwards = [] }: LintContext,
): Finding[] {
  const found: Finding[] = (enrolled ?? [])
    .filter((key) => ownerOf(policy, { api_key: key, person: persons.get(key) }) === null)
    .map((key) =>
      warning(
        'people',
        'KEY_WITHOUT_OWNER',
        `No person lists the API key ${key}, and its enrolment names ${describePerson(persons.get(key))}. Every deny, require and limit that lists people applies to it, no allow that lists people does, and it fits no rule with approvals unless the rule counts initiators.`,
      ),
    )
  for (const act of forwards) {
    const label = `The standing rule ${act.id}`
    try {
      const owned = { ...act, person: act.person ?? persons.get(act.api_key) }
      const { effect, nearest } = evaluate(policy, owned, {
        now_s: act.issued_at,
        usesOf: () => [],
        approvals: [],
        suspended: new Set(),
      })
      if (effect === 'allow') continue
      const why = effect === 'approve' ? 'it needs approvals' : (nearest?.why ?? 'a rule denies it')
      found.push(warning('rules', 'FORWARD_STOPS', `${label} would stop: ${why}.`))
    } catch (fault) {
      if (!(fault instanceof PolicyError)) throw fault
      found.push(warning('rules', 'FORWARD_STOPS', `${label} would stop: ${fault.message}.`))
    }
  }
  return found
}

/** Checks that are left out, because the caller does not know what they need. */
export function findUnchecked(
  { people }: PolicyDocument,
  { enrolled, panelOrigins }: LintContext,
): Finding[] {
  const hasPasskey = people.some(({ keys }) => keys.some(({ kind }) => kind === 'passkey'))
  return [
    ...(panelOrigins === null && hasPasskey
      ? [
          warning(
            'people',
            'NOT_CHECKED',
            'It is not known here under which origins people open the control panel, so it was not checked that no passkey is bound to one of them.',
          ),
        ]
      : []),
    ...(enrolled === null
      ? [
          warning(
            'people',
            'NOT_CHECKED',
            'It is not known here which API keys are enrolled, so it was not checked that each of them has an owner.',
          ),
        ]
      : []),
  ]
}
