import type { Approvals } from '../document/people.ts'
import { PolicyError } from '../error.ts'
import { assignPeople, keyName, type Quorate } from '../evaluation/approvals.ts'
import type { Policy } from '../evaluation/compile.ts'

/** A person and one of their keys. */
export interface KeyRef {
  readonly person: string
  readonly key: string
}

/**
 * Counts the people who have signed a change, a resume, an enrolment or an order. Each person counts
 * once, and for one group only.
 * @param signers keys of verified statements
 * @param suspended keys that count for nothing, as `keyName` names them
 */
export function countQuorum(
  policy: Policy,
  approvals: Approvals,
  signers: readonly KeyRef[],
  suspended: ReadonlySet<string>,
): { needs: Quorate[]; isMet: boolean } {
  const valid = signers.filter(
    ({ person, key }) =>
      policy.people.get(person)?.has(key) === true && !suspended.has(keyName(person, key)),
  )
  const people = [...new Set(valid.map(({ person }) => person))]
  const needs = [...approvals].sort((a, b) => (a.group < b.group ? -1 : 1))
  const assigned = assignPeople(
    needs,
    needs.map(({ group }) => people.filter((each) => policy.groups.get(group)?.includes(each))),
  )
  const counted = needs.map(({ group, k }, at) => ({ group, k, have: assigned[at]!.length }))
  return { needs: counted, isMet: counted.every(({ k, have }) => have >= k) }
}

/** Returns whether quorums can be reached by the people who have a key that is not suspended. */
export function canReach(
  policy: Policy,
  approvals: Approvals,
  suspended: ReadonlySet<string>,
): boolean {
  const keys = [...policy.people].flatMap(([person, keys]) =>
    [...keys.keys()].map((key) => ({ person, key })),
  )
  return countQuorum(policy, approvals, keys, suspended).isMet
}

/**
 * Checks a suspension whose statement has been verified. Each person may have one open, and those
 * who remain must be able to change the document and to end a stop.
 * @param open suspensions that are in force
 * @param blocked keys that count for nothing, as `keyName` names them: suspended and revoked ones
 * @throws PolicyError `NOT_ALLOWED`
 */
export function assertSuspension(
  policy: Policy,
  { by, target }: { by: string; target: KeyRef },
  open: readonly { readonly by: string }[],
  blocked: ReadonlySet<string>,
): void {
  if (open.some((each) => each.by === by))
    throw new PolicyError('NOT_ALLOWED', 'by', `${by} already has a suspension in force`)
  const suspended = new Set([...blocked, keyName(target.person, target.key)])
  const { change, resume } = policy.document
  for (const [field, { approvals }] of Object.entries({ change, resume }))
    if (!canReach(policy, approvals, suspended))
      throw new PolicyError(
        'NOT_ALLOWED',
        'target',
        `the suspension would leave too few people for the approvals of ${field}`,
      )
}
