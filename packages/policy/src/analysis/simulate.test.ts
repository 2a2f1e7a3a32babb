// Replay of past acts under another document, with windows that fill.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { actWith, allow, NOW, policyWith } from '../../testing/documents.ts'
import type { Act } from '../act.ts'
import { simulate } from './simulate.ts'

const past = (id: string, at_s: number, fields: Partial<Act> = {}) => ({
  act: actWith({ id, step: id, issued_at: at_s - 5, ...fields }),
  at_s,
})
const HOUR = 3600
const day = { name: 'day', hours: 24, per: 'sub_account', max: { BTC: '0.25' } }

test('fills windows in the order of time, and steps leave them', () => {
  const acts = [
    past('c', NOW + 2 * HOUR),
    past('a', NOW),
    past('b', NOW + HOUR),
    past('d', NOW + 25 * HOUR),
  ]
  // Each moves 0.10001 BTC with its fee. The third does not fit; the first has left before the last.
  assert.deepEqual(simulate(policyWith([allow('pay', { windows: [day] })]), null, acts), {
    same: 3,
    newly_denied: ['c'],
    newly_approval: [],
    newly_allowed: [],
    unused_rules: [],
  })
})

test('a denied act is not charged, and one that needs approvals is', () => {
  const policy = policyWith([
    allow('big', { amount: { min: { BTC: '0.2' } }, approvals: [{ group: 'treasury', k: 1 }] }),
    allow('pay', { amount: { max: { BTC: '0.1' } } }),
    {
      id: 'cap',
      effect: 'limit',
      match: { assets: ['BTC'] },
      windows: [day],
      above: 'deny',
    },
  ])
  const result = simulate(policy, null, [
    past('denied', NOW, { amount: 15_000_000n }),
    past('big', NOW + 1, { amount: 20_000_000n }),
    past('full', NOW + 2),
    past('small', NOW + 3, { amount: 4_000_000n }),
  ])
  assert.deepEqual(result, {
    same: 1,
    newly_denied: ['denied', 'full'],
    newly_approval: ['big'],
    newly_allowed: [],
    unused_rules: [],
  })
})

test('compares with the document in force, and lists rules without a part in any result', () => {
  const current = policyWith([allow('a', { amount: { max: { BTC: '0.05' } } })])
  const next = policyWith([
    allow('a', { approvals: [{ group: 'treasury', k: 1 }], amount: { max: { BTC: '0.05' } } }),
    allow('b', { amount: { min: { BTC: '0.06' } } }),
    allow('never', { match: { action: ['stake'], assets: 'any' } }),
    { id: 'no', effect: 'deny', match: { sub_accounts: ['closed'] } },
    { id: 'unused-deny', effect: 'deny', match: { sub_accounts: ['other'] } },
    {
      id: 'r',
      effect: 'require',
      match: { assets: ['XRP'] },
      approvals: [{ group: 'admins', k: 1 }],
    },
  ])
  const small = { amount: 5_000_000n }
  assert.deepEqual(
    simulate(next, current, [
      past('1', NOW, small),
      past('2', NOW + 1),
      past('3', NOW + 2, { ...small, sub_account: 'closed' }),
      past('4', NOW + 3, { sub_account: 'closed' }),
    ]),
    {
      same: 1,
      newly_denied: ['3'],
      newly_approval: ['1'],
      newly_allowed: ['2'],
      unused_rules: ['never', 'unused-deny', 'r'],
    },
  )
})

test('counts a step that occurs twice once', () => {
  const policy = policyWith([allow('pay', { windows: [{ ...day, max: { BTC: '0.15' } }] })])
  const again = { ...past('b', NOW + 1), act: actWith({ id: 'b', step: 'a' }) }
  assert.equal(simulate(policy, null, [past('a', NOW), again]).same, 2)
  assert.deepEqual(simulate(policy, null, [past('a', NOW), past('b', NOW + 1)]).newly_denied, ['b'])
})
