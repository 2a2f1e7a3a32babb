// A consolidation merges the smallest worthwhile coins, within its limits, and loses only its fee.
import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { test } from 'node:test'
import * as fc from '../../../../testing/property.ts'
import { loadRegistry, utxo, type Network, type UtxoParams } from '../index.ts'
import { addressOf, BTC } from '../../testing/support.ts'

const params = BTC.utxo as UtxoParams
const CHANGE = addressOf(BTC, [1, 0, 0x7fffffff])
const ANY = 10n ** 18n
const coin = (value: bigint, at: number): utxo.Utxo => ({
  txid: createHash('sha256').update(`coin ${at}`).digest('hex'),
  vout: at % 3,
  value,
  path: [1, 0, at],
  address: CHANGE,
})
interface Limits {
  feeRate?: bigint
  countMost?: number
  least?: bigint
  sumMost?: bigint
  network?: Network
}
const merge = (values: readonly bigint[], o: Limits = {}) =>
  utxo.selectConsolidation(o.network ?? BTC, {
    utxos: values.map(coin),
    changeAddress: o.network ? addressOf(o.network, [1, 0, 0x7fffffff]) : CHANGE,
    feeRate: 1000n,
    countMost: 200,
    least: 0n,
    sumMost: ANY,
    ...o,
  })
const many = (count: number, value = 1000n) => Array.from({ length: count }, () => value)
const chosen = (result: utxo.Consolidated) => ('selection' in result ? result.selection : null)
const sum = (list: readonly { value: bigint }[]) =>
  list.reduce((total, each) => total + each.value, 0n)

test('merges at least 10 and at most 200 coins', () => {
  assert.deepEqual(merge(many(9)), { lacks: 'few' })
  assert.equal(chosen(merge(many(10)))?.utxos.length, 10)
  assert.equal(chosen(merge(many(500), { countMost: 500 }))?.utxos.length, 200)
  assert.equal(chosen(merge(many(500), { countMost: 30 }))?.utxos.length, 30)
  for (const countMost of [9, 0, -5])
    assert.deepEqual(merge(many(500), { countMost }), { lacks: 'few' })
})

test('leaves coins that are not worth more than the fee of their own input, and those below min_value', () => {
  // An input has 68 vbytes.
  assert.deepEqual(merge(many(10, 680n), { feeRate: 10_000n }), { lacks: 'few' })
  assert.deepEqual(merge(many(10, 681n), { feeRate: 10_000n }), { lacks: 'fee' })
  assert.ok(chosen(merge(many(10, 800n), { feeRate: 10_000n })))
  assert.deepEqual(merge([...many(9), 999n], { least: 1000n }), { lacks: 'few' })
  assert.equal(chosen(merge([...many(10), 999n], { least: 1000n }))?.utxos.length, 10)
})

test('stays within the largest sum, and below the fee cap of the signer nodes', () => {
  assert.equal(chosen(merge(many(100), { sumMost: 20_999n }))?.utxos.length, 20)
  assert.deepEqual(merge(many(100), { sumMost: 9_999n }), { lacks: 'sum' })
  const feeRate = 1_000_000n
  const capped = chosen(merge(many(200, 10n ** 7n), { feeRate }))
  assert.ok(capped && capped.fee <= BigInt(BTC.fee_cap))
  assert.ok(capped.fee + 68n * (feeRate / 1000n) > BigInt(BTC.fee_cap))
  assert.deepEqual(merge(many(200, 10n ** 7n), { feeRate: 10_000_000n }), { lacks: 'fee' })
})

test('takes the smallest coins, and pays exactly the rate, at every choice', () => {
  const values = fc.array(
    fc.oneof(fc.bigInt({ min: 1n, max: 5000n }), fc.bigInt({ min: 294n, max: 10n ** 9n })),
    { maxLength: 260 },
  )
  fc.assert(
    fc.property(
      values,
      fc.bigInt({ min: 1000n, max: 60_000n }),
      fc.integer({ min: -3, max: 300 }),
      fc.bigInt({ min: 0n, max: 2000n }),
      fc.bigInt({ min: 0n, max: 10n ** 11n }),
      (list, feeRate, countMost, least, sumMost) => {
        const result = merge(list, { feeRate, countMost, least, sumMost })
        const worth = list.filter((value) => value >= least && value * 1000n > 68n * feeRate)
        const selection = chosen(result)
        if (!selection || !('sum' in result)) return
        const { utxos, fee, change, vsize } = selection
        assert.ok(utxos.length >= 10 && utxos.length <= Math.min(200, countMost))
        assert.equal(new Set(utxos.map(utxo.outpointOf)).size, utxos.length)
        const smallest = worth.toSorted((a, b) => (a < b ? -1 : a > b ? 1 : 0))
        assert.deepEqual(
          utxos.map(({ value }) => value),
          smallest.slice(0, utxos.length),
        )
        assert.equal(vsize, utxo.virtualSize(params, utxos.length, [22]))
        assert.equal(fee, (BigInt(vsize) * feeRate) / 1000n)
        assert.equal(change + fee, sum(utxos))
        assert.equal(result.sum, sum(utxos))
        assert.ok(change >= 294n && result.sum <= sumMost && fee <= BigInt(BTC.fee_cap))
      },
    ),
  )
})

test('each Bitcoin-like network can merge 200 coins at its usual rate', () => {
  const registry = loadRegistry('mainnet')
  for (const code of ['BTC', 'LTC', 'DOGE', 'DASH', 'BCH']) {
    const network = registry.network(code) as Network
    const feeRate = BigInt(network.utxo?.min_fee_rate ?? 1) * 1000n * 5n
    const result = chosen(merge(many(200, 10n ** 8n), { network, feeRate }))
    assert.equal(result?.utxos.length, 200, code)
  }
})
