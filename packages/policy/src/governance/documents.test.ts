// Proposals that are seen again, late or from a backup: which times and which suspensions count.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { keyOf, NOW } from '../../testing/documents.ts'
import {
  DAY_S,
  installed,
  possessionsOf,
  proposalOf,
  proposed,
  signedBy,
  successorOf,
} from '../../testing/governance.ts'
import { registry } from '../../testing/registry.ts'
import { reinstate, revoke, suspend } from '../../testing/transitions.ts'
import type { SignedStatement } from '../statements/verify.ts'
import { approvedAt, judgeChange } from './documents.ts'

const now = { now_s: NOW }
const first = installed()
const next = successorOf(first, { stop: { group: 'treasury' } })
const proposal = proposalOf(first, next, ['alice', 'bob'])
const [alice] = proposal.approvals as [SignedStatement]
/** Returns Bob's approval, signed a number of seconds after Alice's, for the same time. */
const bobAfter = (seconds: number): SignedStatement => {
  const times = { at: NOW + seconds, acts_at: NOW + DAY_S }
  return proposalOf(first, next, ['bob'], times).approvals[0]!
}

test('a revocation or suspension does not count against a change that both other nodes have accepted', () => {
  const revoked = revoke(first, signedBy(first, 'alice', 'revoke'), now)
  const suspended = suspend(first, signedBy(first, 'carol', 'suspend'), now)
  for (const [state, code] of [
    [revoked, 'KEY_REVOKED'],
    [suspended, 'KEY_SUSPENDED'],
  ] as const) {
    assert.throws(() => proposed(state, proposal, NOW), { code })
    const accepted = proposed(state, proposal, NOW, [NOW, NOW])
    assert.equal(accepted.next?.acts_at_s, NOW + DAY_S)
    assert.deepEqual(
      [accepted.revoked, accepted.suspensions],
      [state.revoked, state.suspensions],
      'the revocation or suspension remains in force',
    )
  }
})

test('a pending change stays the same when it is presented again, even after its approvals expired', () => {
  const pending = proposed(first, proposal)
  assert.equal(proposed(pending, proposal, NOW + 3600), pending)
  assert.equal(proposed(pending, proposal, NOW + 3600, [NOW, NOW]), pending)
})

test('approvals count at the latest of their times, or in the last second before the first of them expires', () => {
  assert.equal(approvedAt([alice, bobAfter(100)]), NOW + 100)
  assert.equal(approvedAt([bobAfter(100), alice]), NOW + 100)
  assert.equal(approvedAt([alice, bobAfter(3630)]), NOW + 3599)
  // A proof of possession has no time.
  const [possession] = possessionsOf(next, () => [keyOf('dan')]) as [SignedStatement]
  assert.equal(approvedAt([possession, alice]), NOW)
})

test('a reinstated change comes into force immediately, without a veto and without confirmations', () => {
  const at = { now_s: NOW + 400 * DAY_S }
  const { policy, ...rest } = reinstate(first, proposal, { registry }, at).next!
  assert.equal(policy.document.number, 2)
  assert.deepEqual(rest, {
    seen_at_s: at.now_s,
    acts_at_s: at.now_s,
    approved_for_s: NOW + DAY_S,
    approvedBy: ['alice', 'bob'],
    vetoedBy: null,
    confirmedBy: [],
  })
})

test('a change is reinstated if the clocks of its approvers differed by at most one minute', () => {
  const at = { now_s: NOW + 400 * DAY_S }
  const by = (seconds: number) => () =>
    reinstate(first, { ...proposal, approvals: [alice, bobAfter(seconds)] }, { registry }, at)
  // Alice's approval is valid until the second NOW + 3599.
  assert.ok(by(3599 + 60)().next)
  assert.throws(by(3599 + 61), { code: 'NOT_YET' })
})

test('a change without valid signatures, or with too few, is refused before its faults are searched', () => {
  let searches = 0
  const present = {
    ...now,
    findFaults: () => {
      searches++
      return []
    },
  }
  const judged = (approvals: readonly SignedStatement[]) => () =>
    judgeChange(first, { ...proposal, approvals }, { registry }, present)
  const [, bob] = proposal.approvals as [SignedStatement, SignedStatement]
  assert.throws(judged([]), { code: 'QUORUM' })
  assert.throws(judged([alice]), { code: 'QUORUM' })
  assert.throws(judged([alice, { ...bob, signature: `${'A'.repeat(86)}==` }]), {
    code: 'SIGNATURE',
  })
  const other = proposalOf(first, successorOf(first), ['bob']).approvals
  assert.throws(judged([alice, ...other]), { code: 'OTHER_STATEMENT' })
  assert.equal(searches, 0)
  assert.ok(judged(proposal.approvals)())
  assert.equal(searches, 1)
})
