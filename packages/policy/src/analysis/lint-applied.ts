import type { PolicyDocument } from '../document/shape.ts'
import { assignPeople } from '../evaluation/approvals.ts'
import { warning, type Finding } from './finding.ts'

const INPUTS = [
  ['enrolment', 'enrolments'],
  ['orders', 'orders'],
] as const

/**
 * Approvals of what operators enter that too few people can give: the approver page does not sign them
 * yet.
 */
export const findUnapplied = (document: PolicyDocument): Finding[] =>
  INPUTS.flatMap(([field, names]) =>
    isInReach(document, document[field])
      ? []
      : [
          warning(
            `${field}.approvals`,
            'PASSKEYS_ONLY',
            `Too few people in the groups have a key file. The approver page does not sign approvals of ${names} yet, so passkeys cannot give them.`,
          ),
        ],
  )

/** Returns whether people with key files can give all approvals. */
function isInReach(
  { groups, people }: PolicyDocument,
  input: PolicyDocument['enrolment'] | PolicyDocument['orders'],
): boolean {
  if (input === undefined) return true
  const { approvals } = input
  const withFile = new Set(
    people.filter(({ keys }) => keys.some(({ kind }) => kind === 'key')).map(({ id }) => id),
  )
  const assigned = assignPeople(
    approvals,
    approvals.map(({ group }) => (groups[group] ?? []).filter((each) => withFile.has(each))),
  )
  return approvals.every(({ k }, at) => assigned[at]?.length === k)
}
