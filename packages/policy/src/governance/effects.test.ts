// Effects are applied without a judgement, so none of them is refused, whatever the state is.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { NOW } from '../../testing/documents.ts'
import { DAY_S, installed, proposalOf, proposed, successorOf } from '../../testing/governance.ts'
import { pendingEffect } from './documents.ts'
import { atTime, withEffect, type Effect } from './effects.ts'

const first = installed()
const pending = proposed(
  first,
  proposalOf(first, successorOf(first, { stop: { group: 'treasury' } }), ['alice', 'bob']),
)
const next = pending.next!
const other = 'ab'.repeat(32)
const held = { type: 'veto', by: 'bob', outcome: 'held', approved_by: [], at_s: NOW } as const

test('an effect on a change that is not pending leaves the state as it is', () => {
  const effects: Effect[] = [
    { type: 'confirm', hash: other, node: 1 },
    { ...held, hash: other },
  ]
  for (const effect of effects) {
    assert.equal(withEffect(pending, effect, null, NOW), pending)
    assert.equal(withEffect(first, effect, null, NOW), first)
  }
})

test('a pending change that is written as an effect is the same afterwards', () => {
  assert.deepEqual(withEffect(first, pendingEffect(next), next.policy, NOW).next, next)
  const confirmed = withEffect(
    pending,
    { type: 'confirm', hash: next.policy.hash, node: 3 },
    null,
    NOW,
  )
  assert.deepEqual(confirmed.next, { ...next, confirmedBy: [3] })
  const vetoed = withEffect(pending, { ...held, hash: next.policy.hash }, null, NOW)
  assert.deepEqual(vetoed.next, { ...next, vetoedBy: 'bob' })
})

test('a veto ends only the change that it names', () => {
  const veto = { ...held, outcome: 'ended', approved_by: ['alice'] } as const
  const ended = withEffect(pending, { ...veto, hash: next.policy.hash }, null, NOW)
  assert.deepEqual(
    [ended.next, [...ended.vetoed], ended.vetoedChanges],
    [
      null,
      [[next.policy.hash, ['bob']]],
      [{ hash: next.policy.hash, by: 'bob', approvedBy: ['alice'], at_s: NOW }],
    ],
  )
  const early = withEffect(pending, { ...held, outcome: 'early', hash: other }, null, NOW)
  assert.deepEqual([early.next, early.vetoedChanges], [next, []])
})

test('time alone ends suspensions, and raises the mark of ended stops of each scope separately', () => {
  const target = { person: 'bob', key: 'k1' }
  const suspension = { hash: other, by: 'alice', target, ends_at_s: NOW + DAY_S }
  let state = withEffect(first, { type: 'suspend', ...suspension }, null, NOW)
  const stop = { type: 'stop', hash: other, by: 'alice' } as const
  state = withEffect(state, { ...stop, sub_account: 'main', at: NOW + 5 }, null, NOW)
  state = withEffect(state, { ...stop, sub_account: 'other', at: 0 }, null, NOW)
  const end = { type: 'resume', stop: 'cd'.repeat(32), sub_account: 'main', at: NOW + 10 } as const
  state = withEffect(state, end, null, NOW)
  assert.equal(atTime(state, NOW + 9), state)
  const later = atTime(state, NOW + 10)
  assert.deepEqual(
    [later.stops.map(({ sub_account }) => sub_account), [...later.resumedUpTo]],
    [['other'], [['main', NOW + 10]]],
  )
  assert.deepEqual(later.suspensions, [suspension])
  assert.deepEqual(atTime(later, NOW + DAY_S).suspensions, [])
  assert.equal(atTime(later, NOW + DAY_S - 1), later)
  // Two ended stops reach their times one after the other, the first one with the end of a suspension.
  const short = withEffect(first, { type: 'suspend', ...suspension, ends_at_s: NOW + 2 }, null, NOW)
  const two = withEffect(
    withEffect(short, { ...end, at: NOW + 2 }, null, NOW),
    { ...end, sub_account: null },
    null,
    NOW,
  )
  const between = atTime(two, NOW + 2)
  assert.deepEqual(
    [between.suspensions, [...between.resumedUpTo], between.endedStops.map(({ at }) => at)],
    [[], [['main', NOW + 2]], [NOW + 10]],
  )
  // The end of an earlier stop does not lower the mark.
  const again = withEffect(later, { ...end, at: NOW + 7 }, null, NOW + 10)
  assert.deepEqual([...again.resumedUpTo], [['main', NOW + 10]])
})
