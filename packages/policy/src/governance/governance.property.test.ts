// Random orders of statements, by a thief of one admin's key and by three honest nodes.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as fc from '../../../../testing/property.ts'
import { NOW } from '../../testing/documents.ts'
import { DAY_S, installed, successorOf } from '../../testing/governance.ts'
import { registry } from '../../testing/registry.ts'
import { statementsOf } from '../../testing/statements.ts'
import { confirm, propose, resume, revoke, stop, suspend, veto } from '../../testing/transitions.ts'
import { lint } from '../analysis/lint.ts'
import type { PolicyDocument } from '../document/shape.ts'
import { documentHash } from '../document/read.ts'
import { PolicyError } from '../error.ts'
import { statementHash, type Statement } from '../statements/shapes.ts'
import { assertStatement, type SignedStatement } from '../statements/verify.ts'
import { advance } from './documents.ts'
import { isStopped, type Governance, type Verify } from './governance.ts'

/** Everything is checked except the signature, of which every statement here has a valid one. */
const verify: Verify = (policy, { statement }, context) => {
  assertStatement(policy, statement, context)
  return statementHash(statement)
}
const FIRST = installed()

interface Successor {
  readonly document: PolicyDocument
  readonly hash: string
}
/**
 * Returns a successor of the first document that `lint` accepts. The check of the keys' points is
 * slow, so each document is linted once here, and not again by each `propose`.
 */
function linted(fields: Partial<Record<keyof PolicyDocument, unknown>>): Successor {
  const document = successorOf(FIRST, fields)
  const findings = lint(document, {
    registry,
    previous: FIRST.policy.document,
    enrolled: null,
    panelOrigins: null,
  })
  assert.deepEqual(
    findings.filter(({ severity }) => severity === 'error'),
    [],
  )
  return { document, hash: documentHash(document) }
}
const { people, groups, change: changeRule } = FIRST.policy.document
const SHORTENED = linted({ change: { ...changeRule, delay_s: 3600 } })
const WITHOUT_CAROL = linted({
  people: people.filter(({ id }) => id !== 'carol'),
  groups: { ...groups, admins: ['alice', 'bob', 'dan'] },
})
const REGROUPED = ['treasury', 'compliance'].map((group) => linted({ stop: { group } }))

const say = (
  { policy }: Governance,
  by: string,
  kind: Statement['kind'],
  fields: object,
): SignedStatement => ({
  statement: { ...statementsOf(policy)[kind], by, ...fields } as Statement,
  signature: '',
})

/** Returns the state after an act, or the same state if the act was refused. */
function after(governance: Governance, act: (state: Governance) => Governance): Governance {
  try {
    return act(governance)
  } catch (error) {
    if (error instanceof PolicyError) return governance
    throw error
  }
}

function change(
  state: Governance,
  { document, hash }: Successor,
  by: readonly string[],
  [now_s, actsAt]: readonly [now: number, actsAt: number],
): Governance {
  const next = { number: document.number, hash }
  const approvals = by.map((person) =>
    say(state, person, 'change', { at: now_s, expires: now_s + 60, acts_at: actsAt, next }),
  )
  const proposal = { document, possessions: [], approvals }
  return propose(state, proposal, { registry }, { now_s, verify, findFaults: () => [] })
}

/** What the holder of one admin's key can try. */
const theft = fc.record({
  kind: fc.constantFrom('stop', 'suspend', 'veto', 'change', 'resume', 'revoke'),
  target: fc.constantFrom('alice', 'bob', 'carol', 'dan'),
  pause: fc.integer({ min: 0, max: 3 * DAY_S }),
  twice: fc.boolean(),
})

test('property: a thief of one admin’s key changes nothing, and the other admins can remove the key', () => {
  fc.assert(
    fc.property(fc.array(theft, { maxLength: 12 }), (thefts) => {
      let state = FIRST
      let now = NOW
      const stops = new Map<string, SignedStatement>()
      for (const { kind, target, pause, twice } of thefts) {
        now += pause
        state = advance(state, now)
        const times = { at: now, expires: now + 60 }
        const by = (of: Statement['kind'], fields: object = {}) =>
          say(state, 'carol', of, { ...times, ...fields })
        const present = { now_s: now, verify }
        const named = { person: target, key: 'k1' }
        const stopped = stops.get(state.stops[0]?.hash ?? '') ?? by('stop')
        const hash = statementHash(stopped.statement)
        const acts = {
          stop: (from: Governance) => {
            const signed = by('stop')
            stops.set(statementHash(signed.statement), signed)
            return stop(from, signed, present)
          },
          suspend: (from: Governance) => suspend(from, by('suspend', { target: named }), present),
          veto: (from: Governance) =>
            veto(
              from,
              by('veto', { next: { number: 2, hash: from.next?.policy.hash ?? hash } }),
              present,
            ),
          change: (from: Governance) =>
            change(from, SHORTENED, twice ? ['carol', 'carol'] : ['carol'], [now, now]),
          resume: (from: Governance) => {
            const approvals = Array.from({ length: twice ? 2 : 1 }, () =>
              by('resume', { stop: hash }),
            )
            return resume(from, stopped, approvals, present)
          },
          revoke: (from: Governance) =>
            revoke(from, by('revoke', { target: { person: 'carol', key: 'k1' } }), present),
        }
        const wasStopped = state.stops.length
        state = after(state, acts[kind])
        assert.ok(state.stops.length >= wasStopped, 'one person ended a stop')
        assert.deepEqual([state.policy.document.number, state.next], [1, null])
      }
      // A suspension by the thief ends by itself. Then the two others remove the key, against the
      // thief's veto, and end the stop.
      now += 7 * DAY_S
      state = advance(state, now)
      state = change(state, WITHOUT_CAROL, ['alice', 'bob'], [now, now + DAY_S])
      const reference = { number: 2, hash: WITHOUT_CAROL.hash }
      const times = { at: now, expires: now + 60 }
      state = after(state, (from) =>
        veto(from, say(from, 'carol', 'veto', { ...times, next: reference }), {
          now_s: now,
          verify,
        }),
      )
      for (const node of [1, 2]) state = confirm(state, reference.hash, node)
      now += DAY_S
      state = advance(state, now)
      assert.equal(state.policy.document.number, 2)
      for (const { hash } of state.stops) {
        const approvals = ['alice', 'bob'].map((person) =>
          say(state, person, 'resume', { at: now, expires: now + 60, stop: hash }),
        )
        // The document that was in force at the stop let its signer stop.
        const earlier = [FIRST.policy]
        state = resume(state, stops.get(hash)!, approvals, { now_s: now, verify }, earlier)
      }
      assert.equal(isStopped(state, 'main'), false)
    }),
    { numRuns: 400 },
  )
})

interface Model {
  governance: Governance
  /** Time at which each document was first seen here, by hash. */
  seen: Map<string, number>
}

/** What a platform does with the proposals and vetoes of the admins, in any order, at any node. */
const delivery = fc.record({
  node: fc.integer({ min: 0, max: 2 }),
  what: fc.integer({ min: 0, max: 3 }),
  isVeto: fc.boolean(),
  withWitnesses: fc.boolean(),
  pause: fc.constantFrom(0, 60, 290, 400, 3600, DAY_S / 2, DAY_S),
})

test('property: no order of deliveries shortens a delay, revives a veto or skips an approval', () => {
  fc.assert(
    fc.property(fc.array(delivery, { maxLength: 16 }), (deliveries) => {
      let now = NOW
      const nodes = Array.from({ length: 3 }, (): Model => ({ governance: FIRST, seen: new Map() }))
      const vetoed = nodes.map(() => new Set<string>())
      const step = (): void => {
        for (const [at, node] of nodes.entries()) {
          const before = node.governance
          node.governance = advance(before, now)
          if (node.governance.policy === before.policy) continue
          const { hash, document } = node.governance.policy
          assert.equal(document.previous, before.policy.hash)
          assert.equal(vetoed[at]?.has(hash), false, 'a vetoed change is in force')
          const delay = before.policy.document.change.delay_s - 300
          const others = nodes.filter((each) => each !== node).map(({ seen }) => seen.get(hash))
          const isInTime = (seen: number | undefined) => seen !== undefined && now - seen >= delay
          assert.ok(isInTime(node.seen.get(hash)) || others.every(isInTime), 'too early')
        }
      }
      for (const { node: at, what, isVeto, withWitnesses, pause } of deliveries) {
        now += pause
        step()
        const node = nodes[at] as Model
        const { document, hash } = REGROUPED[what % 2] as Successor
        if (isVeto) {
          const fields = { at: now, expires: now + 60, next: { number: 2, hash } }
          const signed = say(FIRST, 'alice', 'veto', fields)
          const before = node.governance
          node.governance = after(before, (from) => veto(from, signed, { now_s: now, verify }))
          if (node.governance !== before) vetoed[at]?.add(hash)
          continue
        }
        const others = nodes.filter((each) => each !== node).map(({ seen }) => seen.get(hash))
        const [one, two] = others
        const witnesses =
          withWitnesses && one !== undefined && two !== undefined ? ([one, two] as const) : null
        const approvals = (what < 2 ? ['alice', 'bob'] : ['bob']).map((person) =>
          say(FIRST, person, 'change', {
            at: NOW,
            expires: NOW + 2 * DAY_S,
            acts_at: NOW + DAY_S,
            next: { number: 2, hash },
          }),
        )
        const before = node.governance
        node.governance = after(before, (from) =>
          propose(
            from,
            { document, possessions: [], approvals },
            { registry },
            { now_s: now, verify, findFaults: () => [] },
            witnesses,
          ),
        )
        if (node.governance === before) continue
        assert.ok(what < 2, 'one approval was enough')
        node.seen.set(hash, node.seen.get(hash) ?? now)
      }
      now += 40 * DAY_S
      step()
    }),
    { numRuns: 400 },
  )
})
