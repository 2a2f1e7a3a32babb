// Decisions that orders carry: the reader derives the statement, so nothing else can be shown.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Act } from '../act.ts'
import type { Policy } from '../evaluation/compile.ts'
import { actWith, keyOf, NOW, policyWith } from '../../testing/documents.ts'
import { signWith } from '../../testing/statements.ts'
import {
  approvalStatement,
  carriedApproval,
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

test('a decision that was verified before is not verified again, and every other one is', () => {
  const remembered = new Set<string>()
  let verifications = 0
  const isSigned = () => {
    verifications++
    return true
  }
  const count = (carried: readonly CarriedApproval[], fields: Partial<typeof context> = {}) => {
    verifications = 0
    const all = { ...context, isSigned, verified: remembered, ...fields }
    const { approvals, rejections } = verifyDecisions(policy, act, carried, all)
    return [verifications, approvals.length, rejections.length]
  }
  const own = decided()
  assert.deepEqual(count([own]), [1, 1, 0])
  assert.deepEqual(count([own]), [0, 1, 0])
  const changes: Partial<CarriedApproval>[] = [
    { decision: 'reject' },
    { by: 'bob' },
    { at: own.at + 1 },
    { expires: own.expires + 1 },
    { signature: 'other' },
  ]
  for (const change of changes) assert.equal(count([{ ...own, ...change }])[0], 1)
  // Times and suspended keys are checked each time.
  assert.deepEqual(count([own], { now_s: own.expires }), [0, 0, 0])
  assert.deepEqual(count([own], { suspended: new Set(['alice/k1']) }), [0, 0, 0])
})

test('a decision whose signature does not verify is not remembered', () => {
  const remembered = new Set<string>()
  const wrong = { ...decided(), signature: decided({ by: 'bob' }).signature }
  for (const _ of [1, 2]) {
    const { ignored } = verifyDecisions(policy, act, [wrong], { ...context, verified: remembered })
    assert.equal(ignored.length, 1)
  }
  assert.equal(remembered.size, 0)
})

test('at most 64 decisions about an act are remembered', () => {
  const remembered = new Set<string>()
  const isSigned = () => true
  const carried = Array.from({ length: 70 }, (_, at) => ({ ...decided(), expires: NOW + 60 + at }))
  const all = { ...context, isSigned, verified: remembered }
  assert.equal(verifyDecisions(policy, act, carried, all).approvals.length, 70)
  assert.equal(remembered.size, 64)
})

test('reads a carried decision, and refuses other fields and values', () => {
  const own = decided()
  assert.deepEqual(carriedApproval.parse(own), own)
  const { id: _, ...withoutId } = own
  const others: object[] = [
    withoutId,
    { ...own, id: 'x'.repeat(101) },
    { ...own, decision: 'abstain' },
    { ...own, by: '' },
    { ...own, at: -1 },
    { ...own, expires: 1.5 },
    { ...own, signature: 'x'.repeat(101) },
    { ...own, facts: {} },
  ]
  for (const other of others)
    assert.equal(carriedApproval.safeParse(other).success, false, JSON.stringify(other))
})
