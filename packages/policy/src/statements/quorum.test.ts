import assert from 'node:assert/strict'
import { test } from 'node:test'
import { policyWith } from '../../testing/documents.ts'
import { canReach, countQuorum } from './quorum.ts'

const policy = policyWith([])
const ADMINS = [{ group: 'admins', k: 1 }]
const count = (approvals: typeof ADMINS, ...signers: [person: string, key: string][]) =>
  countQuorum(
    policy,
    approvals,
    signers.map(([person, key]) => ({ person, key })),
    new Set(),
  )

test('a key that the document does not contain counts for no quorum', () => {
  assert.equal(count(ADMINS, ['alice', 'k1']).isMet, true)
  assert.equal(count(ADMINS, ['alice', 'k9']).isMet, false)
  assert.equal(count(ADMINS, ['stranger', 'k1']).isMet, false)
})

test('a quorum of a group that the document does not define cannot be met', () => {
  const unknown = [{ group: 'auditors', k: 1 }]
  assert.deepEqual(count(unknown, ['alice', 'k1']), {
    needs: [{ group: 'auditors', k: 1, have: 0 }],
    isMet: false,
  })
  assert.equal(canReach(policy, unknown, new Set()), false)
})

test('quorums are listed by the name of their group, whatever their order in the document', () => {
  const groups = ['treasury', 'admins', 'compliance']
  for (const order of [groups, groups.toReversed(), groups.toSorted()]) {
    const { needs } = count(
      order.map((group) => ({ group, k: 1 })),
      ['alice', 'k1'],
      ['dan', 'k1'],
    )
    assert.deepEqual(
      needs.map(({ group, have }) => [group, have]),
      [
        ['admins', 1],
        ['compliance', 0],
        ['treasury', 1],
      ],
    )
  }
})

test('a person who is in two groups counts for the one that lacks them', () => {
  const { people, groups } = policy.document
  const both = policyWith([], { people, groups: { ...groups, treasury: ['alice', 'dan'] } })
  const approvals = ['admins', 'treasury'].map((group) => ({ group, k: 1 }))
  const met = (...signers: string[]) =>
    countQuorum(
      both,
      approvals,
      signers.map((person) => ({ person, key: 'k1' })),
      new Set(),
    ).isMet
  assert.equal(met('alice'), false)
  assert.equal(met('alice', 'bob'), true)
  assert.equal(met('bob', 'alice'), true)
})
