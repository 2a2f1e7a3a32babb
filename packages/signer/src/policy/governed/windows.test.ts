import assert from 'node:assert/strict'
import test from 'node:test'
import { windowChargesOf } from '../../store/charges.ts'
import { Spending, windowName, type ChargedWindow } from '../../store/spending.ts'
import { NO_OTHERS } from '../budget.ts'
import type { VerdictPolicy } from '../order.ts'
import { chargedBy, recordedPolicy, uncoveredCharges, usesOf } from './windows.ts'

const NOW = 1_800_000_000_000
const KEY = '["a","day","workspace"]'
const btc = (units: bigint) => new Map([['BTC', units]])
const policyOf = (units: bigint, key = KEY, hours = 24): VerdictPolicy => ({
  number: 1,
  hash: 'ab'.repeat(32),
  via: 'a',
  charges: [{ key, hours, amounts: btc(units) }],
})
const charged = (step: string, age: number, units: bigint, workspace = 'w'): ChargedWindow => ({
  window: windowName(workspace, KEY),
  step,
  transaction: `of ${step}`,
  at: NOW - age,
  amounts: btc(units),
})
const spendingOf = (...windows: ChargedWindow[]): Spending => {
  const own = new Spending()
  windows.forEach((each, at) => {
    own.add({ height: at + 1, charges: [], windows: [each] })
  })
  return own
}

test('the record, the partner, sessions in progress and a run count together, and each step once', () => {
  const records = {
    own: spendingOf(charged('both', 70_000, 5n), charged('foreign', 0, 9n, 'another')),
    other: {
      ...NO_OTHERS,
      recorded: spendingOf(charged('both', 1999, 3n), charged('judged', 0, 2n)),
      inProgress: (name: string) =>
        [charged('theirs', -5000, 4n)].filter(({ window }) => window === name),
      judged: [{ step: 'judged', transaction: 'of judged' }],
    },
    ahead: [
      { step: 'run', policy: policyOf(7n) },
      { step: 'elsewhere', policy: policyOf(7n, '["b"]') },
    ],
    workspace: 'w',
    clockMs: NOW,
  }
  assert.deepEqual(usesOf(records, { key: KEY, hours: 24 }), [
    { step: 'both', age_s: 1, amounts: btc(5n) },
    { step: 'theirs', age_s: 0, amounts: btc(4n) },
    { step: 'run', age_s: 0, amounts: btc(7n) },
  ])
  assert.deepEqual(usesOf(records, { key: '["c"]', hours: 24 }), [])
})

test('a charge counts for the hours of the window that is measured, and two minutes more', () => {
  const cutoff = (24 * 3600 + 120) * 1000
  const own = spendingOf(charged('a', cutoff + 999, 1n), charged('b', cutoff + 1000, 1n))
  const stepsIn = (hours: number): string[] =>
    usesOf(
      { own, other: NO_OTHERS, ahead: [], workspace: 'w', clockMs: NOW },
      { key: KEY, hours },
    ).map(({ step }) => step)
  assert.deepEqual(stepsIn(1), [])
  assert.deepEqual(stepsIn(24), ['a'])
  // A shorter question does not remove what a longer one counts.
  assert.deepEqual(stepsIn(168), ['a', 'b'])
})

test('a recorded step covers a charge of at most its amounts within 30 seconds', () => {
  const own = spendingOf(charged('young', 30_000, 5n), charged('old', 30_001, 5n))
  const uncovered = (step: string, policy: VerdictPolicy | null): number =>
    uncoveredCharges({ own, workspace: 'w', clockMs: NOW }, { step, policy }).length
  assert.equal(uncovered('young', policyOf(5n)), 0)
  assert.equal(uncovered('young', policyOf(6n)), 1)
  assert.equal(uncovered('young', policyOf(5n, '["b"]')), 1)
  assert.equal(uncovered('old', policyOf(5n)), 1)
  assert.equal(uncovered('new', policyOf(0n)), 1)
  assert.equal(uncovered('new', null), 0)
})

test('charges are recorded as text and read back', () => {
  const policy = policyOf(5n)
  const entry = chargedBy(
    { step: 's', unsignedHash: 'h', order: { workspace: 'w' } },
    policy,
    policy.charges,
  )
  assert.deepEqual(entry, {
    step: 's',
    unsigned_hash: 'h',
    workspace: 'w',
    policy: { ...policy, charges: [{ key: KEY, hours: 24, amounts: { BTC: '5' } }] },
  })
  assert.deepEqual(entry.policy, recordedPolicy(policy))
  assert.deepEqual(windowChargesOf(entry, NOW), [
    { window: windowName('w', KEY), step: 's', transaction: 'h', at: NOW, amounts: btc(5n) },
  ])
})
