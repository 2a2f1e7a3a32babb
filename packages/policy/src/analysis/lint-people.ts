import type { Approvals } from '../document/people.ts'
import type { PolicyDocument } from '../document/shape.ts'
import { PolicyError } from '../error.ts'
import { namedGroups, unknownPeople, type Policy } from '../evaluation/compile.ts'
import { assignPeople } from '../evaluation/approvals.ts'
import { parseSpki } from '../keys.ts'
import { LIMITS } from '../limits.ts'
import { error, warning, type Finding, type LintContext } from './finding.ts'

/** Names that are not defined, and keys that cannot be used. */
export function findPeopleFaults(
  document: PolicyDocument,
  { panelOrigins }: LintContext,
): Finding[] {
  const found: Finding[] = []
  for (const { group, path } of namedGroups(document))
    if (!Object.hasOwn(document.groups, group))
      found.push(error(path, 'UNKNOWN_GROUP', `The document has no group ${group}.`))
  for (const { id, path } of unknownPeople(document))
    found.push(error(path, 'UNKNOWN_PERSON', `The document has no person ${id}.`))
  for (const [at, { keys }] of document.people.entries())
    for (const [number, key] of keys.entries()) {
      const path = `people[${at}].keys[${number}]`
      try {
        parseSpki(key.alg, key.spki, `${path}.spki`)
      } catch (fault) {
        if (!(fault instanceof PolicyError)) throw fault
        found.push(error(`${path}.spki`, 'KEY', `The public key is refused: ${fault.message}.`))
      }
      if (key.kind === 'passkey' && key.origins.some((origin) => panelOrigins?.includes(origin)))
        found.push(
          error(
            `${path}.origins`,
            'PANEL_ORIGIN',
            'A passkey of the control panel cannot approve: every sign-in could be an approval.',
          ),
        )
    }
  return found
}

interface NamedQuorum {
  readonly path: string
  readonly approvals: Approvals
}

/** Every list of approvals of a document, and the groups of which one person is enough. */
function quorumsOf({
  change,
  resume,
  enrolment,
  orders,
  stop,
  rules,
}: PolicyDocument): NamedQuorum[] {
  const one = (group: string): Approvals => [{ group, k: 1 }]
  return [
    { path: 'change.approvals', approvals: change.approvals },
    { path: 'change.veto', approvals: one(change.veto) },
    { path: 'stop.group', approvals: one(stop.group) },
    { path: 'resume.approvals', approvals: resume.approvals },
    ...(enrolment ? [{ path: 'enrolment.approvals', approvals: enrolment.approvals }] : []),
    ...(orders ? [{ path: 'orders.approvals', approvals: orders.approvals }] : []),
    ...rules.flatMap((rule, at): NamedQuorum[] => {
      const path = `rules[${at}]`
      if (rule.effect === 'limit')
        return rule.above === 'deny'
          ? []
          : [{ path: `${path}.above.approvals`, approvals: rule.above.approvals }]
      return rule.effect === 'deny' || rule.approvals === undefined
        ? []
        : [{ path: `${path}.approvals`, approvals: rule.approvals }]
    }),
  ]
}

/** Assigns the people who have a key to quorums; null if the quorums cannot be reached. */
function assignAll(policy: Policy, approvals: Approvals, without?: string): string[] | null {
  const assigned = assignPeople(
    approvals,
    approvals.map(({ group }) =>
      (policy.groups.get(group) ?? []).filter(
        (person) => person !== without && policy.people.get(person)?.size,
      ),
    ),
  )
  return approvals.every(({ k }, at) => assigned[at]?.length === k) ? assigned.flat() : null
}

/** Quorums that cannot be reached, or that one lost key makes unreachable; and the delay. */
export function findQuorumFaults(policy: Policy): Finding[] {
  const { mode, change } = policy.document
  const isLocal = mode === 'local'
  const found: Finding[] = []
  for (const { path, approvals } of quorumsOf(policy.document)) {
    const assigned = assignAll(policy, approvals)
    if (assigned === null)
      found.push(
        error(
          path,
          'UNREACHABLE',
          'Too few different people with a key are in the groups to reach these approvals.',
        ),
      )
    // Only people of this assignment can be indispensable: all others are not needed for it.
    else if (assigned.some((person) => assignAll(policy, approvals, person) === null))
      found.push(
        path === 'change.approvals' && !isLocal
          ? error(
              path,
              'CHANGE_NEEDS_ALL',
              'If one person loses their keys, the document can no longer be changed. Add a person, or lower k.',
            )
          : warning(
              path,
              'NEEDS_ALL',
              'These approvals are out of reach if one person is absent or loses their keys.',
            ),
      )
  }
  if (!isLocal && change.delay_s < LIMITS.delayMinS)
    found.push(
      error(
        'change.delay_s',
        'DELAY_TOO_SHORT',
        `Outside of mode local, a change must wait at least ${LIMITS.delayMinS} seconds, so that it can be vetoed.`,
      ),
    )
  return found
}
