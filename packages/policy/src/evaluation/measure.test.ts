// Windows and limits in an evaluation: what is charged, and what a full window does.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { actWith, allow, contextWith, NOW, policyWith } from '../../testing/documents.ts'
import { PolicyError } from '../error.ts'
import { evaluate } from './evaluate.ts'
import { chargesOf } from './prepare.ts'
import type { Charge, Use } from './windows.ts'

/** Returns a context in which all sums contain the uses. */
const used = (uses: readonly Use[]) => contextWith({ usesOf: () => uses })
const use = (step: string, btc: bigint, age_s = 60): Use => ({
  step,
  age_s,
  amounts: new Map([['BTC', btc]]),
})

test('a window counts amount and fee, and states when there is room', () => {
  const windows = [{ name: 'day', hours: 24, per: 'sub_account', max: { BTC: '1' }, count: 3 }]
  const policy = policyWith([allow('a', { windows })])
  // 0.1 BTC and a fee of 0.00001 BTC.
  const room = evaluate(policy, actWith(), used([use('old', 89_999_000n, 3_600)]))
  assert.equal(room.effect, 'allow')
  const full = evaluate(policy, actWith(), used([use('old', 89_999_001n, 3_600)]))
  assert.equal(full.effect, 'deny')
  assert.equal(
    full.nearest?.why,
    'windows.day: 0.89999001 of 1 BTC are used, and 0.10001 more do not fit',
  )
  assert.deepEqual(full.windows, [
    {
      rule: 'a',
      name: 'day',
      asset: 'BTC',
      share: false,
      used: '0.89999001',
      max: '1',
      fits: false,
      frees_at: NOW + 24 * 3600 + 120 + 1 - 3_600,
    },
    {
      rule: 'a',
      name: 'day',
      asset: null,
      share: false,
      used: '1',
      max: '3',
      fits: true,
      frees_at: null,
    },
  ])
  const three = ['x', 'y', 'z'].map((step) => use(step, 1n))
  assert.equal(evaluate(policy, actWith(), used(three)).effect, 'deny')
  const large = evaluate(policy, actWith({ amount: 100_000_000n }), contextWith())
  assert.equal(large.windows[0]?.frees_at, null)
  assert.equal(large.effect, 'deny')
})

test('a limit caps everything that matches, by whatever way, and denies or adds approvals', () => {
  const limit = (above: unknown) => ({
    id: 'cap',
    effect: 'limit',
    match: { assets: ['BTC'] },
    windows: [{ name: 'day', hours: 24, per: 'workspace', share: '1', max: { BTC: '50' } }],
    above,
  })
  const rules = [allow('a'), allow('b', { approvals: [{ group: 'treasury', k: 1 }] })]
  const deny = policyWith([...rules, limit('deny')])
  const approve = policyWith([...rules, limit({ approvals: [{ group: 'admins', k: 2 }] })])
  const full = used([use('old', 4_999_000_000n)])
  assert.equal(evaluate(deny, actWith(), contextWith()).effect, 'allow')
  for (const via of ['a', 'b', undefined])
    assert.equal(evaluate(deny, actWith(), { ...full, via }).effect, 'deny')
  const more = evaluate(approve, actWith({ api_key: 'api-dan' }), full)
  assert.deepEqual([more.effect, more.via], ['approve', 'a'])
  assert.deepEqual(more.needs, [{ group: 'admins', k: 2, have: 0 }])
  assert.match(more.tried[0]?.why ?? '', /windows\.day: 49\.99 of 50 BTC.*; adds 2 of admins/)
})

test('charges an act to the windows of its rule and of every limit that it matches', () => {
  const day = { name: 'day', hours: 24, per: 'api_key', count: 9 }
  const policy = policyWith([
    allow('a', { windows: [day] }),
    allow('b', { windows: [{ ...day, per: 'destination' }] }),
    {
      id: 'cap',
      effect: 'limit',
      match: {},
      windows: [{ name: 'week', hours: 168, per: 'workspace', count: 40 }],
      above: 'deny',
    },
    { id: 'other', effect: 'limit', match: { assets: ['ETH'] }, windows: [day], above: 'deny' },
  ])
  const keysOf = (via: string) => chargesOf(policy, actWith(), via).map(({ key }) => key)
  const limits = ['["cap","week","workspace"]', '["cap","week","share","main"]']
  assert.deepEqual(keysOf('a'), ['["a","day","api_key","api-alice"]', ...limits])
  assert.deepEqual(keysOf('b'), ['["b","day","destination","BTC","bc1qpayee"]', ...limits])
  assert.throws(() => keysOf('c'), PolicyError)
  const [charge] = chargesOf(policy, actWith(), 'a') as [Charge]
  assert.deepEqual([...charge.amounts], [['BTC', 10_001_000n]])
})
