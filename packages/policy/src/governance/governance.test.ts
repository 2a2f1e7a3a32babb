import assert from 'node:assert/strict'
import { test } from 'node:test'
import { keyOf, newKey, NOW, policyWith } from '../../testing/documents.ts'
import {
  DAY_S,
  installed,
  PLACE,
  possessionsOf,
  proposalOf,
  proposed,
  signedBy,
  successorOf,
} from '../../testing/governance.ts'
import { registry } from '../../testing/registry.ts'
import {
  confirm,
  reinstate,
  resume,
  revoke,
  stop,
  suspend,
  veto,
} from '../../testing/transitions.ts'
import { PolicyError } from '../error.ts'
import { statementHash } from '../statements/shapes.ts'
import type { SignedStatement } from '../statements/verify.ts'
import { advance, approvedAt, install } from './documents.ts'
import { blockedKeys, isStopped, suspendedKeys, type Governance } from './governance.ts'

const WEEK_S = 7 * DAY_S
const now = { now_s: NOW }
/** Every sentence that these functions give as a reason, by code and path. */
const SENTENCES: Readonly<Record<string, readonly string[]>> = {
  'EXPIRED at': ['is not later than a stop that was ended; sign it again'],
  'EXPIRED expires': ['the statement has expired'],
  'KEY_REVOKED key': ['k1 of alice is revoked'],
  'KEY_REVOKED people': ['k1 of alice is revoked'],
  'KEY_SUSPENDED key': ['k1 of bob is suspended'],
  'LINT change.approvals': [
    'If one person loses their keys, the document can no longer be changed. Add a person, or lower k.',
  ],
  'LINT nodes': ['The field must be <hash>, as in force.'],
  'NOT_ALLOWED by': [
    'alice has vetoed too many changes that are not pending here',
    'alice already has a suspension in force',
    'the document does not allow this statement of alice',
    'the document does not allow this statement of dan',
  ],
  'NOT_ALLOWED sub_account': ['too many are stopped; stop the whole workspace'],
  'NOT_ALLOWED target': ['the suspension would leave too few people for the approvals of change'],
  'OTHER_POLICY hash': ['is not the hash of the pending change'],
  'OTHER_POLICY number': ['must be 1 in the first document'],
  'OTHER_POLICY policy': ['is not the document 1 with hash <hash>'],
  'OTHER_POLICY previous': ['is not the document 1 in force', 'is not the document 2 in force'],
  'OTHER_STATEMENT approvals': ['name different times'],
  'OTHER_STATEMENT approvals[0].stop': ['is not the hash of the stop'],
  'OTHER_STATEMENT approvals[1].next.hash': ['is not the hash of the document'],
  'OTHER_WORKSPACE mode': ['is not that of this installation'],
  'OTHER_WORKSPACE nodes': ['is not that of this installation'],
  'OTHER_WORKSPACE workspace': ['is not that of this installation'],
  PENDING: ['Another change is pending; it can be vetoed'],
  'POSSESSION possessions': [
    'the proof of k1 of alice is missing',
    'the proof of k2 of dan is missing',
  ],
  'QUORUM approvals': [
    'are not sufficient for change: 1 of 2 of admins',
    'are not sufficient for resume: 0 of 1 of admins and 1 of 1 of treasury',
    'are not sufficient for resume: 1 of 1 of admins and 0 of 1 of treasury',
    'are not sufficient for resume: 1 of 2 of admins',
  ],
  'SHAPE acts_at': ['must be at most 1903196800'],
  'SHAPE kind': ['must be change'],
  'SIGNATURE signature': ['does not verify with the key'],
  'UNKNOWN_PERSON by': ['stranger is not in the document'],
  VETOED: ['The change was vetoed'],
}
const refused = (code: string, path: string, call: () => unknown): void => {
  assert.throws(call, (error: unknown) => {
    assert.ok(error instanceof PolicyError, String(error))
    assert.deepEqual([error.code, error.path], [code, path], error.message)
    const sentence = path === '' ? error.message : error.message.slice(path.length + 2)
    const expected = SENTENCES[`${code} ${path}`.trim()] ?? []
    assert.ok(expected.includes(sentence.replace(/[0-9a-f]{64}/, '<hash>')), sentence)
    return true
  })
}
const admins = { admins: ['alice', 'bob', 'carol'] }
const peopleWithout = (governance: Governance, ...gone: string[]) =>
  governance.policy.document.people.filter(({ id }) => !gone.includes(id))
const withoutCarol = (governance: Governance) =>
  successorOf(governance, {
    people: [...peopleWithout(governance, 'carol')],
    groups: { ...governance.policy.document.groups, admins: ['alice', 'bob', 'dan'] },
  })

test('the first document needs a proof of possession by every key, for this installation', () => {
  const { document } = policyWith([])
  const possessions = possessionsOf(document)
  const from = (proofs: typeof possessions, place: object = {}) =>
    install({ document, possessions: proofs }, { ...PLACE, ...place }, { registry }, now)
  assert.equal(from(possessions).policy.document.number, 1)
  refused('POSSESSION', 'possessions', () => from(possessions.slice(1)))
  refused('OTHER_WORKSPACE', 'nodes', () => from(possessions, { nodes: 'cd'.repeat(32) }))
  refused('OTHER_WORKSPACE', 'workspace', () => from(possessions, { workspace: 'other' }))
  refused('OTHER_WORKSPACE', 'mode', () => from(possessions, { mode: 'local' }))
  // A proof of another key, or over another document, is none.
  const forged = possessionsOf(document, (person) => [
    person === 'dan' ? { ...newKey('k1'), key: keyOf('dan').key } : keyOf(person),
  ])
  refused('SIGNATURE', 'signature', () => from(forged))
  const other = possessionsOf(policyWith([], { stop: { group: 'treasury' } }).document)
  refused('OTHER_POLICY', 'policy', () => from(other))
  const { document: second } = policyWith([], { number: 2, previous: 'ab'.repeat(32) })
  refused('OTHER_POLICY', 'number', () =>
    install({ document: second, possessions: [] }, PLACE, { registry }, now),
  )
  const { document: faulty } = policyWith([], {
    change: { approvals: [{ group: 'admins', k: 3 }], delay_s: DAY_S, veto: 'admins' },
  })
  refused('LINT', 'change.approvals', () =>
    install({ document: faulty, possessions: possessionsOf(faulty) }, PLACE, { registry }, now),
  )
})

test('a change needs the quorum of the document in force, and waits for its delay', () => {
  const first = installed()
  const next = successorOf(first, { stop: { group: 'treasury' } })
  refused('QUORUM', 'approvals', () => proposed(first, proposalOf(first, next, ['alice'])))
  refused('QUORUM', 'approvals', () => proposed(first, proposalOf(first, next, ['bob', 'bob'])))
  refused('NOT_ALLOWED', 'by', () => proposed(first, proposalOf(first, next, ['alice', 'dan'])))
  const pending = proposed(first, proposalOf(first, next, ['alice', 'carol']))
  assert.equal(pending.next?.acts_at_s, NOW + DAY_S)
  assert.equal(advance(pending, NOW + DAY_S - 1), pending)
  const second = advance(pending, NOW + DAY_S)
  assert.deepEqual([second.policy.document.number, second.next], [2, null])
  assert.equal(second.policy.document.stop.group, 'treasury')
  // The same proposal again changes nothing, and is one for an earlier document afterwards.
  assert.equal(proposed(pending, proposalOf(first, next, ['alice', 'carol'])), pending)
  refused('OTHER_POLICY', 'previous', () =>
    proposed(second, proposalOf(first, next, ['alice', 'carol'])),
  )
  const jumped = successorOf(first, { number: 3 })
  refused('OTHER_POLICY', 'previous', () =>
    proposed(first, proposalOf(first, jumped, ['alice', 'bob'])),
  )
  const unlinked = successorOf(first, { previous: 'ab'.repeat(32) })
  refused('OTHER_POLICY', 'previous', () =>
    proposed(first, proposalOf(first, unlinked, ['alice', 'bob'])),
  )
  const elsewhere = successorOf(first, { nodes: 'cd'.repeat(32) })
  refused('LINT', 'nodes', () => proposed(first, proposalOf(first, elsewhere, ['alice', 'bob'])))
  const other = proposalOf(first, successorOf(first, { stop: { group: 'compliance' } }), [
    'alice',
    'bob',
  ])
  refused('PENDING', '', () => proposed(pending, other))
})

test('the delay counts from the first sight here, unless both other nodes saw it in time', () => {
  const first = installed()
  const next = successorOf(first, { stop: { group: 'treasury' } })
  const proposal = proposalOf(first, next, ['alice', 'bob'])
  const actsAt = (seen: number, witnesses: [number, number] | null = null) =>
    proposed(first, proposal, seen, witnesses).next?.acts_at_s
  assert.equal(actsAt(NOW + 300), NOW + DAY_S)
  assert.equal(actsAt(NOW + 301), NOW + 301 + DAY_S)
  // One hostile node cannot shorten the delay: the later of the two counts.
  assert.equal(actsAt(NOW + 3000, [NOW, NOW + 301]), NOW + 3000 + DAY_S)
  assert.equal(actsAt(NOW + 3000, [NOW + 300, NOW]), NOW + DAY_S)
  // Statements that have expired count only if both others saw them before.
  refused('EXPIRED', 'expires', () => actsAt(NOW + 3600))
  refused('EXPIRED', 'expires', () => actsAt(NOW + WEEK_S, [NOW, NOW + 3600]))
  assert.equal(actsAt(NOW + WEEK_S, [NOW, NOW + 1]), NOW + DAY_S)
  const early = proposalOf(first, next, ['alice', 'bob'], { acts_at: NOW })
  assert.equal(proposed(first, early).next?.acts_at_s, NOW + DAY_S)
  const far = proposalOf(first, next, ['alice', 'bob'], { acts_at: NOW + 37 * DAY_S + 1 })
  refused('SHAPE', 'acts_at', () => proposed(first, far))
  const latest = proposalOf(first, next, ['alice', 'bob'], { acts_at: NOW + 37 * DAY_S })
  assert.equal(proposed(first, latest).next?.acts_at_s, NOW + 37 * DAY_S)
})

test('the approvals of a change must be about that document and one time', () => {
  const first = installed()
  const next = successorOf(first, { stop: { group: 'treasury' } })
  const other = successorOf(first, { stop: { group: 'compliance' } })
  const good = proposalOf(first, next, ['alice', 'bob'])
  const of = (approvals: typeof good.approvals) => () => proposed(first, { ...good, approvals })
  const [alice] = good.approvals as [(typeof good.approvals)[0]]
  const elsewhere = proposalOf(first, other, ['bob']).approvals
  refused('OTHER_STATEMENT', 'approvals[1].next.hash', of([alice, ...elsewhere]))
  const later = proposalOf(first, next, ['bob'], { acts_at: NOW + 2 * DAY_S }).approvals
  refused('OTHER_STATEMENT', 'approvals', of([alice, ...later]))
  refused('SHAPE', 'kind', of([alice, signedBy(first, 'bob', 'stop')]))
})

test('a new key must agree to the document; an old one need not', () => {
  const first = installed()
  const key = newKey('k2')
  const people = first.policy.document.people.map((person) =>
    person.id === 'dan' ? { ...person, keys: [...person.keys, key.key] } : person,
  )
  const next = successorOf(first, { people })
  const proofs = possessionsOf(next, (person) => (person === 'dan' ? [key] : []))
  const of = (possessions: typeof proofs) => () =>
    proposed(first, proposalOf(first, next, ['alice', 'bob'], { possessions }))
  refused('POSSESSION', 'possessions', of([]))
  // A statement of another kind, or about another of the person's keys, is no proof.
  const stopped = signedBy(first, 'dan', 'stop', { key: 'k2' }, key)
  const ofOld = possessionsOf(next, (person) => (person === 'dan' ? [keyOf('dan')] : []))
  refused('POSSESSION', 'possessions', of([stopped, ...ofOld]))
  refused('SIGNATURE', 'signature', of([{ ...proofs[0]!, signature: 'A'.repeat(86) + '==' }]))
  assert.equal(of(proofs)().next?.policy.people.get('dan')?.size, 2)
})

test('one person ends a change; a person whom it removes only delays it until two nodes confirm', () => {
  const first = installed()
  const next = withoutCarol(first)
  const proposal = proposalOf(first, next, ['alice', 'bob'])
  const pending = proposed(first, proposal)
  const reference = { next: { number: 2, hash: pending.next!.policy.hash } }
  const by = (person: string, of: Governance = pending) =>
    veto(of, signedBy(first, person, 'veto', reference), now)

  const ended = by('alice')
  assert.equal(ended.next, null)
  refused('VETOED', '', () => proposed(ended, proposal))
  refused('NOT_ALLOWED', 'by', () => by('dan'))
  const ofOther = (at: number) => ({ next: { number: 2, hash: String(at).padStart(64, '0') } })
  const otherVeto = (at: number, of: Governance) =>
    veto(of, signedBy(first, 'alice', 'veto', ofOther(at)), now)
  assert.equal(otherVeto(1, pending).next, pending.next)

  const held = by('carol')
  assert.equal(advance(held, NOW + 30 * DAY_S), held)
  const { hash } = reference.next
  const once = confirm(confirm(held, hash, 1), hash, 1)
  assert.equal(advance(once, NOW + 30 * DAY_S).next?.vetoedBy, 'carol')
  const twice = confirm(once, hash, 3)
  assert.equal(advance(twice, NOW + DAY_S - 1), twice)
  assert.equal(advance(twice, NOW + DAY_S).policy.document.number, 2)
  refused('OTHER_POLICY', 'hash', () => confirm(held, '0'.repeat(64), 1))
  // Anybody who stays can still end it.
  assert.equal(by('bob', twice).next, null)
  // Carol's veto of a change that leaves her one of her keys ends it.
  const other = proposed(
    first,
    proposalOf(first, successorOf(first, { stop: { group: 'treasury' } }), ['alice', 'bob']),
  )
  const ofThis = { next: { number: 2, hash: other.next!.policy.hash } }
  assert.equal(veto(other, signedBy(first, 'carol', 'veto', ofThis), now).next, null)
})

test('a veto holds for a change that arrives later, and early ones are limited', () => {
  const first = installed()
  const proposal = proposalOf(first, withoutCarol(first), ['alice', 'bob'])
  const { hash } = proposed(first, proposal).next!.policy
  const reference = { next: { number: 2, hash } }
  const by = (person: string, of: Governance) =>
    veto(of, signedBy(first, person, 'veto', reference), now)

  const byAlice = by('alice', first)
  refused('VETOED', '', () => proposed(byAlice, proposal))
  assert.equal(by('alice', byAlice), byAlice)
  // The change removes Carol, so her veto delays it, and Alice's ends it.
  const byCarol = by('carol', first)
  assert.equal(proposed(byCarol, proposal).next?.vetoedBy, 'carol')
  refused('VETOED', '', () => proposed(by('alice', byCarol), proposal))

  let many = first
  for (let at = 0; at < 100; at++) {
    const next = { number: 2, hash: String(at).padStart(64, '0') }
    many = veto(many, signedBy(first, 'alice', 'veto', { next }), now)
  }
  refused('NOT_ALLOWED', 'by', () => by('alice', many))
  assert.equal(by('bob', many).vetoed.size, 101)
  // A pending change can always be vetoed.
  assert.equal(by('alice', proposed(many, proposal)).next, null)
})

test('the words of both other nodes make a pending change come into force earlier, never later', () => {
  const first = installed()
  const proposal = proposalOf(first, withoutCarol(first), ['alice', 'bob'], {
    acts_at: NOW + DAY_S,
  })
  const late = proposed(first, proposal, NOW + 3000)
  assert.equal(late.next?.acts_at_s, NOW + 3000 + DAY_S)
  const proven = proposed(late, proposal, NOW + 3500, [NOW, NOW + 1])
  assert.equal(proven.next?.acts_at_s, NOW + DAY_S)
  assert.equal(proven.next?.seen_at_s, late.next?.seen_at_s)
  assert.equal(proposed(proven, proposal, NOW + 3500, [NOW, NOW + 3000]), proven)
})

test('a stop holds for its scope until a quorum ends it, and cannot be shown again', () => {
  const first = installed()
  const one = signedBy(first, 'carol', 'stop')
  const stopped = stop(first, one, now)
  assert.deepEqual(
    [isStopped(first, 'main'), isStopped(stopped, 'main'), stopped.stops.length],
    [false, true, 1],
  )
  assert.equal(stop(stopped, one, now), stopped)
  refused('NOT_ALLOWED', 'by', () => stop(first, signedBy(first, 'dan', 'stop'), now))
  const hash = statementHash(one.statement)
  const resumes = (governance: Governance, ...by: string[]) =>
    resume(
      governance,
      one,
      by.map((person) => signedBy(first, person, 'resume', { stop: hash })),
      now,
    )
  refused('QUORUM', 'approvals', () => resumes(stopped, 'alice'))
  refused('OTHER_STATEMENT', 'approvals[0].stop', () =>
    resume(stopped, one, [signedBy(first, 'alice', 'resume')], now),
  )
  const resumed = resumes(stopped, 'alice', 'bob')
  assert.equal(isStopped(resumed, 'main'), false)
  refused('EXPIRED', 'at', () => stop(resumed, one, now))
  // A node that did not see the stop refuses it after it has seen its end.
  refused('EXPIRED', 'at', () => stop(resumes(first, 'alice', 'bob'), one, now))
  // A later stop holds.
  const later = stop(stopped, signedBy(first, 'alice', 'stop', { at: NOW - 4 }), now)
  assert.deepEqual([later.stops.length, later.stops[0]?.by], [1, 'alice'])
  assert.equal(isStopped(resumes(later, 'alice', 'bob'), 'main'), true)

  const ofMain = stop(first, signedBy(first, 'alice', 'stop', { sub_account: 'main' }), now)
  assert.deepEqual([isStopped(ofMain, 'main'), isStopped(ofMain, 'other')], [true, false])
  const unmoved = resumes(ofMain, 'alice', 'bob')
  assert.equal(unmoved.stops.length, 1, 'another scope')
  refused('EXPIRED', 'at', () => stop(unmoved, one, now))
  const main = signedBy(first, 'bob', 'stop', { sub_account: 'main' })
  const ofThis = { stop: statementHash(main.statement) }
  const onlyMain = resume(
    ofMain,
    main,
    ['alice', 'bob'].map((person) => signedBy(first, person, 'resume', ofThis)),
    now,
  )
  assert.deepEqual([onlyMain.stops.length, stop(onlyMain, one, now).stops.length], [0, 1])
})

test('a quorum of two groups needs both, each person once', () => {
  const approvals = [
    { group: 'treasury', k: 1 },
    { group: 'admins', k: 1 },
  ]
  const first = installed({ resume: { approvals } })
  const one = signedBy(first, 'carol', 'stop', { at: 0, expires: 604_800 })
  const stopped = stop(first, one, { now_s: 1 })
  const [open] = stopped.stops as [(typeof stopped.stops)[0]]
  assert.equal(open.at, 0)
  const resumes = (...by: string[]) =>
    resume(
      stopped,
      one,
      by.map((person) => signedBy(first, person, 'resume', { stop: open.hash })),
      now,
    )
  refused('QUORUM', 'approvals', () => resumes('alice', 'bob'))
  refused('QUORUM', 'approvals', () => resumes('dan'))
  assert.deepEqual(resumes('alice', 'dan').stops, [])
})

test('stops are bounded, and the whole workspace can still be stopped', () => {
  let governance = installed()
  const stops = Array.from({ length: 1000 }, (_, at) => ({
    hash: 'ab'.repeat(32),
    sub_account: `s${at}`,
    by: 'alice',
    at: NOW,
  }))
  governance = { ...governance, stops }
  refused('NOT_ALLOWED', 'sub_account', () =>
    stop(governance, signedBy(governance, 'bob', 'stop', { sub_account: 'one more' }), now),
  )
  const again = { sub_account: 's7', at: NOW + 1 }
  assert.equal(stop(governance, signedBy(governance, 'bob', 'stop', again), now).stops.length, 1000)
})

test('a stop survives a change, and suspended keys can still stop and veto', () => {
  const first = installed()
  const suspended = suspend(first, signedBy(first, 'alice', 'suspend'), now)
  assert.deepEqual([...suspendedKeys(suspended)], ['bob/k1'])
  const next = successorOf(first, { resume: { approvals: [{ group: 'admins', k: 1 }] } })
  refused('KEY_SUSPENDED', 'key', () =>
    proposed(suspended, proposalOf(first, next, ['alice', 'bob'])),
  )
  let governance = proposed(suspended, proposalOf(first, next, ['alice', 'carol']))
  governance = stop(governance, signedBy(first, 'bob', 'stop'), now)
  const after = advance(governance, NOW + DAY_S)
  assert.deepEqual([after.policy.document.number, isStopped(after, 'x')], [2, true])
  const reference = { next: { number: 2, hash: governance.next!.policy.hash } }
  assert.equal(veto(governance, signedBy(first, 'bob', 'veto', reference), now).next, null)
})

test('a suspension ends after seven days or with the key, and never locks the others out', () => {
  const first = installed()
  const one = signedBy(first, 'alice', 'suspend', { at: NOW, expires: NOW + WEEK_S })
  const suspended = suspend(first, one, now)
  assert.equal(suspend(suspended, one, now), suspended)
  // It ends at the same time if it is shown late, and is not shown again after its end.
  const late = suspend(first, one, { now_s: NOW + WEEK_S - 1 })
  assert.deepEqual(late.suspensions, suspended.suspensions)
  assert.equal(advance(suspended, NOW + WEEK_S - 1), suspended)
  assert.deepEqual([...suspendedKeys(advance(suspended, NOW + WEEK_S))], [])
  // Two of three must remain, and each person has one suspension at a time.
  const carol = { target: { person: 'carol', key: 'k1' } }
  refused('NOT_ALLOWED', 'by', () =>
    suspend(suspended, signedBy(first, 'alice', 'suspend', carol), now),
  )
  const alice = { target: { person: 'alice', key: 'k1' } }
  refused('NOT_ALLOWED', 'target', () =>
    suspend(suspended, signedBy(first, 'carol', 'suspend', alice), now),
  )
  const dan = { target: { person: 'dan', key: 'k1' } }
  const ofDan = suspend(first, signedBy(first, 'carol', 'suspend', dan), now)
  const without = proposed(
    ofDan,
    proposalOf(
      first,
      successorOf(first, {
        people: peopleWithout(first, 'dan'),
        groups: { ...admins, treasury: ['erin', 'frank'], compliance: ['compliance'] },
      }),
      ['alice', 'bob'],
    ),
  )
  assert.deepEqual(advance(without, NOW + DAY_S).suspensions, [])
  const kept = proposed(
    ofDan,
    proposalOf(first, successorOf(first, { stop: { group: 'treasury' } }), ['alice', 'bob']),
  )
  assert.equal(advance(kept, NOW + DAY_S).suspensions.length, 1)
})

test('a person with two keys is removed only with both, and a suspension names one of them', () => {
  const second = newKey('k2')
  const people = policyWith([]).document.people.map((person) =>
    person.id === 'carol' ? { ...person, keys: [...person.keys, second.key] } : person,
  )
  const { document } = policyWith([], { people })
  const possessions = possessionsOf(document, (person) =>
    person === 'carol' ? [keyOf('carol'), second] : [keyOf(person)],
  )
  const first = install({ document, possessions }, PLACE, { registry }, now)
  const carol = { person: 'carol', key: 'k2' }
  const suspended = suspend(first, signedBy(first, 'alice', 'suspend', { target: carol }), now)
  const next = successorOf(first, {
    people: people.map((person) =>
      person.id === 'carol' ? { ...person, keys: [keyOf('carol').key] } : person,
    ),
  })
  const pending = proposed(suspended, proposalOf(first, next, ['alice', 'bob']))
  const reference = { next: { number: 2, hash: pending.next!.policy.hash } }
  assert.equal(veto(pending, signedBy(first, 'carol', 'veto', reference, second), now).next, null)
  assert.deepEqual(advance(pending, NOW + DAY_S).suspensions, [])
})

test('a person who is not in the document can sign nothing', () => {
  const first = installed()
  for (const [kind, of] of Object.entries({ stop, veto, suspend, revoke }))
    refused('UNKNOWN_PERSON', 'by', () =>
      of(first, signedBy(first, 'stranger', kind as 'stop', {}, keyOf('dan')), now),
    )
})

test('a person revokes their own key at once and permanently', () => {
  const first = installed()
  const revoked = revoke(first, signedBy(first, 'alice', 'revoke'), now)
  assert.deepEqual([...blockedKeys(revoked)], ['alice/k1'])
  assert.deepEqual(
    [
      ...blockedKeys(
        suspend(
          revoked,
          signedBy(first, 'carol', 'suspend', { target: { person: 'dan', key: 'k1' } }),
          now,
        ),
      ),
    ].sort(),
    ['alice/k1', 'dan/k1'],
  )
  for (const kind of ['stop', 'veto', 'suspend', 'revoke'] as const) {
    const of = { stop, veto, suspend, revoke }[kind]
    refused('KEY_REVOKED', 'key', () => of(revoked, signedBy(first, 'alice', kind), now))
  }
  const without = successorOf(first, {
    people: peopleWithout(first, 'alice'),
    groups: { ...first.policy.document.groups, admins: ['bob', 'carol', 'dan'] },
  })
  refused('KEY_REVOKED', 'key', () =>
    proposed(revoked, proposalOf(first, without, ['alice', 'bob'])),
  )
  // No later document may contain it.
  const next = successorOf(first, { stop: { group: 'treasury' } })
  refused('KEY_REVOKED', 'people', () =>
    proposed(revoked, proposalOf(first, next, ['bob', 'carol'])),
  )
  assert.ok(proposed(revoked, proposalOf(first, without, ['bob', 'carol'])).next)
  const target = { target: { person: 'bob', key: 'k1' } }
  refused('NOT_ALLOWED', 'by', () => revoke(first, signedBy(first, 'alice', 'revoke', target), now))
  // A suspension must leave enough people besides those whose keys are revoked.
  refused('NOT_ALLOWED', 'target', () => suspend(revoked, signedBy(first, 'carol', 'suspend'), now))
})

test('a document that was in force before is accepted again after its approvals have expired', () => {
  const state = installed()
  const proposal = proposalOf(state, successorOf(state, { stop: { group: 'treasury' } }), [
    'alice',
    'bob',
  ])
  const now_s = NOW + 400 * DAY_S
  assert.throws(() => proposed(state, proposal, now_s), { code: 'EXPIRED' })
  const again = (from: Governance, given = proposal): Governance =>
    advance(reinstate(from, given, { registry }, { now_s }), now_s)
  const [alice, bob] = proposal.approvals as [SignedStatement, SignedStatement]
  assert.equal(approvedAt([alice, bob]), NOW)
  assert.equal(again(state).policy.document.number, 2)
  // Its signatures, quorum and place in the chain are verified.
  assert.throws(() => again(state, { ...proposal, approvals: [alice] }), { code: 'QUORUM' })
  assert.throws(() => again(state, { ...proposal, approvals: [] }), { code: 'QUORUM' })
  const forged = { ...bob, signature: alice.signature }
  assert.throws(() => again(state, { ...proposal, approvals: [alice, forged] }), {
    code: 'SIGNATURE',
  })
  assert.throws(() => again(again(state)), { code: 'OTHER_POLICY' })
  const added = newKey('k2')
  const people = state.policy.document.people.map((person) =>
    person.id === 'dan' ? { ...person, keys: [...person.keys, added.key] } : person,
  )
  const withNew = proposalOf(state, successorOf(state, { people }), ['alice', 'bob'])
  assert.throws(() => again(state, withNew), { code: 'POSSESSION' })
  // Approvals that were never valid at the same time are refused.
  const apart = proposalOf(state, proposal.document, ['bob'], {
    at: NOW + DAY_S,
    acts_at: NOW + DAY_S,
  })
  const [later] = apart.approvals as [SignedStatement]
  assert.throws(() => again(state, { ...proposal, approvals: [alice, later] }), PolicyError)
  // A revocation after the approvals does not count against it, and remains.
  const target = { person: 'alice', key: 'k1' }
  const present = { now_s: NOW + 60 }
  const times = { at: NOW, expires: NOW + 3600, target }
  const revoked = revoke(state, signedBy(state, 'alice', 'revoke', times), present)
  const restored = again(revoked)
  assert.deepEqual([restored.policy.document.number, restored.revoked.size], [2, 1])
})
