import assert from 'node:assert/strict'
import test from 'node:test'
import { loadRegistry, policyRegistry } from '@custody/chains'
import { compile } from '@custody/policy'
import { allow, policyWith } from '../../../../policy/testing/documents.ts'
import { Spending, windowName, type ChargedWindow } from '../../store/spending.ts'
import { NO_OTHERS } from '../budget.ts'
import { countNearlyFull, windowUses } from './window-uses.ts'

const NOW = 1_800_000_000_000
const HOUR_MS = 3_600_000
const RULE = {
  ...allow('pay'),
  match: { action: ['transfer'], assets: ['BTC', 'ETH'], to: 'any' },
  windows: [
    { name: 'day', hours: 24, per: 'workspace', max: { BTC: '1', ETH: '4' }, share: '0.5' },
    { name: 'each', hours: 1, per: 'destination', count: 4 },
  ],
}
const POLICY = compile(
  policyWith([RULE], { mode: 'local' }).document,
  policyRegistry(loadRegistry('local')),
)
const DAY = JSON.stringify(['pay', 'day', 'workspace'])
const SHARE = JSON.stringify(['pay', 'day', 'share', 'main'])
const EACH = JSON.stringify(['pay', 'each', 'destination', 'ETH', '0xaa'])

const spendingOf = (
  ...charges: [key: string, step: string, units: bigint, ageMs?: number, workspace?: string][]
): Spending => {
  const spending = new Spending()
  for (const [at, [key, step, units, ageMs = 0, workspace = 'acme']] of charges.entries()) {
    const charged: ChargedWindow = {
      window: windowName(workspace, key),
      step,
      transaction: `of ${step}`,
      at: NOW - ageMs,
      amounts: new Map([['BTC', units]]),
    }
    spending.add({ height: at + 1, charges: [], windows: [charged] })
  }
  return spending
}
const usesIn = (own: Spending, ...peers: Spending[]) => {
  const others = peers.map((recorded) => ({ ...NO_OTHERS, recorded }))
  return windowUses(POLICY, { own, others, workspace: 'acme', clockMs: NOW })
}

test('a sum counts the record of this node and of the peer with more, each step once', () => {
  const { policy, windows, left_off } = usesIn(
    spendingOf([DAY, 'a', 10n], [SHARE, 'a', 10n]),
    spendingOf([DAY, 'a', 10n], [DAY, 'b', 20n]),
    spendingOf([DAY, 'c', 30n]),
  )
  assert.deepEqual(policy, { number: POLICY.document.number, hash: POLICY.hash })
  assert.equal(left_off, false)
  const day = { rule: 'pay', window: 'day', hours: 24 }
  assert.deepEqual(windows, [
    {
      ...day,
      per: 'workspace',
      of: [],
      readings: [
        { asset: 'BTC', used: '40', max: '100000000' },
        { asset: 'ETH', used: '0', max: '4000000000000000000' },
      ],
    },
    {
      ...day,
      per: 'share',
      of: ['main'],
      readings: [
        { asset: 'BTC', used: '10', max: '50000000' },
        { asset: 'ETH', used: '0', max: '2000000000000000000' },
      ],
    },
  ])
})

test('windows that the document no longer has, other workspaces and old charges are left out', () => {
  const { windows } = usesIn(
    spendingOf(
      [JSON.stringify(['gone', 'day', 'workspace']), 'a', 10n],
      [JSON.stringify(['pay', 'day', 'sub_account', 'main']), 'b', 10n],
      [DAY, 'c', 10n, 0, 'other'],
      [DAY, 'd', 10n, 25 * HOUR_MS],
      [EACH, 'e', 10n, 2 * HOUR_MS],
    ),
  )
  assert.deepEqual(windows, [])
})

test('the most used sums come first, and the number of acts counts too', () => {
  const { windows } = usesIn(
    spendingOf([DAY, 'a', 50_000_000n], [EACH, 'a', 50_000_000n], [EACH, 'b', 1n], [EACH, 'c', 1n]),
  )
  assert.deepEqual(
    (windows as { window: string; of: string[]; readings: { used: string }[] }[]).map(
      ({ window, of, readings }) => [window, of, readings[0]?.used],
    ),
    [
      ['each', ['ETH', '0xaa'], '3'],
      ['day', [], '50000000'],
    ],
  )
})

test('of many sums, the 200 most used are returned', () => {
  const charges = Array.from({ length: 201 }, (_, at): [string, string, bigint] => [
    JSON.stringify(['pay', 'each', 'destination', 'ETH', `0x${at}`]),
    `s${at}`,
    1n,
  ])
  const { windows, left_off } = usesIn(spendingOf(...charges))
  assert.deepEqual([(windows as unknown[]).length, left_off], [200, true])
})

test('a sum of which 90 % is used is nearly full', () => {
  const count = (...charges: [string, string, bigint][]) =>
    countNearlyFull(POLICY, {
      own: spendingOf(...charges),
      others: [],
      workspace: 'acme',
      clockMs: NOW,
    })
  assert.equal(count([DAY, 'a', 89_999_999n]), 0)
  assert.equal(count([DAY, 'a', 90_000_000n]), 1)
  assert.equal(count([DAY, 'a', 90_000_000n], [SHARE, 'a', 45_000_000n]), 2)
})
