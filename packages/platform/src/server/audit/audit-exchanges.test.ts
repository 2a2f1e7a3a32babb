import assert from 'node:assert/strict'
import { test } from 'node:test'
import { loadRegistry } from '@custody/chains'
import { useDatabase } from '../../../testing/deposits-support.ts'
import { TradingFixture } from '../../../testing/venues/trading-fixture.ts'
import { collectAudits } from '../app/health/collectors/audits.ts'
import { showAudit } from '../operator/show-audit.ts'
import { audit } from './audit.ts'
import { recordedAudit } from './recorded.ts'

/**
 * Tests that what customers do at their exchanges neither changes the result of the audit of the
 * chains, nor hides a deficit there.
 */
let current: TradingFixture | undefined
const database = useDatabase({ migrated: true, now: () => current?.now ?? Date.now() })

/** A customer with an account at an exchange, and an installation without wallets. */
async function open() {
  const fixture = (current = new TradingFixture(database.get()))
  await fixture.begin()
  let comparisons = 0
  Object.assign(fixture.services, {
    registry: loadRegistry('local'),
    networks: { all: () => (comparisons++, []), has: () => false },
  })
  return { fixture, comparisons: () => comparisons }
}
const text = async (fixture: TradingFixture) => showAudit(await audit(fixture.services)).join('\n')
const AGREE = /\nthe ledger agrees with the chains$/

/** What a customer can do at the exchange, and how the audit describes it. */
const ACTS: [name: string, act: (fixture: TradingFixture) => unknown, line: RegExp][] = [
  [
    'withdraws coins by hand',
    ({ kraken }) => kraken.held.set('XXBT', 4),
    /^EXCHANGE one kraken account \S+ BTC: ledger 10, exchange 4 \(less at the exchange\)$/m,
  ],
  [
    'withdraws everything',
    ({ kraken }) => kraken.held.clear(),
    /^EXCHANGE one kraken account \S+ USD: ledger 1000000, exchange 0 \(less at the exchange\)$/m,
  ],
  [
    'deposits coins by hand',
    ({ kraken }) => kraken.held.set('XXBT', 11),
    /^EXCHANGE one kraken account \S+ BTC: ledger 10, exchange 11 \(more at the exchange\)$/m,
  ],
  [
    'revokes the key',
    ({ kraken }) => kraken.revoked.add('key'),
    /^EXCHANGE one kraken account \S+: not compared: kraken: EAPI:Invalid key$/m,
  ],
]

for (const [name, act, line] of ACTS) {
  test(`a customer ${name}: the audit lists it apart and succeeds`, async () => {
    const { fixture, comparisons } = await open()
    // Without another account, an audit of this fixture may compare nothing.
    await fixture.link({ api_key: 'other' }, await fixture.tenant('two'))
    await act(fixture)
    const report = await recordedAudit(fixture.services)
    assert.deepEqual([report.ok, report.differences], [true, []], JSON.stringify(report))
    assert.ok(report.exchange_differences.length > 0)
    assert.equal(comparisons(), 1, 'the chains are compared once')
    const shown = showAudit(report).join('\n')
    assert.match(shown, line)
    assert.match(shown, AGREE)
    assert.doesNotMatch(shown, /stop withdrawals\.|DEFICIT|DIFFERENCE/)
    await collectAudits(fixture.services)
    const metrics = await fixture.services.metrics.text()
    const valueOf = (metric: string) =>
      Number(new RegExp(`^${metric} (\\S+)$`, 'm').exec(metrics)?.[1])
    assert.deepEqual(
      [valueOf('custody_audit_differences'), valueOf('custody_audit_exchange_differences')],
      [0, report.exchange_differences.length],
    )
  })

  test(`a customer ${name}: a deficit of the ledger is still reported last, with its advice`, async () => {
    const { fixture } = await open()
    await act(fixture)
    await fixture.database.query(
      `update ledger_accounts set balance = balance + 1 where kind = 'prepaid'`,
    )
    const report = await audit(fixture.services)
    assert.deepEqual(
      [report.ok, report.differences.map(({ kind }) => kind)],
      [false, ['deficit']],
      JSON.stringify(report.differences),
    )
    const lines = showAudit(report)
    assert.match(lines.join('\n'), line)
    assert.match(
      String(lines.at(-1)),
      /^1 difference: deficits 1, surpluses 0, not compared 0\. .*: stop withdrawals\.$/,
    )
    assert.match(String(lines.at(-2)), /^DIFFERENCE .*\(DEFICIT; the balance is not the sum/)
  })
}

test('many accounts of one customer print a limited number of lines, and --json returns all', async () => {
  const { fixture } = await open()
  for (let at = 0; at < 60; at++) await fixture.link({ api_key: `k${at}` })
  fixture.kraken.error = 'EAPI:Invalid key'
  const report = await audit(fixture.services)
  assert.equal(report.exchange_differences.length, 61)
  const lines = showAudit(report).filter((line) => line.startsWith('EXCHANGE '))
  assert.deepEqual([lines.length, lines.at(-1)], [51, 'EXCHANGE 11 more lines; --json returns all'])
})

test('accounts that are not proven distinct, and duplicates, are named but not counted', async () => {
  const { fixture } = await open()
  await fixture.link({ api_key: 'unproven' })
  await fixture.link({ api_key: 'duplicate' })
  for (const identity of ['unproven', 'duplicate'])
    await fixture.database.query('update exchange_accounts set identity = $1 where key_hint = $2', [
      identity,
      `…${identity.slice(-4)}`,
    ])
  const report = await audit(fixture.services)
  assert.deepEqual(report.exchanges, { accounts: 1, balances: 2, unproven: 1, duplicates: 1 })
  assert.equal(report.compared, 2)
  assert.match(
    await text(fixture),
    /2 balances of 1 exchange accounts; not counted: 1 exchange accounts that are not proven distinct, 1 duplicates/,
  )
})
