// Quorums: distinct people, each counted for one group, and the end of an approval.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as fc from '../../../../testing/property.ts'
import { approvalsOf, NOW, policyWith } from '../../testing/documents.ts'
import { canAssign } from '../../testing/naive.ts'
import { approvalEnd, assignPeople, combineNeeds, countApprovals, mayReject } from './approvals.ts'
import type { Need } from './compile.ts'

const need = (group: string, k: number, fields: Partial<Need> = {}): Need => ({
  group,
  k,
  initiator: false,
  approval_s: 86_400,
  recorded_s: null,
  ...fields,
})
const context = {
  now_s: NOW,
  issued_at: NOW - 10,
  owner: 'frank' as string | null,
  suspended: new Set<string>(),
  isStanding: false,
}
const policy = policyWith([], {
  groups: {
    admins: ['alice', 'bob'],
    treasury: ['bob', 'dan', 'frank'],
    owners: ['alice'],
  },
})
const have = (needs: Need[], names: string[], fields: Partial<typeof context> = {}) =>
  countApprovals(policy, needs, approvalsOf(...names), { ...context, ...fields })

test('a person counts for one group only, and is moved to the group where they are needed', () => {
  const needs = [need('admins', 1), need('treasury', 1)]
  assert.equal(have(needs, ['bob']).isMet, false)
  assert.equal(have(needs, ['bob', 'bob']).isMet, false)
  assert.equal(have(needs, ['bob', 'alice']).isMet, true)
  assert.equal(have(needs, ['alice', 'bob']).isMet, true)
  // Only Alice is an owner, so Bob must count for the admins.
  const three = [need('admins', 1), need('owners', 1), need('treasury', 1)]
  assert.equal(have(three, ['alice', 'bob']).isMet, false)
  assert.deepEqual(have(three, ['alice', 'bob', 'dan']).people, ['alice', 'bob', 'dan'])
})

test('the owner of the requesting API key counts only for rules that count initiators', () => {
  const names = ['dan', 'frank']
  assert.equal(have([need('treasury', 2)], names).isMet, false)
  assert.equal(have([need('treasury', 2)], names, { owner: 'alice' }).isMet, true)
  assert.equal(have([need('treasury', 2, { initiator: true })], names).isMet, true)
  assert.equal(have([need('treasury', 1)], names, { owner: null }).isMet, false)
  assert.equal(have([need('treasury', 1, { initiator: true })], names, { owner: null }).isMet, true)
})

test('suspended keys, unknown keys and people outside the group do not count', () => {
  const needs = [need('admins', 1)]
  assert.equal(have(needs, ['alice']).isMet, true)
  assert.equal(have(needs, ['alice'], { suspended: new Set(['alice/k1']) }).isMet, false)
  assert.equal(have(needs, ['dan', 'stranger']).isMet, false)
  const other = [{ by: 'alice', key: 'k2', at: NOW - 5, expires: NOW + 60 }]
  assert.equal(countApprovals(policy, needs, other, context).isMet, false)
})

test('an approval ends with the earliest of its expiry, the rule’s time, and six days of the request', () => {
  const of = (at: number, expires: number) => ({ by: 'alice', key: 'k1', at, expires })
  const rule = need('admins', 1, { approval_s: 600 })
  assert.equal(approvalEnd(of(1_000, 1_100), rule, 1_000), 1_100)
  assert.equal(approvalEnd(of(1_000, 9_000), rule, 1_000), 1_600)
  assert.equal(approvalEnd(of(519_000, 600_000), rule, 1_000), 519_400)
  const isMet = (at: number, expires: number, now_s: number) =>
    countApprovals(policy, [rule], [of(at, expires)], { ...context, now_s }).isMet
  assert.equal(isMet(NOW, NOW + 100, NOW + 99), true)
  assert.equal(isMet(NOW, NOW + 100, NOW + 100), false)
  assert.equal(isMet(NOW, NOW + 9_000, NOW + 600), false)
  assert.equal(isMet(NOW + 60, NOW + 100, NOW), true)
  assert.equal(isMet(NOW + 61, NOW + 100, NOW), false)
})

test('a recorded approval of a standing rule counts as of its record, and ends with its key', () => {
  const needs = [need('admins', 1, { approval_s: 600 })]
  const then = NOW - 9_000_000
  const old = { by: 'alice', key: 'k1', at: then, expires: then + 900 }
  const isMet = (recorded_at: number | undefined, fields: Partial<typeof context> = {}) =>
    countApprovals(
      policy,
      needs,
      [{ ...old, ...(recorded_at === undefined ? {} : { recorded_at }) }],
      { ...context, issued_at: then - 9_000_000, isStanding: true, ...fields },
    ).isMet
  assert.equal(isMet(then + 599), true)
  assert.equal(isMet(undefined), false)
  assert.equal(isMet(undefined, { now_s: then + 599 }), true)
  assert.equal(isMet(then + 599, { isStanding: false }), false)
  // It was recorded after the rule's `approval_s`, after `expires`, or before it was signed.
  for (const wrong of [then + 600, then + 900, then - 61]) assert.equal(isMet(wrong), false)
  const suspended = new Set(['alice/k1'])
  assert.equal(isMet(then + 1, { suspended }), false)
  const removed = { ...old, key: 'k2', recorded_at: then + 1 }
  assert.equal(
    countApprovals(policy, needs, [removed], { ...context, isStanding: true }).isMet,
    false,
  )
})

test('combines quorums of several rules: the larger k under the strictest conditions', () => {
  assert.deepEqual(
    combineNeeds(
      [need('b', 1, { initiator: true, approval_s: 60 }), need('a', 1, { initiator: true })],
      [need('b', 2, { recorded_s: 7_200 })],
      [need('b', 1, { recorded_s: 3_600 })],
    ),
    [need('a', 1, { initiator: true }), need('b', 2, { approval_s: 60, recorded_s: 3_600 })],
  )
})

test('only a member of a group that is still missing may reject', () => {
  const needs = [
    { group: 'admins', k: 1, have: 1 },
    { group: 'treasury', k: 1, have: 0 },
  ]
  assert.equal(mayReject(policy, needs, 'dan'), true)
  assert.equal(mayReject(policy, needs, 'alice'), false)
  assert.equal(mayReject(policy, [], 'dan'), false)
})

test('the matching agrees with a search through all assignments', () => {
  const PEOPLE = ['a', 'b', 'c', 'd', 'e', 'f']
  const needs = fc.array(
    fc.record({ k: fc.integer({ min: 1, max: 3 }), people: fc.subarray(PEOPLE) }),
    { minLength: 1, maxLength: 4 },
  )
  let met = 0
  fc.assert(
    fc.property(needs, (each) => {
      const assigned = assignPeople(
        each,
        each.map(({ people }) => people),
      )
      const all = assigned.flat()
      assert.equal(new Set(all).size, all.length, 'a person counts twice')
      for (const [at, { k, people }] of each.entries()) {
        assert.ok((assigned[at]?.length ?? 0) <= k)
        assert.ok(assigned[at]?.every((person) => people.includes(person)))
      }
      const isMet = each.every(({ k }, at) => assigned[at]?.length === k)
      const mayCount = (person: string, at: number) => each[at]?.people.includes(person) ?? false
      assert.equal(isMet, canAssign(PEOPLE, each, mayCount))
      // As many people as possible are assigned, also where the quorums cannot all be reached.
      const most = Math.max(
        ...each
          .reduce<number[][]>(
            (lists, { k }) =>
              lists.flatMap((list) => Array.from({ length: k + 1 }, (_, n) => [...list, n])),
            [[]],
          )
          .filter((list) =>
            canAssign(
              PEOPLE,
              list.map((k) => ({ k })),
              mayCount,
            ),
          )
          .map((list) => list.reduce((sum, k) => sum + k, 0)),
      )
      assert.equal(all.length, most)
      if (isMet) met++
    }),
    { numRuns: 1_000 },
  )
  assert.ok(met > 100)
})
