// The gate: an authority permits everything that a transaction does, or it is refused.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { loadRegistry, traitsOf, type DecodedTransaction, type TronAction } from '@custody/chains'
import { said } from '../../../testing/judging.ts'
import { ETH, SINK_ETH } from '../../../testing/signer-cluster.ts'
import { assertCovered, effectsOf, type Cover } from './effects.ts'
import type { Subject } from '../order.ts'

const PAID = { address: SINK_ETH, amount: 5n, tag: null }
const FROZEN: TronAction = { kind: 'freeze', resource: 'ENERGY', amount: 5n, receiver: null }
const PAYMENT: Cover = {
  payer: 3,
  does: { asset: 'ETH', address: SINK_ETH, payee: 'the payee', tag: null, amount: 5n },
}
const ACTION: Cover = { payer: 3, does: FROZEN }

/** @param payers sub-accounts of the inputs, and at the end that of the change, if there is one */
function subject(decoded: Partial<DecodedTransaction>, payers = [3], change?: number): Subject {
  const path = (of: number, index = 0) => ({ path: [of, ETH.chain_index, index] })
  return {
    network: ETH,
    order: {
      unsigned: {
        inputs: payers.map((of) => path(of)),
        ...(change === undefined ? {} : { change: { output: 1, ...path(change, 1) } }),
      },
    },
    decoded: { asset: 'ETH', payments: [PAID], fee_max: 7n, gas_limit: null, ...decoded },
  } as unknown as Subject
}
const refusal = (each: Subject, cover: Cover) =>
  said(() => {
    assertCovered(each, cover)
  })?.split(':')[0] ?? null

test('effects are who pays, whom, which action, and the largest fee', () => {
  assert.deepEqual(effectsOf(subject({}, [3, 3], 3)), {
    payers: [3],
    payments: [PAID],
    action: null,
    fee: 7n,
  })
  assert.deepEqual(effectsOf(subject({ payments: [], action: FROZEN }, [3, 4], 5)), {
    payers: [3, 4, 5],
    payments: [],
    action: FROZEN,
    fee: 7n,
  })
})

test('attack: no input and no change belongs to another sub-account', () => {
  assert.equal(refusal(subject({}, [3, 3], 3), PAYMENT), null)
  for (const [payers, change] of [[[4]], [[3, 4]], [[4, 3]], [[3], 4], [[0]]] as const)
    assert.equal(refusal(subject({}, [...payers], change), PAYMENT), 'FOREIGN_PATH')
  assert.match(
    said(() => {
      assertCovered(subject({}, [4]), PAYMENT)
    }) ?? '',
    /spends from another account than the payer/,
  )
  assert.equal(refusal(subject({}, [3, 4]), { ...PAYMENT, payer: null }), null)
})

test('attack: a payment makes exactly what is permitted, and nothing besides', () => {
  const cases: [Partial<DecodedTransaction>, string][] = [
    [{ asset: 'USDT_ETH' }, 'ASSET_MISMATCH'],
    [{ payments: [] }, 'SHAPE'],
    [{ payments: [PAID, PAID] }, 'SHAPE'],
    [{ action: FROZEN }, 'SHAPE'],
    [{ payments: [{ ...PAID, address: '0x' }] }, 'DESTINATION_MISMATCH'],
    [{ payments: [{ ...PAID, amount: 4n }] }, 'AMOUNT_MISMATCH'],
    [{ payments: [{ ...PAID, amount: 6n }] }, 'AMOUNT_MISMATCH'],
    [{ payments: [{ ...PAID, tag: '0' }] }, 'TAG_MISMATCH'],
    [{ fee_max: BigInt(ETH.fee_cap) + 1n }, 'FEE_CAP'],
  ]
  for (const [decoded, code] of cases) assert.equal(refusal(subject(decoded), PAYMENT), code)
  const limited = { payer: 3, does: { ...PAYMENT.does, amount: null } }
  assert.equal(refusal(subject({ payments: [{ ...PAID, amount: 9n }] }), limited), null)
})

test('attack: a staking action makes no payment, and is exactly what is permitted', () => {
  const staked = (action?: Partial<TronAction>, more: Partial<DecodedTransaction> = {}) =>
    subject({ payments: [], action: { ...FROZEN, ...action }, ...more })
  assert.equal(refusal(staked(), ACTION), null)
  const { action: _, ...none } = staked().decoded
  const cases: [Subject, string][] = [
    [{ ...staked(), decoded: none }, 'SHAPE'],
    [staked({}, { payments: [PAID] }), 'SHAPE'],
    [staked({ kind: 'unfreeze' }), 'SHAPE'],
    [staked({ resource: 'BANDWIDTH' }), 'RESOURCE_MISMATCH'],
    [staked({ amount: 6n }), 'AMOUNT_MISMATCH'],
    [staked({ receiver: 'x' }), 'DESTINATION_MISMATCH'],
  ]
  for (const [each, code] of cases) assert.equal(refusal(each, ACTION), code)
  assert.equal(
    refusal(staked({ amount: 6n }), { payer: 3, does: { ...FROZEN, amount: null } }),
    null,
  )
})

/** Returns the operations that a node may sign, as docs/protocol/effects.md names them. */
function operations(): Set<string> {
  const found = new Set<string>()
  for (const mode of ['local', 'mainnet'] as const) {
    const registry = loadRegistry(mode)
    for (const asset of registry.assets) {
      const network = registry.networkOf(asset)
      const isToken = asset.asset_name !== network.native_asset
      found.add(`${network.family} ${isToken ? 'transfer-token' : 'transfer'}`)
      if (traitsOf(network).staking)
        for (const kind of Object.keys(ACTIONS)) found.add(`${network.family} ${kind}`)
    }
  }
  return found
}
/** Complete by its type. */
const ACTIONS: Record<TronAction['kind'], true> = {
  freeze: true,
  unfreeze: true,
  withdraw: true,
  delegate: true,
  undelegate: true,
}

test('docs/protocol/effects.md has exactly one row for each operation', () => {
  const url = new URL('../../../../../docs/protocol/effects.md', import.meta.url)
  const rows = readFileSync(url, 'utf8')
    .split('\n')
    .filter((line) => line.startsWith('| '))
    .slice(2)
    .map((line) => line.split('|').map((cell) => cell.trim()))
  const named = rows.flatMap(([, family, names = '']) =>
    names.split(', ').map((name) => `${family} ${name}`),
  )
  assert.deepEqual(named.toSorted(), [...operations()].toSorted())
  for (const [, , , leaves, unsaid] of rows) assert.ok(leaves && unsaid)
})
