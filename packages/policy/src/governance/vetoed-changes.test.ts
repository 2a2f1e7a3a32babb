// Thieves of a quorum propose one variant of a change after the other, and one person ends each of them.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as fc from '../../../../testing/property.ts'
import { NOW } from '../../testing/documents.ts'
import {
  DAY_S,
  installed,
  proposalOf,
  proposed,
  signedBy,
  successorOf,
} from '../../testing/governance.ts'
import { confirm, propose, stop, suspend, veto } from '../../testing/transitions.ts'
import { registry } from '../../testing/registry.ts'
import { statementsOf } from '../../testing/statements.ts'
import { PolicyError } from '../error.ts'
import { documentHash } from '../document/read.ts'
import type { PolicyDocument } from '../document/shape.ts'
import { advance } from './documents.ts'
import { statementHash, type Statement } from '../statements/shapes.ts'
import { assertStatement, type SignedStatement } from '../statements/verify.ts'
import type { Governance, Verify } from './governance.ts'

const first = installed({
  groups: {
    admins: ['alice', 'bob', 'carol', 'dan'],
    treasury: ['erin', 'frank'],
    owners: ['erin', 'frank'],
    compliance: ['compliance'],
  },
  change: { approvals: [{ group: 'admins', k: 2 }], delay_s: DAY_S, veto: 'owners' },
})
const variant = (number: number): PolicyDocument =>
  successorOf(first, {
    rules: [
      { id: `rule-${number}`, effect: 'allow', match: { action: ['transfer'], assets: 'any' } },
    ],
  })
const { people } = first.policy.document
const without = (...removed: string[]): PolicyDocument =>
  successorOf(first, {
    people: people.filter(({ id }) => !removed.includes(id)),
    groups: {
      admins: ['alice', 'bob', 'carol', 'dan'],
      treasury: ['alice', 'dan'],
      owners: ['erin', 'frank', 'alice'].filter((id) => !removed.includes(id)),
      compliance: ['compliance'],
    },
  })

const change = (
  of: Governance,
  document: PolicyDocument,
  now_s: number,
  by: readonly string[] = ['alice', 'bob'],
): Governance =>
  propose(
    of,
    proposalOf(first, document, by, { at: now_s }),
    { registry },
    {
      now_s,
      findFaults: () => [],
    },
  )

function vetoedBy(of: Governance, by: string, now_s: number): Governance {
  const next = { number: 2, hash: of.next!.policy.hash }
  const times = { at: now_s, expires: now_s + 60 }
  return veto(of, signedBy(first, by, 'veto', { ...times, next }), { now_s })
}

/** Why a change is refused; null if it is pending. */
function refusal(...args: Parameters<typeof change>): string | null {
  try {
    change(...args)
    return null
  } catch (error) {
    assert.ok(error instanceof PolicyError)
    return `${error.code} ${error.message}`
  }
}

/** Proposes and vetoes a number of variants within a few seconds. */
function vetoedTimes(times: number, by?: readonly string[]): Governance {
  let state = first
  for (let at = 0; at < times; at++)
    state = vetoedBy(change(state, variant(at), NOW + at, by), 'erin', NOW + at)
  return state
}

test('people whose changes were vetoed three times wait for the delay, and then for growing times', () => {
  let state = vetoedTimes(3)
  let last = NOW + 2
  for (const wait of [DAY_S, 2 * DAY_S, 4 * DAY_S, 8 * DAY_S, 16 * DAY_S, 30 * DAY_S, 30 * DAY_S]) {
    const document = variant(last)
    const from = new Date((last + wait) * 1000).toISOString()
    const reason = refusal(state, document, last + wait - 1)!
    assert.match(reason, /^NOT_YET approvals: \d+ changes of this document that alice has approved/)
    assert.ok(reason.endsWith(`were vetoed; the next one is accepted from ${from} on`), reason)
    last += wait
    state = vetoedBy(change(state, document, last), 'erin', last)
    assert.equal(state.next, null)
  }
})

test('the change of other people is accepted immediately, and one of the same people counts', () => {
  const state = vetoedTimes(3)
  assert.equal(refusal(state, variant(9), NOW + 3, ['carol', 'dan']), null)
  assert.match(refusal(state, variant(9), NOW + 3, ['bob', 'carol'])!, /^NOT_YET .*that bob has/)
})

test('both other nodes prove a change that they have accepted before', () => {
  const state = vetoedTimes(3)
  const proposal = proposalOf(first, variant(9), ['alice', 'bob'])
  assert.equal(proposed(state, proposal, NOW + 3, [NOW, NOW]).next?.policy.document.number, 2)
  assert.throws(() => proposed(state, proposal, NOW + 3), { code: 'NOT_YET' })
})

test('one person who vetoes everything cannot delay the change that removes them', () => {
  const state = vetoedTimes(3)
  const held = vetoedBy(change(state, without('erin'), NOW + 3), 'erin', NOW + 3)
  assert.equal(held.next?.vetoedBy, 'erin')
  const confirmed = confirm(confirm(held, held.next!.policy.hash, 1), held.next!.policy.hash, 2)
  assert.equal(advance(confirmed, NOW + 3 + DAY_S).policy.document.number, 2)
  assert.match(refusal(state, without('frank'), NOW + 3)!, /^NOT_YET/)
})

test('the count begins again with the next document', () => {
  const state = change(vetoedTimes(3), variant(9), NOW + 3, ['carol', 'dan'])
  assert.deepEqual(advance(state, NOW + 3 + DAY_S).vetoedChanges, [])
})

test('people who wait can still stop signing and suspend keys', () => {
  const state = vetoedTimes(3)
  const stopped = stop(state, signedBy(first, 'alice', 'stop'), { now_s: NOW })
  assert.equal(stopped.stops.length, 1)
  const target = { person: 'dan', key: 'k1' }
  const suspended = suspend(state, signedBy(first, 'alice', 'suspend', { target }), { now_s: NOW })
  assert.equal(suspended.suspensions.length, 1)
})

/** Everything is checked except the signatures, of which every statement of the property has valid ones. */
const verify: Verify = (policy, { statement }, context) => {
  assertStatement(policy, statement, context)
  return statementHash(statement)
}
const say = (by: string, kind: 'change' | 'veto', fields: object): SignedStatement => ({
  statement: { ...statementsOf(first.policy)[kind], by, ...fields } as Statement,
  signature: '',
})

/** Returns the state after a proposal, or null if it is refused. */
function attempted(of: Governance, document: PolicyDocument, now_s: number, by: readonly string[]) {
  const next = { number: 2, hash: documentHash(document) }
  const times = { at: now_s, expires: now_s + 60, acts_at: now_s + DAY_S }
  const approvals = by.map((person) => say(person, 'change', { ...times, next }))
  try {
    const present = { now_s, verify, findFaults: () => [] }
    return propose(of, { document, possessions: [], approvals }, { registry }, present)
  } catch (error) {
    if (error instanceof PolicyError) return null
    throw error
  }
}

const attempt = fc.record({
  by: fc.constantFrom(['alice', 'bob'], ['alice', 'carol'], ['bob', 'carol'], ['carol', 'dan']),
  removed: fc.constantFrom([], [], ['erin'], ['frank']),
  pause: fc.constantFrom(1, 1, 1, 60, 3600, DAY_S, 3 * DAY_S),
})

test('property: thieves of all proposing keys never act, and need few vetoes of each person', () => {
  fc.assert(
    fc.property(fc.array(attempt, { minLength: 40, maxLength: 120 }), (attempts) => {
      let state = first
      let now = NOW
      const quick = new Map([
        ['erin', 0],
        ['frank', 0],
      ])
      for (const [at, { by, removed, pause }] of attempts.entries()) {
        now += pause
        state = advance(state, now)
        assert.equal(state.policy.document.number, 1, 'a variant came into force')
        const document = removed.length > 0 ? without(...removed) : variant(at)
        const pending = attempted(state, document, now, by)
        if (pending === null) continue
        // The person whom the change does not remove ends it.
        const person = removed[0] === 'erin' ? 'frank' : 'erin'
        const next = { number: 2, hash: pending.next!.policy.hash }
        const signed = say(person, 'veto', { at: now, expires: now + 60, next })
        state = veto(pending, signed, { now_s: now, verify })
        assert.equal(state.next, null, 'a veto was refused')
        quick.set(person, quick.get(person)! + 1)
      }
      const days = (now - NOW) / DAY_S
      // Two people sign each change, so four thieves have two changes for each one that counts.
      for (const count of quick.values())
        assert.ok(count <= 6 + 2 * days, `${count} in ${days} days`)
    }),
    { numRuns: 30 },
  )
})
