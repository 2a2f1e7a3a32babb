import type { PolicyDocument } from '../document/shape.ts'
import { assignPeople } from '../evaluation/approvals.ts'
import { warning, type Finding } from './finding.ts'

/** What the document states and this version does not apply, or does not support completely. */
export const findUnapplied = (document: PolicyDocument): Finding[] => [
  ...(document.orders === undefined
    ? []
    : [
        warning(
          'orders',
          'NOT_APPLIED',
          'The signer nodes do not ask for these approvals yet: operators order drains and gas tank stakes without them.',
        ),
      ]),
  ...findPasskeysOnly(document),
]

/** Approvals of enrolments that too few people can give: the approver page does not sign them yet. */
function findPasskeysOnly({ enrolment, groups, people }: PolicyDocument): Finding[] {
  if (enrolment === undefined) return []
  const { approvals } = enrolment
  const withFile = new Set(
    people.filter(({ keys }) => keys.some(({ kind }) => kind === 'key')).map(({ id }) => id),
  )
  const assigned = assignPeople(
    approvals,
    approvals.map(({ group }) => (groups[group] ?? []).filter((each) => withFile.has(each))),
  )
  return approvals.every(({ k }, at) => assigned[at]?.length === k)
    ? []
    : [
        warning(
          'enrolment.approvals',
          'PASSKEYS_ONLY',
          'Too few people in the groups have a key file. The approver page does not sign approvals of enrolments yet, so passkeys cannot give them.',
        ),
      ]
}
