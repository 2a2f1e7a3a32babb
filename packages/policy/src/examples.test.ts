// The example documents: they are accepted without a finding, and judge typical acts as described.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { actWith, contextWith } from '../testing/documents.ts'
import { registry } from '../testing/registry.ts'
import {
  compile,
  evaluate,
  lint,
  readDocument,
  ruleSentence,
  type Act,
  type EvaluationContext,
  type PolicyDocument,
} from './index.ts'

const example = (name: string): PolicyDocument =>
  readDocument(readFileSync(new URL(`../examples/${name}.json`, import.meta.url), 'utf8'))

/** Returns effect, rule and needed groups of an act under an example. */
function judge(
  document: PolicyDocument,
  act: Partial<Act>,
  context: Partial<EvaluationContext> = {},
): string {
  const { effect, via, needs } = evaluate(
    compile(document, registry),
    actWith({ workspace: document.workspace, ...act }),
    contextWith(context),
  )
  return [effect, via ?? '', ...needs.map(({ group, k }) => `${k} ${group}`)].join(' ').trim()
}

const btc = (units: number): bigint => BigInt(Math.round(units * 1e8))

const NAMES = [
  'two-person-startup',
  'exchange-hot-wallet',
  'treasury-with-compliance',
  'payroll',
  'market-maker',
]
for (const name of NAMES)
  test(`${name} has no finding`, () => {
    assert.deepEqual(lint(example(name), { registry, enrolled: [], panelOrigins: [] }), [])
  })

test('the page of worked examples contains each of their rules', () => {
  const page = readFileSync(new URL('../../../docs/policy-examples.md', import.meta.url), 'utf8')
  for (const name of NAMES)
    for (const rule of example(name).rules)
      assert.ok(page.includes(`\n- ${ruleSentence(rule)}\n`), `${name}: ${ruleSentence(rule)}`)
})

test('two-person startup: small payments pass, larger ones need the other person', () => {
  const document = example('two-person-startup')
  const from = (api_key: string, amount: bigint) => judge(document, { api_key, amount })
  assert.equal(from('9d0f6a1e-backend', btc(0.05)), 'allow small')
  assert.equal(from('9d0f6a1e-backend', btc(0.5)), 'approve pay 1 both')
  assert.equal(from('9d0f6a1e-backend', btc(1.5)), 'deny')
  // An API key without an owner could be a second key of the approver.
  assert.equal(from('unlisted', btc(0.5)), 'deny')
  const approve = (by: string, api_key: string) =>
    judge(
      document,
      { api_key, amount: btc(0.5) },
      {
        approvals: [
          { by, key: 'laptop', at: contextWith().now_s, expires: contextWith().now_s + 60 },
        ],
      },
    )
  assert.equal(approve('bob', '9d0f6a1e-alice'), 'allow pay 1 both')
  assert.equal(approve('alice', '9d0f6a1e-alice'), 'approve pay 1 both')
})

test('exchange hot wallet: tiers, a cap over all ways, and no transfers between customers', () => {
  const document = example('exchange-hot-wallet')
  const act = (fields: Partial<Act>) => ({
    api_key: 'c31f2b7a-withdrawals',
    sub_account: 'cust-1',
    ...fields,
  })
  assert.equal(judge(document, act({ amount: btc(0.4) })), 'allow customers')
  assert.equal(judge(document, act({ amount: btc(1.5) })), 'approve medium 1 treasury')
  assert.equal(judge(document, act({ amount: btc(3) })), 'deny')
  assert.equal(
    judge(document, act({ sub_account: 'house', amount: btc(20) })),
    'approve large 1 admins 2 treasury',
  )
  const own = { address: 'bc1qother', tag: null, own: 'workspace' as const }
  assert.equal(judge(document, act({ amount: btc(0.1), to: own })), 'deny')
  const full: Partial<EvaluationContext> = {
    usesOf: ({ key }) =>
      key === '["day","day","workspace"]'
        ? [{ step: 'old', age_s: 10, amounts: new Map([['BTC', btc(50)]]) }]
        : [],
  }
  assert.equal(judge(document, act({ amount: btc(0.4) }), full), 'approve customers 2 treasury')
})

test('treasury with compliance: listed payees, other payees, and compliance above a threshold', () => {
  const document = example('treasury-with-compliance')
  const xrp = (amount: bigint, tag: string | null) => ({
    api_key: '77aa01d2-dan',
    asset: 'XRP',
    network: 'XRP',
    amount: amount * 1_000_000n,
    to: { address: 'rHb9CJAWyB4rj91VRWn96DkukG4bwdtyTh', tag, own: null },
  })
  assert.equal(judge(document, xrp(400n, '104512')), 'approve payees 1 treasury')
  assert.equal(judge(document, xrp(500n, '104512')), 'approve payees 1 compliance 1 treasury')
  assert.equal(judge(document, xrp(400n, null)), 'approve other 1 board 1 treasury')
  assert.equal(judge(document, xrp(500_001n, null)), 'deny')
  const usdt = (address: string) => ({
    asset: 'USDT_ETH',
    network: 'ETH',
    amount: 100_000_000n,
    api_key: '77aa01d2-dan',
    to: { address, tag: null, own: null },
  })
  assert.equal(judge(document, usdt('0x8589427373D6D84E98730D7795D8f6f8731FDA16')), 'deny')
  assert.equal(
    judge(document, usdt('0x71C7656EC7ab88b098defB751B7401B5f6d8976F')),
    'approve payees 1 treasury',
  )
})

test('payroll: each salary once a week to its payee, and a sum above which a director approves', () => {
  const document = example('payroll')
  const anna = '0x70997970C51812dc3A010C7d01b50e0d17dc79C8'
  const ben = '0x3C44CdDdB6a900fa2b585dd299e03d12FA4293BC'
  const usdt = (units: number, address: string, fields: Partial<Act> = {}): Partial<Act> => ({
    api_key: '5be1c3d0-payroll',
    sub_account: 'payroll',
    asset: 'USDT_ETH',
    network: 'ETH',
    amount: BigInt(units) * 1_000_000n,
    fee: { max: 10n ** 15n, limit: 10n ** 17n },
    to: { address, tag: null, own: null },
    ...fields,
  })
  assert.equal(judge(document, usdt(6000, anna)), 'approve salary-anna 1 finance')
  assert.equal(judge(document, usdt(5200, ben)), 'approve salary-ben 1 finance')
  // Not more than the salary, to no other payee, from no other sub-account, by no other key.
  assert.equal(judge(document, usdt(6001, anna)), 'deny')
  assert.equal(judge(document, usdt(100, '0x9965507D1a55bcC2695C58ba16FB37d819B0A4dc')), 'deny')
  assert.equal(judge(document, usdt(6000, anna, { sub_account: 'main' })), 'deny')
  assert.equal(judge(document, usdt(6000, anna, { api_key: 'unlisted' })), 'deny')
  assert.equal(
    judge(document, usdt(1, anna, { fee: { max: 3n * 10n ** 16n, limit: 10n ** 17n } })),
    'deny',
  )
  const used = (rule: string, amount: bigint): Partial<EvaluationContext> => ({
    usesOf: ({ key }) =>
      key.startsWith(`["${rule}",`)
        ? [{ step: 'old', age_s: 86_400, amounts: new Map([['USDT_ETH', amount]]) }]
        : [],
  })
  assert.equal(judge(document, usdt(1, anna), used('salary-anna', 1_000_000n)), 'deny')
  assert.equal(
    judge(document, usdt(6000, anna), used('payroll-week', 6_000_000_001n)),
    'approve salary-anna 1 directors 1 finance',
  )
  const expense = usdt(3000, ben, { api_key: '5be1c3d0-finn', sub_account: 'main' })
  assert.equal(judge(document, expense), 'approve expenses 1 directors 1 finance')
  assert.equal(judge(document, { ...expense, sub_account: 'payroll' }), 'deny')
})

test('market maker: listed venues and own strategies, a turnover above which risk approves', () => {
  const document = example('market-maker')
  const venue = 'bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4'
  const send = (units: number, fields: Partial<Act> = {}): Partial<Act> => ({
    api_key: 'e02b77c4-bot',
    sub_account: 'strat-1',
    amount: btc(units),
    to: { address: venue, tag: null, own: null },
    ...fields,
  })
  assert.equal(judge(document, send(2)), 'allow venues')
  assert.equal(judge(document, send(5.1)), 'deny')
  assert.equal(judge(document, send(1, { sub_account: 'main' })), 'deny')
  assert.equal(judge(document, send(1, { api_key: 'e02b77c4-dana' })), 'deny')
  const to = (own: Act['to']['own']) => ({ to: { address: 'bc1qother', tag: null, own } })
  assert.equal(judge(document, send(10, to('workspace'))), 'allow rebalance')
  assert.equal(judge(document, send(10, to(null))), 'deny')
  assert.equal(judge(document, send(10, to('unknown'))), 'deny')
  const xrp = (tag: string | null): Partial<Act> => ({
    asset: 'XRP',
    network: 'XRP',
    amount: 1_000_000n,
    to: { address: 'rHb9CJAWyB4rj91VRWn96DkukG4bwdtyTh', tag, own: null },
  })
  assert.equal(judge(document, send(1, xrp('104512'))), 'allow venues')
  assert.equal(judge(document, send(1, xrp('104513'))), 'deny')
  const otc = send(10, { sub_account: 'otc', api_key: 'e02b77c4-dana', ...to(null) })
  assert.equal(judge(document, otc), 'approve otc 1 desk 1 risk')
  assert.equal(judge(document, { ...otc, amount: btc(0.4) }), 'deny')
  const full: Partial<EvaluationContext> = {
    usesOf: ({ key }) =>
      key.startsWith('["turnover",')
        ? [{ step: 'old', age_s: 10, amounts: new Map([['BTC', btc(29.5)]]) }]
        : [],
  }
  assert.equal(judge(document, send(2), full), 'approve venues 1 risk')
  const forward: Partial<Act> = {
    action: 'forward',
    standing: { min_amount: 1n, daily_cap: 2n, ends_at: 2_000_000_000 },
  }
  assert.equal(judge(document, send(0.1, forward)), 'deny')
})
