import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import test from 'node:test'
import type { Body } from './entries/index.ts'
import { importable } from './imported.ts'
import { Store } from './index.ts'
import { BUDGET_KEPT_MS, Spending, windowName, WINDOW_KEPT_MS } from './spending.ts'

const NOW = 1_800_000_000_000
const WINDOW = windowName('w', 'key')
let heights = 0
const add = (spending: Spending, step: string, at: number): void => {
  heights++
  const common = { at, step, transaction: step }
  spending.add({
    height: heights,
    charges: [{ budget: 'b', amount: 1n, ...common }],
    windows: [{ window: WINDOW, amounts: new Map([['BTC', 1n]]), ...common }],
  })
}
const stepsOf = (charges: readonly { step: string }[]): string[] => charges.map(({ step }) => step)

test('charges to windows are kept for a week when those to budgets are dropped', () => {
  const spending = new Spending()
  add(spending, 'a', NOW - WINDOW_KEPT_MS - 1)
  add(spending, 'b', NOW - WINDOW_KEPT_MS)
  add(spending, 'c', NOW - BUDGET_KEPT_MS)
  assert.deepEqual(stepsOf(spending.since('b', NOW - BUDGET_KEPT_MS)), ['c'])
  assert.deepEqual(stepsOf(spending.windowSince(WINDOW, NOW)), [])
  assert.deepEqual(stepsOf(spending.windowSince(WINDOW, 0)), ['a', 'b', 'c'])
  for (let at = 0; at < 1000; at++) add(spending, 'new', NOW)
  const before = spending.bytes
  spending.drop(NOW)
  assert.deepEqual(stepsOf(spending.windowSince(WINDOW, 0)).slice(0, 2), ['b', 'c'])
  assert.equal(spending.steps.length, 1002)
  assert.ok(spending.bytes < before && spending.bytes > 300 * 1000)
  spending.clamp(NOW - BUDGET_KEPT_MS)
  assert.equal(spending.windowSince(WINDOW, NOW - BUDGET_KEPT_MS + 1).length, 0)
  assert.equal(spending.windowSince(WINDOW, NOW - BUDGET_KEPT_MS).length, 1001)
})

test('the record charges steps and further charges to windows, also imported ones under another rule', () => {
  const folder = mkdtempSync(join(tmpdir(), 'spending-'))
  const path = join(folder, 'record.sqlite')
  const policy = (via: string): NonNullable<Body<'step'>['policy']> => ({
    number: 1,
    hash: 'ab'.repeat(32),
    via,
    charges: [{ key: via, hours: 24, amounts: { BTC: '5' } }],
  })
  const body: Body<'step'> = {
    step: 's',
    purpose: 'pay',
    workspace: 'w',
    key_id: 'k',
    intent: null,
    content: null,
    transaction_id: null,
    unsigned_hash: 'h',
    unsigned: { network: 'BTC', bytes: '02', inputs: [{ path: [1] }] },
    decoded: {
      network: 'BTC',
      asset: 'BTC',
      payments: [],
      change: null,
      from: [],
      fee_max: '1',
      fee_rate: '1',
      consumes: [],
      nonce: null,
      gas_limit: null,
      max_fee_per_gas: null,
      vsize: null,
    },
    consumes: [],
    account: null,
    nonce: null,
    charges: [{ budget: 'b', amount: '1' }],
    sessions: [],
    partner: 2,
    peer_head: null,
  }
  let store = new Store(path, () => NOW)
  store.append('step', { ...body, policy: policy('own') })
  const further = { step: 's', unsigned_hash: 'h', workspace: 'w' }
  store.append('charged', { ...further, policy: policy('further') })
  store.append('imported', {
    at: NOW - 5,
    kind: 'step',
    body: importable('step', { ...body, policy: policy('of a peer') })!,
    from: 2,
  })
  store.append('imported', {
    at: NOW - 7,
    kind: 'charged',
    body: importable('charged', { ...further, policy: policy('further of a peer') })!,
    from: 3,
  })
  for (let starts = 0; starts < 2; starts++) {
    const { spending, steps } = store.state
    const at = (via: string): number[] =>
      spending.windowSince(windowName('w', via), 0).map((each) => each.at)
    assert.deepEqual(['own', 'further', 'of a peer', 'further of a peer'].map(at), [
      [NOW],
      [NOW],
      [NOW - 5],
      [NOW - 7],
    ])
    assert.deepEqual(spending.windowSince(windowName('another', 'own'), 0), [])
    // A budget and the step itself count once.
    assert.equal(spending.since('b', 0).length, 1)
    assert.equal(steps.get('s')!.length, 1)
    store.close()
    store = new Store(path, () => NOW)
  }
  store.close()
  rmSync(folder, { recursive: true })
})
