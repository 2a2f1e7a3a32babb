// Window arithmetic: what two nodes report, retries, shares, and when there is room.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as fc from '../../../../testing/property.ts'
import { useList } from '../../testing/arbitraries.ts'
import { actWith, allow, policyWith } from '../../testing/documents.ts'
import { registry } from '../../testing/registry.ts'
import { PolicyError } from '../error.ts'
import { subjectOf } from './prepare.ts'
import {
  combineCharges,
  combineUses,
  compileWindow,
  cutoffOf,
  metersOf,
  outflow,
  readMeter,
  readUses,
  type Charge,
  type Meter,
  type Use,
} from './windows.ts'

const use = (step: string, btc: bigint, age_s = 0): Use => ({
  step,
  age_s,
  amounts: new Map([['BTC', btc]]),
})
const policy = policyWith([allow('a')])
const day = { name: 'day', hours: 24, per: 'sub_account' as const }
const meters = (window: object, act = actWith()): Meter[] =>
  metersOf(compileWindow('a', { ...day, ...window }, registry, ''), subjectOf(policy, act))
const btc = (max: string) => meters({ max: { BTC: max } })[0] as Meter

test('a step that both nodes report counts once, with the larger amount and the smaller age', () => {
  assert.deepEqual(combineUses([use('s', 1n, 50), use('t', 5n)], [use('s', 3n, 90)], 24), [
    use('s', 3n, 50),
    use('t', 5n),
  ])
})

test('steps leave a window two minutes after its end', () => {
  const end = cutoffOf(24)
  assert.equal(end, 86_520)
  assert.deepEqual(combineUses([use('s', 1n, end)], [use('t', 1n, end + 1)], 24), [
    use('s', 1n, end),
  ])
})

test('a retry of a recorded step counts once, with the larger amount', () => {
  // 0.10001 BTC leaves the wallet.
  const uses = [use('step-1', 20_000_000n), use('other', 80_000_000n)]
  const [reading] = readMeter(btc('1'), 'step-1', uses)
  assert.deepEqual([reading?.used, reading?.added], [80_000_000n, 20_000_000n])
  assert.equal(reading?.frees_in_s, 0)
  const [other] = readMeter(btc('1'), 'step-2', uses)
  assert.deepEqual([other?.used, other?.added], [100_000_000n, 10_001_000n])
})

test('a step that is retried by another rule is charged to the windows of both rules', () => {
  const charge = (key: string, amount: bigint): Charge => ({
    key,
    hours: 24,
    amounts: new Map([['BTC', amount]]),
  })
  assert.deepEqual(
    combineCharges([charge('a', 5n), charge('limit', 5n)], [charge('b', 6n), charge('limit', 6n)]),
    [charge('a', 5n), charge('limit', 6n), charge('b', 6n)],
  )
  assert.deepEqual(combineCharges([charge('a', 6n)], [charge('a', 5n)]), [charge('a', 6n)])
})

/** What an act of 100 units with a fee of 7 adds to a window that names the given assets. */
const out = (asset: string, network: string, named: string[] | null, fee = 7n, fields = {}) =>
  Object.fromEntries(
    outflow(
      { max: named && new Map(named.map((each) => [each, 1n])) },
      subjectOf(
        policyWith([allow('a')], fields),
        actWith({ asset, network, amount: 100n, fee: { max: fee, limit: fee } }),
      ),
    ),
  )

test('a fee that the wallet pays counts with the amount, or in the native coin', () => {
  for (const named of [null, ['USDC_SOL'], ['BTC', 'SOL']]) {
    assert.deepEqual(out('BTC', 'BTC', named), { BTC: 107n })
    assert.deepEqual(out('USDC_SOL', 'SOL', named), { USDC_SOL: 100n, SOL: 7n })
    assert.deepEqual(out('USDC_SOL', 'SOL', named, 0n), { USDC_SOL: 100n })
  }
})

test('a fee that a gas tank pays counts in each window that names the native coin', () => {
  assert.deepEqual(out('USDT_ETH', 'ETH', ['USDT_ETH', 'ETH']), { USDT_ETH: 100n, ETH: 7n })
  assert.deepEqual(out('USDT_ETH', 'ETH', ['USDT_ETH']), { USDT_ETH: 100n })
  assert.deepEqual(out('USDT_ETH', 'ETH', null), { USDT_ETH: 100n })
  assert.deepEqual(out('USDT_ETH', 'ETH', ['USDT_ETH', 'ETH'], 0n), { USDT_ETH: 100n })
})

test('with `fees: "wallet"`, only fees that the wallet pays count', () => {
  const fees = { fees: 'wallet' }
  const named = ['USDT_ETH', 'ETH', 'BTC']
  assert.deepEqual(out('USDT_ETH', 'ETH', named, 7n, fees), { USDT_ETH: 100n })
  assert.deepEqual(out('BTC', 'BTC', named, 7n, fees), { BTC: 107n })
})

test('a window that does not name an asset that leaves the wallet never has room', () => {
  const sol = actWith({ asset: 'USDC_SOL', network: 'SOL' })
  const [meter] = meters({ max: { USDC_SOL: '99' } }, sol) as [Meter]
  assert.deepEqual(
    readMeter(meter, 's', []).map(({ asset, max, frees_in_s }) => [asset, max, frees_in_s]),
    [
      ['USDC_SOL', 99_000_000n, 0],
      ['SOL', null, null],
    ],
  )
})

test('a sub-account may use a quarter of a window of the workspace, unless the window says otherwise', () => {
  const limits = (window: object) =>
    meters({ per: 'workspace', ...window }).map(({ key, max, count }) => [
      key,
      max?.get('BTC'),
      count,
    ])
  const whole = '["a","day","workspace"]'
  const part = '["a","day","share","main"]'
  assert.deepEqual(limits({ max: { BTC: '1' }, count: 10 }), [
    [whole, 100_000_000n, 10],
    [part, 25_000_000n, 2],
  ])
  assert.deepEqual(limits({ max: { BTC: '0.00000001' }, share: '0.9999' }), [
    [whole, 1n, null],
    [part, 0n, null],
  ])
  assert.deepEqual(limits({ count: 10, share: '1' }), [[whole, undefined, 10]])
})

test('states after how many seconds there is room, or that there never is', () => {
  const [reading] = readMeter(btc('1'), 's', [
    use('old', 60_000_000n, 86_000),
    use('new', 35_000_000n, 100),
  ])
  assert.equal(reading?.frees_in_s, 86_520 + 1 - 86_000)
  assert.equal(readMeter(btc('0.1'), 's', [])[0]?.frees_in_s, null)
  const [count] = readMeter(meters({ count: 1 })[0] as Meter, 's', [use('x', 1n, 20)])
  assert.equal(count?.frees_in_s, 86_501)
})

test('the arithmetic agrees with a recount second by second', () => {
  const hour = meters({ hours: 1, max: { BTC: '1' }, count: 3 })[0] as Meter
  /** Whether the act fits `t` seconds later, counted from the raw list. */
  const fitsAt = (uses: readonly Use[], asset: string | null, max: bigint, t: number): boolean => {
    const left = uses.filter(({ age_s }) => age_s <= cutoffOf(1))
    const names = new Set(left.map(({ step }) => step))
    names.add('step-1')
    let sum = 0n
    for (const name of names) {
      const mine = left.filter(({ step }) => step === name)
      const youngest = Math.min(...mine.map(({ age_s }) => age_s))
      if (name !== 'step-1' && youngest + t > cutoffOf(1)) continue
      const each = mine.map(({ amounts }) => (asset === null ? 1n : (amounts.get(asset) ?? 0n)))
      if (name === 'step-1') each.push(asset === null ? 1n : 10_001_000n)
      sum += each.reduce((most, amount) => (amount > most ? amount : most), 0n)
    }
    return sum <= max
  }
  let waits = 0
  fc.assert(
    fc.property(useList, useList, (own, other) => {
      const both = [...own, ...other]
      for (const { asset, max, frees_in_s } of readMeter(
        hour,
        'step-1',
        combineUses(own, other, 1),
      )) {
        if (frees_in_s === null) {
          assert.equal(fitsAt(both, asset, max ?? 0n, 10_000), false)
          continue
        }
        assert.equal(fitsAt(both, asset, max ?? 0n, frees_in_s), true)
        if (frees_in_s > 0) {
          assert.equal(fitsAt(both, asset, max ?? 0n, frees_in_s - 1), false)
          waits++
        }
      }
    }),
    { numRuns: 2_000 },
  )
  assert.ok(waits > 50)
})

test('reads the report of another node, and refuses one that is malformed', () => {
  assert.deepEqual(readUses([{ step: 's', age_s: 4, amounts: { BTC: '12' } }]), [use('s', 12n, 4)])
  for (const report of [
    null,
    [{ step: 's', age_s: -1, amounts: {} }],
    [{ step: 's', age_s: 0.5, amounts: {} }],
    [{ step: 's', age_s: 1, amounts: { BTC: '-1' } }],
    [{ step: 's', age_s: 1, amounts: { BTC: '0x1' } }],
    [{ step: 's', age_s: 1, amounts: { BTC: 1 } }],
    [{ step: 's', age_s: 1, amounts: {}, more: 1 }],
  ])
    assert.throws(() => readUses(report), PolicyError)
})
