// Sums of windows: their keys, what callers keep of them, and what other nodes report.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { actWith, allow, contextWith, policyWith } from '../../testing/documents.ts'
import { registry } from '../../testing/registry.ts'
import { PolicyError } from '../error.ts'
import { evaluate } from './evaluate.ts'
import { chargesOf } from './prepare.ts'
import {
  combineCharges,
  compileWindow,
  limitsOf,
  metersOf,
  readSumKey,
  readUses,
  sumOfUses,
  type Charge,
  type Use,
} from './windows.ts'

const use = (step: string, btc: bigint, age_s = 0): Use => ({
  step,
  age_s,
  amounts: new Map([['BTC', btc]]),
})
const windowOf = (fields: object) =>
  compileWindow(
    'a',
    { name: 'day', hours: 24, per: 'workspace', max: { BTC: '1' }, ...fields },
    registry,
    'windows[0]',
  )

test('the key of a sum names the rule, the window, and what it counts', () => {
  const keys = (per: string) =>
    chargesOf(
      policyWith([allow('a', { windows: [{ name: 'day', hours: 24, per, count: 9 }] })]),
      actWith(),
      'a',
    ).map(({ key }) => readSumKey(key))
  const common = { rule: 'a', name: 'day' }
  assert.deepEqual(keys('workspace'), [
    { ...common, per: 'workspace', of: [] },
    { ...common, per: 'share', of: ['main'] },
  ])
  assert.deepEqual(keys('sub_account'), [{ ...common, per: 'sub_account', of: ['main'] }])
  assert.deepEqual(keys('api_key'), [{ ...common, per: 'api_key', of: ['api-alice'] }])
  assert.deepEqual(keys('destination'), [
    { ...common, per: 'destination', of: ['BTC', 'bc1qpayee'] },
  ])
})

test('a text that is not the key of a sum is read as null', () => {
  for (const text of ['', 'a', '{}', '[]', '["a","day"]', '["a","day",1]', '["a","day","share",1]'])
    assert.equal(readSumKey(text), null, text)
})

test('the part of one sub-account is rounded down, and applies to windows of the workspace only', () => {
  const whole = windowOf({ count: 10, share: '0.3333' })
  assert.deepEqual(limitsOf(whole, false), { max: new Map([['BTC', 100_000_000n]]), count: 10 })
  assert.deepEqual(limitsOf(whole, true), { max: new Map([['BTC', 33_330_000n]]), count: 3 })
  assert.deepEqual(limitsOf(windowOf({ share: '0.5' }), true), {
    max: new Map([['BTC', 50_000_000n]]),
    count: null,
  })
  assert.deepEqual(limitsOf(windowOf({ max: undefined, count: 8 }), true), { max: null, count: 2 })
  const own = windowOf({ per: 'sub_account' })
  assert.deepEqual(limitsOf(own, true), { max: new Map([['BTC', 100_000_000n]]), count: null })
})

test('an error of a window names the field of its maximum', () => {
  assert.throws(() => windowOf({ max: { DOGE: '1' } }), { path: 'windows[0].max.DOGE' })
})

test('a sum that two ways charge counts for the longer window, for each asset that one of them moves', () => {
  const charge = (hours: number, amounts: [string, bigint][]): Charge => ({
    key: 'k',
    hours,
    amounts: new Map(amounts),
  })
  const day = charge(24, [['BTC', 5n]])
  const week = charge(168, [['SOL', 7n]])
  const both = new Map([
    ['BTC', 5n],
    ['SOL', 7n],
  ])
  assert.deepEqual(combineCharges([day], [week]), [{ key: 'k', hours: 168, amounts: both }])
  assert.deepEqual(combineCharges([week], [day]), [{ key: 'k', hours: 168, amounts: both }])
})

test('a sum contains the other steps of its window, and the amounts of the own step separately', () => {
  const uses = [use('own', 5n), use('x', 7n), use('y', 8n), use('old', 9n, 24 * 3600 + 121)]
  assert.deepEqual(sumOfUses(uses, 'own', 24), {
    used: new Map([['BTC', 15n]]),
    count: 2,
    own: new Map([['BTC', 5n]]),
  })
  assert.deepEqual(sumOfUses([], 'own', 24), { used: new Map(), count: 0, own: null })
})

test('an evaluation with running sums reads single steps only of sums into which the act does not fit', () => {
  const windows = [
    { name: 'day', hours: 24, per: 'sub_account', max: { BTC: '1' } },
    { name: 'acts', hours: 24, per: 'api_key', count: 5 },
  ]
  const policy = policyWith([allow('a', { windows })])
  const read: string[] = []
  const result = (btc: bigint) => {
    read.length = 0
    const sum = { used: new Map([['BTC', btc]]), count: 1, own: null }
    const usesOf = ({ key }: Charge) => {
      read.push(key)
      return [use('other', btc, 60)]
    }
    return evaluate(policy, actWith(), contextWith({ sumOf: () => sum, usesOf })).effect
  }
  assert.deepEqual([result(89_999_000n), read], ['allow', []])
  assert.deepEqual([result(89_999_001n), read], ['deny', ['["a","day","sub_account","main"]']])
})

test('a window without a maximum of an asset says that the asset also leaves the wallet', () => {
  const windows = [
    { name: 'day', hours: 24, per: 'workspace', share: '0.5', max: { USDC_SOL: '9' } },
  ]
  const act = { asset: 'USDC_SOL', network: 'SOL', amount: 5_000_000n }
  const result = evaluate(policyWith([allow('a', { windows })]), actWith(act), contextWith())
  assert.equal(
    result.nearest?.why,
    'windows.day: does not name SOL, which also leaves the wallet; ' +
      'windows.day (share of the sub-account): 0 of 4.5 USDC_SOL are used, and 5 more do not fit; ' +
      'windows.day (share of the sub-account): does not name SOL, which also leaves the wallet',
  )
})

test('no act of an asset that a window does not name fits into it, not even one of zero', () => {
  const windows = [{ name: 'day', hours: 24, per: 'sub_account', max: { BTC: '1' } }]
  const act = actWith({ asset: 'USDT_ETH', network: 'ETH', amount: 0n })
  const result = evaluate(policyWith([allow('a', { windows })]), act, contextWith())
  assert.equal(result.effect, 'deny')
  assert.deepEqual(
    result.windows.map(({ asset, used, max, fits, frees_at }) => [
      asset,
      used,
      max,
      fits,
      frees_at,
    ]),
    [['USDT_ETH', '0', null, false, null]],
  )
})

test('an act is charged to the windows of the named rule, even if that rule does not match it', () => {
  const windows = [{ name: 'day', hours: 24, per: 'api_key', count: 9 }]
  const policy = policyWith([
    allow('a', { windows, match: { action: ['transfer'], assets: ['ETH'] } }),
    allow('b'),
  ])
  const keys = (via: string) => chargesOf(policy, actWith(), via).map(({ key }) => key)
  assert.deepEqual(keys('a'), ['["a","day","api_key","api-alice"]'])
  assert.deepEqual(keys('b'), [])
  assert.throws(() => keys('c'), {
    code: 'ACT',
    path: 'via',
    message: 'via: c is not an allow rule',
  })
})

test('a full number of acts is stated in acts', () => {
  const windows = [{ name: 'day', hours: 24, per: 'sub_account', count: 2 }]
  const context = contextWith({ usesOf: () => [use('x', 1n), use('y', 1n)] })
  const { nearest } = evaluate(policyWith([allow('a', { windows })]), actWith(), context)
  assert.equal(nearest?.why, 'windows.day: 2 of 2 acts are used, and 1 more do not fit')
})

test('a share of the whole window is no separate sum', () => {
  const subject = { act: actWith(), asset: registry.asset('BTC')! } as Parameters<
    typeof metersOf
  >[1]
  const sums = (share: string) => metersOf(windowOf({ share }), subject).length
  assert.deepEqual(['1', '0.9999'].map(sums), [1, 2])
})

test('bounds what another node may report, with the bounds included', () => {
  const report = (fields: object) => [{ step: 's', age_s: 0, amounts: {}, ...fields }]
  const good = [
    {},
    { step: 'x'.repeat(200) },
    { age_s: 10_000_000 },
    { amounts: { BTC: '0' } },
    { amounts: { BTC: '9'.repeat(78) } },
  ]
  for (const fields of good) assert.equal(readUses(report(fields)).length, 1)
  for (const [fields, path] of [
    [{ step: '' }, '[0].step'],
    [{ step: 'x'.repeat(201) }, '[0].step'],
    [{ age_s: 10_000_001 }, '[0].age_s'],
    [{ amounts: { BTC: '01' } }, '[0].amounts.BTC'],
    [{ amounts: { BTC: '1x' } }, '[0].amounts.BTC'],
    [{ amounts: { BTC: '' } }, '[0].amounts.BTC'],
    [{ amounts: { BTC: '9'.repeat(79) } }, '[0].amounts.BTC'],
  ] as const)
    assert.throws(
      () => readUses(report(fields)),
      (error) => {
        assert.ok(error instanceof PolicyError && error.path === path, String(error))
        if (path.endsWith('BTC')) assert.match(error.message, /must be digits$/)
        return true
      },
    )
})

test('another node may report up to 100,000 steps', () => {
  const many = (length: number) =>
    Array.from({ length }, () => ({ step: 's', age_s: 0, amounts: {} }))
  assert.equal(readUses(many(100_000)).length, 100_000)
  assert.throws(() => readUses(many(100_001)), { code: 'SHAPE' })
})
