// A judgement is used again only if nothing that it depends on has changed: whatever happens between
// two judgements of an act, the second one is that of a judge that remembers nothing.
import assert from 'node:assert/strict'
import test from 'node:test'
import {
  approvalStatement,
  firstInForce,
  type Act,
  type CarriedApproval,
  type Governance,
} from '@custody/policy'
import * as fc from '../../../../../testing/property.ts'
import { actWith, allow, keyOf, NOW, policyWith } from '../../../../policy/testing/documents.ts'
import { signWith } from '../../../../policy/testing/statements.ts'
import { Refusal } from '../../errors.ts'
import type { Store } from '../../store/index.ts'
import { Spending, windowName } from '../../store/spending.ts'
import { NO_OTHERS, type OtherCharges } from '../budget.ts'
import type { Verdict } from '../order.ts'
import { PolicyJudge } from './policy-judge.ts'

const RULES = [
  allow('large', {
    windows: [{ name: 'day', hours: 24, per: 'sub_account', max: { BTC: '1' } }],
    approvals: [{ group: 'treasury', k: 2 }],
  }),
]
const KEY = '["large","day","sub_account","main"]'
const DOCUMENTS = [policyWith(RULES), policyWith(RULES, { number: 2, previous: 'ab'.repeat(32) })]
const ACTS = [
  actWith(),
  actWith({ fee: { max: 2_000n, limit: 50_000n } }),
  actWith({ step: 'step-2' }),
]
const PEOPLE = ['dan', 'erin', 'frank']

const approvedBy = (document: number, act: Act, by: string): CarriedApproval => {
  const decision = { decision: 'approve' as const, by, key: 'k1', at: NOW - 5, expires: NOW + 60 }
  const statement = approvalStatement(DOCUMENTS[document]!, act, decision)
  return { id: act.id, ...decision, signature: signWith(keyOf(by), statement).signature }
}
const APPROVALS = DOCUMENTS.map((_, document) =>
  PEOPLE.map((by) => approvedBy(document, ACTS[0]!, by)),
)

/** What one node has, with a judge that remembers and others that do not. */
class Node {
  clockMs = NOW * 1000
  governance: Governance
  spending = new Spending()
  partner = new Spending()
  other!: OtherCharges
  act = ACTS[0]!
  approvals = APPROVALS[0]!.slice(0, 2)
  #document = 0
  #height = 0
  readonly #parts: ConstructorParameters<typeof PolicyJudge>[0]
  readonly judge: PolicyJudge

  constructor() {
    this.governance = firstInForce(DOCUMENTS[0]!)
    this.tell()
    this.#parts = {
      store: {
        state: { spending: this.spending, subAccountNames: new Map() },
        clock: () => this.clockMs,
        seconds: () => Math.floor(this.clockMs / 1000),
      } as unknown as Store,
      policies: { current: () => this.governance },
      exchange: { assertCurrent: () => {} },
      known: () => [],
    } as unknown as ConstructorParameters<typeof PolicyJudge>[0]
    this.judge = new PolicyJudge(this.#parts)
  }

  /** The partner tells what it has. */
  tell(): void {
    this.other = { ...NO_OTHERS, recorded: this.partner }
  }

  charge(on: Spending, units: bigint): void {
    this.#height++
    const windows = [
      {
        window: windowName('acme', KEY),
        step: `other ${this.#height}`,
        transaction: `other ${this.#height}`,
        at: this.clockMs,
        amounts: new Map([['BTC', units]]),
      },
    ]
    on.add({ height: this.#height, charges: [], windows })
  }

  change(fields: Partial<Governance>): void {
    this.governance = { ...this.governance, ...fields }
  }

  nextDocument(): void {
    this.#document = 1 - this.#document
    this.change({ policy: DOCUMENTS[this.#document]! })
  }

  approveAgain(): void {
    this.approvals = APPROVALS[this.#document]!.slice(0, 2)
  }

  /** Judges the act as before a signature. @returns the rule, or the code of the refusal */
  outcome(isFresh: boolean): string {
    const judge = isFresh ? new PolicyJudge(this.#parts) : this.judge
    const verdict = {
      order: { workspace: 'acme', policy: { approvals: this.approvals } },
      step: this.act.step,
      serves: [1],
      isAct: true,
      ordered: null,
      acts: () => [this.act],
      policy: null,
    } as unknown as Verdict
    try {
      const [governed] = judge.govern([verdict], this.other)
      judge.assertNotStopped(governed!)
      judge.assertPasses(governed!, false, { other: this.other })
      return governed!.policy!.via
    } catch (error) {
      if (!(error instanceof Refusal)) throw error
      return error.code
    }
  }
}

const EVENTS: Readonly<Record<string, (node: Node) => void>> = {
  nothing: () => {},
  later: (node) => (node.clockMs += 400),
  'approvals expire': (node) => (node.clockMs += 40_000),
  'clock is set back': (node) => (node.clockMs -= 25 * 3_600_000),
  day: (node) => (node.clockMs += 25 * 3_600_000),
  'back to the start': (node) => (node.clockMs = NOW * 1000),
  'own record': (node) => node.charge(node.spending, 40_000_000n),
  'record of the partner': (node) => node.charge(node.partner, 40_000_000n),
  'partner tells': (node) => {
    node.tell()
  },
  'partner is leading another session': (node) => {
    const charge = { step: 'led', transaction: 'led', at: node.clockMs, window: '' }
    const amounts = new Map([['BTC', 95_000_000n]])
    node.other = {
      ...NO_OTHERS,
      recorded: node.partner,
      inProgress: (window) => [{ ...charge, window, amounts }],
    }
  },
  stop: (node) => {
    node.change({ stops: [{ hash: '', sub_account: null, by: 'alice', at: NOW }] })
  },
  resume: (node) => {
    node.change({ stops: [] })
  },
  suspend: (node) => {
    const target = { person: 'dan', key: 'k1' }
    node.change({ suspensions: [{ hash: '', by: 'alice', target, ends_at_s: NOW + 1e6 }] })
  },
  'end of the suspension': (node) => {
    node.change({ suspensions: [] })
  },
  revoke: (node) => {
    node.change({ revoked: new Set([keyOf('erin').key.spki]) })
  },
  'not revoked': (node) => {
    node.change({ revoked: new Set() })
  },
  'new document': (node) => {
    node.nextDocument()
  },
  'new approvals': (node) => {
    node.approveAgain()
  },
  'one approval': (node) => (node.approvals = node.approvals.slice(0, 1)),
  'forged approval': (node) => {
    node.approvals = node.approvals.map((each) => ({ ...each, expires: each.expires + 1 }))
  },
  'another fee': (node) => (node.act = ACTS[1]!),
  'another step': (node) => (node.act = ACTS[2]!),
  'larger amount': (node) => (node.act = { ...node.act, amount: node.act.amount + 1n }),
  'first act': (node) => (node.act = ACTS[0]!),
}

/** A forged signature is verified twice, which takes long. */
const FAST_EVENTS = Object.keys(EVENTS).filter((name) => name !== 'forged approval')

for (const [name, code] of [
  ['approvals expire', 'POLICY_APPROVAL'],
  ['one approval', 'POLICY_APPROVAL'],
  ['forged approval', 'POLICY_APPROVAL'],
  ['suspend', 'POLICY_APPROVAL'],
  ['revoke', 'POLICY_APPROVAL'],
  ['new document', 'POLICY_APPROVAL'],
  ['larger amount', 'POLICY_APPROVAL'],
  ['stop', 'POLICY_STOPPED'],
  ['partner is leading another session', 'POLICY_WINDOW'],
] as const)
  test(`an act that was allowed is refused afterwards: ${name}`, () => {
    const node = new Node()
    assert.equal(node.outcome(false), 'large')
    assert.equal(node.outcome(false), 'large')
    EVENTS[name]!(node)
    // Approvals end one minute after the start.
    if (name === 'approvals expire') EVENTS[name]!(node)
    assert.equal(node.outcome(false), code)
  })

for (const on of ['spending', 'partner'] as const)
  test(`an act that was allowed is refused when the window is full on the record: ${on}`, () => {
    const node = new Node()
    assert.equal(node.outcome(false), 'large')
    node.charge(node[on], 90_000_000n)
    assert.equal(node.outcome(false), 'POLICY_WINDOW')
  })

test('an act that fits exactly is refused with a higher fee', () => {
  const node = new Node()
  node.charge(node.spending, 89_999_000n)
  assert.equal(node.outcome(false), 'large')
  EVENTS['another fee']!(node)
  assert.equal(node.outcome(false), 'POLICY_WINDOW')
})

test('a charge that has left the window counts again if the clock is set back by a millisecond', () => {
  const node = new Node()
  const now = node.clockMs + 500
  node.clockMs = now - (24 * 3600 + 121) * 1000
  node.charge(node.partner, 95_000_000n)
  node.clockMs = now
  assert.equal(node.outcome(false), 'large')
  node.clockMs--
  assert.equal(node.outcome(false), 'POLICY_WINDOW')
})

test('whatever happens, the result is that of a judge that remembers nothing', () => {
  const seen = new Map<string, number>()
  fc.assert(
    fc.property(
      fc.array(fc.constantFrom(...FAST_EVENTS), { minLength: 5, maxLength: 25 }),
      (events) => {
        const node = new Node()
        for (const event of events) {
          EVENTS[event]!(node)
          const outcome = node.outcome(false)
          assert.equal(outcome, node.outcome(true), events.join(', '))
          seen.set(outcome, (seen.get(outcome) ?? 0) + 1)
        }
      },
    ),
    { numRuns: 100 },
  )
  for (const outcome of ['large', 'POLICY_APPROVAL', 'POLICY_STOPPED', 'POLICY_WINDOW'])
    assert.ok((seen.get(outcome) ?? 0) > 10, JSON.stringify([...seen]))
})
