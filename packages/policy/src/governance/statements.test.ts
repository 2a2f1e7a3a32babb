// Statements that are presented again, and stops of several scopes.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { newKey, NOW } from '../../testing/documents.ts'
import {
  DAY_S,
  installed,
  possessionsOf,
  proposalOf,
  proposed,
  signedBy,
  successorOf,
} from '../../testing/governance.ts'
import { confirm, resume, stop, veto } from '../../testing/transitions.ts'
import { statementHash } from '../statements/shapes.ts'
import { verifyStatement, type SignedStatement } from '../statements/verify.ts'
import type { Policy } from '../evaluation/compile.ts'
import { advance } from './documents.ts'
import { isStopped, type Governance, type Verify } from './governance.ts'
import { isRemoved, judgeStatement } from './statements.ts'

const now = { now_s: NOW }
const first = installed()
const { people, groups } = first.policy.document
const without = (...removed: string[]) =>
  successorOf(first, {
    people: people.filter(({ id }) => !removed.includes(id)),
    groups: { ...groups, admins: ['alice', 'dan', 'erin', 'frank'] },
  })

/** Returns the state after two administrators have ended a stop. */
function resumed(governance: Governance, stopped: SignedStatement): Governance {
  const hash = statementHash(stopped.statement)
  const approvals = ['alice', 'bob'].map((by) => signedBy(first, by, 'resume', { stop: hash }))
  return resume(governance, stopped, approvals, now)
}
const stopOf = (sub_account: string | null): SignedStatement =>
  signedBy(first, 'carol', 'stop', { sub_account })

test('a person whom a change removes holds it with their first veto, and later ones change nothing', () => {
  const pending = proposed(first, proposalOf(first, without('bob', 'carol'), ['alice', 'bob']))
  const reference = { next: { number: 2, hash: pending.next!.policy.hash } }
  const by = (person: string, of: Governance) =>
    veto(of, signedBy(first, person, 'veto', reference), now)
  const held = by('carol', pending)
  assert.equal(held.next?.vetoedBy, 'carol')
  assert.equal(by('carol', held), held)
  assert.equal(by('bob', held), held)
})

test('an operator cannot confirm a change that is not pending', () => {
  assert.throws(() => confirm(first, 'ab'.repeat(32), 1), { code: 'OTHER_POLICY', path: 'hash' })
})

test('a person is removed by a document that contains none of their keys', () => {
  const next = proposed(first, proposalOf(first, without('carol'), ['alice', 'bob'])).next!.policy
  assert.deepEqual(
    ['alice', 'carol'].map((person) => isRemoved(first.policy, next, person)),
    [false, true],
  )
})

test('a person whose keys are all replaced is removed, so they cannot end the change', () => {
  const key = newKey('k2')
  const document = successorOf(first, {
    people: people.map((each) => (each.id === 'carol' ? { ...each, keys: [key.key] } : each)),
  })
  const possessions = possessionsOf(document, (person) => (person === 'carol' ? [key] : []))
  const pending = proposed(first, proposalOf(first, document, ['alice', 'bob'], { possessions }))
  const next = pending.next!.policy
  assert.equal(isRemoved(first.policy, next, 'carol'), true)
  const reference = { next: { number: 2, hash: next.hash } }
  const held = veto(pending, signedBy(first, 'carol', 'veto', reference), now)
  assert.equal(held.next?.vetoedBy, 'carol')
})

test('the end of a stop applies to its own scope only', () => {
  // A sub-account may be named `null`.
  for (const name of ['null', 'main']) {
    const ended = resumed(stop(first, stopOf(name), now), stopOf(name))
    assert.equal(isStopped(ended, name), false)
    assert.throws(() => stop(ended, stopOf(name), now), { code: 'EXPIRED' })
    assert.equal(isStopped(stop(ended, stopOf(null), now), name), true)
    assert.equal(isStopped(stop(ended, stopOf('other'), now), 'other'), true)
  }
  const ended = resumed(first, stopOf(null))
  assert.equal(isStopped(stop(ended, stopOf('null'), now), 'null'), true)
})

test('a stop that was ended is ended once, and the end of an earlier stop of its scope changes nothing', () => {
  const one = stopOf('main')
  const ended = resumed(stop(first, one, now), one)
  assert.equal(resumed(ended, one), ended)
  const earlier = signedBy(first, 'bob', 'stop', { sub_account: 'main', at: NOW - DAY_S })
  assert.equal(resumed(ended, earlier), ended)
})

test('the end of a stop of a clock that is ahead holds for it immediately, and for earlier ones from its time', () => {
  const one = signedBy(first, 'carol', 'stop', { at: NOW + 60 })
  const between = signedBy(first, 'bob', 'stop', { at: NOW + 30 })
  const ended = resumed(stop(first, one, now), one)
  assert.equal(isStopped(ended, 'main'), false)
  assert.deepEqual([...ended.resumedUpTo], [])
  assert.equal(resumed(ended, one), ended)
  assert.throws(() => stop(ended, one, now), { code: 'EXPIRED', path: 'at' })
  // An earlier stop of the time between holds until then.
  const stopped = stop(ended, between, now)
  assert.equal(isStopped(advance(stopped, NOW + 59), 'main'), true)
  const later = advance(stopped, NOW + 60)
  assert.deepEqual(
    [isStopped(later, 'main'), [...later.resumedUpTo], later.endedStops],
    [false, [[null, NOW + 60]], []],
  )
  assert.equal(advance(later, NOW + 61), later)
  for (const each of [one, between])
    assert.throws(() => stop(later, each, { now_s: NOW + 61 }), { code: 'EXPIRED' })
})

test('refuses the end of a stop that is dated later than a minute from now', () => {
  const one = signedBy(first, 'carol', 'stop', { at: NOW + 61 })
  assert.throws(() => resumed(first, one), {
    code: 'NOT_YET',
    message: 'stop.at: is in the future; check both clocks',
  })
  const veto = signedBy(first, 'carol', 'veto')
  assert.throws(() => resumed(first, veto), { code: 'SHAPE', message: 'stop.kind: must be stop' })
})

test('a key of any document up to the one in force can have signed a stop that is ended', () => {
  const one = stopOf(null)
  const proposal = proposalOf(first, without('carol'), ['alice', 'bob'])
  const second = advance(proposed(stop(first, one, now), proposal), NOW + DAY_S)
  assert.deepEqual([second.policy.document.number, second.stops.length], [2, 1])
  const ends = (stopped: SignedStatement, earlier: readonly Policy[]) => () => {
    const fields = { stop: statementHash(stopped.statement), at: NOW + DAY_S }
    const times = { ...fields, expires: NOW + 2 * DAY_S }
    const approvals = ['alice', 'dan'].map((by) => signedBy(second, by, 'resume', times))
    return resume(second, stopped, approvals, { now_s: NOW + DAY_S }, earlier)
  }
  assert.deepEqual(ends(one, [first.policy])().stops, [])
  assert.throws(ends(one, []), {
    code: 'UNKNOWN_PERSON',
    path: 'stop.by',
    message: 'stop.by: carol is not in the document',
  })
  const forged = { ...one, signature: `${'A'.repeat(86)}==` }
  assert.throws(ends(forged, [first.policy]), { code: 'UNKNOWN_PERSON', path: 'stop.by' })
  const byOther = signedBy(first, 'compliance', 'stop')
  assert.throws(ends(byOther, [first.policy]), { code: 'NOT_ALLOWED', path: 'stop.by' })
})

test('a key that several documents contain is verified once for a stop that is ended', () => {
  const forged = { ...stopOf(null), signature: `${'A'.repeat(86)}==` }
  let verifications = 0
  const verify: Verify = (policy, signed, context) => {
    if (signed.statement.kind === 'stop') verifications++
    return verifyStatement(policy, signed, context)
  }
  const stopped = { stop: statementHash(forged.statement) }
  const approvals = ['alice', 'bob'].map((by) => signedBy(first, by, 'resume', stopped))
  const earlier = [first.policy, first.policy]
  assert.throws(() => resume(first, forged, approvals, { ...now, verify }, earlier), {
    code: 'SIGNATURE',
    message: 'stop.signature: does not verify with the key',
  })
  assert.equal(verifications, 1)
  const broken = (): never => {
    throw new TypeError('broken')
  }
  const verifyApprovals: Verify = (policy, signed, context) =>
    signed.statement.kind === 'stop' ? broken() : verifyStatement(policy, signed, context)
  assert.throws(() => resume(first, forged, approvals, { ...now, verify: verifyApprovals }), {
    name: 'TypeError',
    message: 'broken',
  })
})

test('judges vetoes, stops, suspensions and revocations only', () => {
  const judged = (kind: 'resume' | 'veto') =>
    judgeStatement(first, signedBy(first, 'bob', kind), now)
  assert.throws(() => judged('resume'), {
    code: 'SHAPE',
    message: 'kind: must be veto, stop, suspend or revoke',
  })
  const common = { type: 'veto', hash: 'cd'.repeat(32), by: 'bob', approved_by: [], at_s: NOW }
  assert.deepEqual(judged('veto'), { ...common, outcome: 'early' })
})

test('vetoes of changes that were pending do not count as early ones', () => {
  const proposal = proposalOf(first, without('carol'), ['bob', 'alice'])
  const pending = proposed(first, proposal)
  assert.deepEqual(pending.next!.approvedBy, ['alice', 'bob'])
  const vetoOf = (of: Governance, hash: string): Governance =>
    veto(of, signedBy(first, 'alice', 'veto', { next: { number: 2, hash } }), now)
  let state = vetoOf(pending, pending.next!.policy.hash)
  for (let at = 0; at < 100; at++) state = vetoOf(state, String(at).padStart(64, '0'))
  assert.equal(state.vetoed.size, 101)
  assert.throws(() => vetoOf(state, 'ef'.repeat(32)), { code: 'NOT_ALLOWED' })
})
