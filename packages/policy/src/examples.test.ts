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

const NAMES = ['two-person-startup', 'exchange-hot-wallet', 'treasury-with-compliance']
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
