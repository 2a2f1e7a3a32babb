import { LIMITS } from '../limits.ts'
import type { Need, Policy } from './compile.ts'

/** An approval whose statement and signature have been verified. */
export interface Approval {
  /** Person who approves. */
  readonly by: string
  /** ID of that person's key. */
  readonly key: string
  /** Unix seconds at which it was signed, and at which it ends. */
  readonly at: number
  readonly expires: number
  /**
   * Unix seconds at which a node has recorded it, together with the others of a standing rule; absent
   * if it is not recorded. Its times are then judged as of that time, so it counts for every forward
   * of the rule, as long as its key is in the document and not suspended. Above a limit it counts only
   * until it is as old as the limit's window.
   */
  readonly recorded_at?: number
}

/** What decides whether an approval counts for an act. */
export interface ApprovalContext {
  /** Unix seconds. */
  readonly now_s: number
  /** Unix seconds at which the act's request was issued. */
  readonly issued_at: number
  /** Owner of the requesting API key (`ownerOf`); null if it has none. */
  readonly owner: string | null
  /** Suspended keys, as {@link keyName} names them. They count for nothing. */
  readonly suspended: ReadonlySet<string>
  /**
   * The act is a forward of a standing rule: recorded approvals count, and the age of the request
   * does not limit when people approve it.
   */
  readonly isStanding: boolean
}

/** Name of a person's key, unique within a document. IDs contain no "/". */
export const keyName = (person: string, key: string): string => `${person}/${key}`

/** Returns the shorter of two durations, of which null is without end. */
const shorter = (a: number | null, b: number | null): number | null =>
  a === null ? b : b === null ? a : Math.min(a, b)

/**
 * Combines the quorums of several rules. A group that several rules name needs the largest `k` of
 * them, under the strictest conditions; different groups need different people.
 * @returns sorted by group
 */
export function combineNeeds(...lists: readonly (readonly Need[])[]): Need[] {
  const needs = new Map<string, Need>()
  for (const need of lists.flat()) {
    const known = needs.get(need.group)
    needs.set(need.group, {
      group: need.group,
      k: Math.max(known?.k ?? 0, need.k),
      initiator: (known?.initiator ?? true) && need.initiator,
      approval_s: Math.min(known?.approval_s ?? LIMITS.approvalS, need.approval_s),
      recorded_s: shorter(known?.recorded_s ?? null, need.recorded_s),
    })
  }
  return [...needs.values()].sort((a, b) => (a.group < b.group ? -1 : 1))
}

/**
 * Assigns people to quorums: each person to at most one, and as many in total as possible (maximum
 * bipartite matching with augmenting paths).
 * @param candidates people who may count for each need, in the order of `needs`
 * @returns for each need the people that are assigned to it; at most its `k`
 */
export function assignPeople(
  needs: readonly { readonly k: number }[],
  candidates: readonly (readonly string[])[],
): string[][] {
  const needOf = new Map<string, number>()
  const assigned = needs.map((): string[] => [])
  /** Finds one more person for a need, if necessary by moving another person to another need. */
  const extend = (at: number, visited: Set<string>): boolean => {
    for (const person of candidates[at] ?? []) {
      if (visited.has(person) || needOf.get(person) === at) continue
      visited.add(person)
      const other = needOf.get(person)
      if (other !== undefined && !extend(other, visited)) continue
      if (other !== undefined)
        assigned[other] = (assigned[other] ?? []).filter((each) => each !== person)
      needOf.set(person, at)
      assigned[at]?.push(person)
      return true
    }
    return false
  }
  for (const [at, { k }] of needs.entries())
    while ((assigned[at]?.length ?? 0) < k && extend(at, new Set()));
  return assigned
}

const isMet = (needs: readonly Need[], assigned: readonly (readonly string[])[]): boolean =>
  needs.every(({ k }, at) => (assigned[at]?.length ?? 0) >= k)

/** Members of a need's group that may count for it: not the requester, unless the rule says so. */
function members(policy: Policy, need: Need, owner: string | null): readonly string[] {
  const all = policy.groups.get(need.group) ?? []
  return need.initiator ? all : all.filter((person) => person !== owner)
}

/**
 * Returns why quorums can never be reached, even if every person approved; null if they can.
 * @param owner of the requesting API key
 */
export function whyUnreachable(
  policy: Policy,
  needs: readonly Need[],
  owner: string | null,
): string | null {
  if (needs.length === 0) return null
  if (owner === null && needs.some(({ initiator }) => !initiator))
    return 'approvals: the API key has no owner, so the approval of its owner cannot be excluded; enrol a key with --person, or list it in people[].api_keys of the policy document'
  const total = needs.reduce((sum, { k }) => sum + k, 0)
  if (total > LIMITS.approvals)
    return `approvals: ${total} are needed, and an order carries at most ${LIMITS.approvals}`
  const candidates = needs.map((need) =>
    members(policy, need, owner).filter((person) => policy.people.get(person)?.size),
  )
  if (isMet(needs, assignPeople(needs, candidates))) return null
  const quorums = needs.map(({ group, k }) => `${k} of ${group}`).join(' and ')
  return `approvals: ${quorums} cannot be reached by distinct people other than the requester`
}

/**
 * Returns the Unix second at which an approval stops counting for a need: the earliest of its
 * `expires`, its `at` plus the rule's `approval_s`, and six days after the request was issued.
 * @param issuedAt null: the act is a forward of a standing rule, which has no such limit
 */
export const approvalEnd = (approval: Approval, need: Need, issuedAt: number | null): number =>
  Math.min(
    approval.expires,
    approval.at + need.approval_s,
    issuedAt === null ? Infinity : issuedAt + LIMITS.approvalS,
  )

/** State of a quorum. */
export interface Quorate {
  readonly group: string
  readonly k: number
  /** Number of people whose approvals count for it. */
  readonly have: number
}

/**
 * Counts approvals. A person counts once, whatever the number of their keys and groups.
 * @param needs from {@link combineNeeds}
 * @returns the state of each quorum, and the people that count
 */
export function countApprovals(
  policy: Policy,
  needs: readonly Need[],
  approvals: readonly Approval[],
  context: ApprovalContext,
): { needs: Quorate[]; isMet: boolean; people: string[] } {
  const { now_s, issued_at, owner, suspended, isStanding } = context
  const isInTime = (approval: Approval, need: Need): boolean => {
    const recorded = isStanding ? approval.recorded_at : undefined
    const time = recorded ?? now_s
    return (
      (recorded === undefined || now_s < approval.at + (need.recorded_s ?? Infinity)) &&
      approval.at <= time + LIMITS.clockSkewS &&
      time < approvalEnd(approval, need, isStanding ? null : issued_at)
    )
  }
  const counts = (approval: Approval, need: Need): boolean =>
    policy.people.get(approval.by)?.has(approval.key) === true &&
    !suspended.has(keyName(approval.by, approval.key)) &&
    isInTime(approval, need)
  const candidates = needs.map((need) =>
    // Without an owner, the requester may be any of the approvers.
    owner === null && !need.initiator
      ? []
      : members(policy, need, owner).filter((person) =>
          approvals.some((approval) => approval.by === person && counts(approval, need)),
        ),
  )
  const assigned = assignPeople(needs, candidates)
  return {
    needs: needs.map(({ group, k }, at) => ({ group, k, have: assigned[at]?.length ?? 0 })),
    isMet: isMet(needs, assigned),
    people: assigned.flat().sort(),
  }
}

/**
 * Returns whether a person may reject an act: a member of a group whose quorum is still missing. An
 * act that needs no approvals cannot be rejected.
 * @param needs state of the act's quorums, from the evaluation
 */
export function mayReject(policy: Policy, needs: readonly Quorate[], person: string): boolean {
  return needs.some(
    ({ group, k, have }) => have < k && policy.groups.get(group)?.includes(person) === true,
  )
}
