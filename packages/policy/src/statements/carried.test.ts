// Decisions that orders carry: the reader derives the statement, so nothing else can be shown.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Act } from '../act.ts'
import type { Policy } from '../evaluation/compile.ts'
import { actWith, keyOf, NOW, policyWith } from '../../testing/documents.ts'
import { signWith } from '../../testing/statements.ts'
import {
  approvalStatement,
  verifyDecisions,
  type CarriedApproval,
  type Decisions,
} from './carried.ts'

const policy = policyWith([])
const act = actWith()
const context = { now_s: NOW, suspended: new Set<string>() }

/** Returns a decision that a person has signed, with the given fields. */
function decided(fields: Partial<CarriedApproval> = {}, of: Act = act, under: Policy = policy) {
  const unsigned = {
    decision: 'approve' as const,
    by: 'alice',
    key: 'k1',
    at: NOW - 5,
    expires: NOW + 3600,
    ...fields,
  }
  const { signature } = signWith(keyOf(unsigned.by), approvalStatement(under, of, unsigned))
  return { id: of.id, ...unsigned, signature }
}

const verified = (
  carried: readonly CarriedApproval[],
  fields: Partial<typeof context> = {},
): Decisions => verifyDecisions(policy, act, carried, { ...context, ...fields })

test('returns approvals and rejections whose signatures verify', () => {
  const { approvals, rejections, ignored } = verified([
    decided(),
    decided({ by: 'bob' }),
    decided({ by: 'carol', decision: 'reject' }),
  ])
  assert.deepEqual(
    [approvals.map(({ by }) => by), rejections.map(({ by }) => by), ignored],
    [['alice', 'bob'], ['carol'], []],
  )
})

test('attack: an approval of another act, document or content counts for nothing', () => {
  const others: [string, Act, Policy][] = [
    ['amount', actWith({ amount: act.amount + 1n }), policy],
    ['destination', actWith({ to: { ...act.to, address: 'bc1qother' } }), policy],
    ['tag', actWith({ to: { ...act.to, tag: '1' } }), policy],
    ['sub-account', actWith({ sub_account: 'other' }), policy],
    ['content', actWith({ subject: 'ab'.repeat(32) }), policy],
    ['action', actWith({ action: 'refund' }), policy],
    ['largest fee', actWith({ fee: { ...act.fee, limit: act.fee.limit + 1n } }), policy],
    ['document', act, policyWith([], { number: 2, previous: policy.hash })],
  ]
  for (const [name, other, under] of others) {
    const { approvals, ignored } = verified([decided({}, other, under)])
    assert.deepEqual([approvals, ignored.map(({ by }) => by)], [[], ['alice']], name)
  }
  const moved = { ...decided({}, actWith({ id: '00000000-0000-8000-8000-000000000000' })) }
  assert.deepEqual(verified([moved]), { approvals: [], rejections: [], ignored: [] })
  assert.equal(verified([{ ...moved, id: act.id }]).ignored.length, 1)
})

test('attack: a changed field of a decision counts for nothing', () => {
  const own = decided()
  const changes: Partial<CarriedApproval>[] = [
    { decision: 'reject' },
    { by: 'bob' },
    { at: own.at + 1 },
    { expires: own.expires + 1 },
    { signature: decided({ by: 'bob' }).signature },
    { signature: '' },
  ]
  for (const change of changes) {
    const { approvals, rejections, ignored } = verified([{ ...own, ...change }])
    assert.deepEqual([approvals, rejections, ignored.length], [[], [], 1], JSON.stringify(change))
  }
})

test('a suspended key approves nothing, and still rejects', () => {
  const suspended = new Set(['alice/k1'])
  const { approvals, rejections, ignored } = verified(
    [decided(), decided({ decision: 'reject' })],
    { suspended },
  )
  assert.deepEqual([approvals.length, rejections.length, ignored.length], [0, 1, 1])
  assert.match(ignored[0]!.why, /suspended/)
})

test('an expired approval is ignored with its reason', () => {
  const { ignored } = verified([decided()], { now_s: NOW + 3600 })
  assert.match(ignored[0]!.why, /expired/)
})
