import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { createWalletClient, defineChain, http, parseEther } from 'viem'
import { privateKeyToAccount } from 'viem/accounts'
import { Devnet } from '../../../../devnet/src/devnet.ts'
import { audit } from './audit.ts'
import { latestAudit, recordedAudit } from './recorded.ts'
import type { Application } from '../app/application.ts'
import { showAudit } from '../operator/show-audit.ts'
import { useDatabase } from '../../../testing/deposits-support.ts'
import { FamilyFixture } from '../../../testing/chains/family-fixture.ts'
import { ManualClock } from '../../../testing/manual-clock.ts'

/**
 * Tests of the audit. Anyone can make a chain hold more than the ledger records; the audit must
 * distinguish this surplus from a ledger that promises more than the chain holds.
 */
const clock = new ManualClock()
const database = useDatabase({ migrated: true, clock })
const home = mkdtempSync(join(tmpdir(), 'custody-audit-kinds-'))
const PLACE = { code: 'ETH', to: `0x${'ab'.repeat(20)}`, held: '1', amount: '0.5' }
const stranger = privateKeyToAccount(`0x${'a7'.repeat(32)}`)
let devnet: Devnet
let fixture: FamilyFixture

before(async () => {
  devnet = await Devnet.start(home, 0, { now: () => clock.startMs })
  fixture = new FamilyFixture(database.get(), devnet, PLACE, clock)
  await fixture.open()
})
after(async () => {
  await fixture.close()
  devnet.close()
  rmSync(home, { recursive: true, force: true })
})

/**
 * Returns services without waits. The audit checks twice before it reports a difference, and
 * nothing changes here in between.
 */
const patient = (): Application => ({
  ...fixture.services,
  environment: { ...fixture.services.environment, sleep: async () => undefined },
})

test('Ether from a self-destructed contract is a surplus: exit code 1, but withdrawals continue', async () => {
  await fixture.check()
  await fixture.control({ command: 'fund', asset: 'ETH', address: stranger.address, amount: '1' })
  const chain = defineChain({
    id: 31337,
    name: 'local',
    nativeCurrency: { name: 'Ether', symbol: 'ETH', decimals: 18 },
    rpcUrls: { default: { http: [`${devnet.url}/eth`] } },
  })
  const wallet = createWalletClient({
    chain,
    transport: http(`${devnet.url}/eth`),
    account: stranger,
  })
  // Deploys a contract that self-destructs (PUSH20 address, SELFDESTRUCT): its whole balance goes
  // to the address, without a transaction or log of its own.
  await wallet.sendTransaction({
    data: `0x73${fixture.source.slice(2).toLowerCase()}ff`,
    value: parseEther('0.25'),
    gas: 200_000n,
  })
  await fixture.control({ command: 'mine', network: 'ETH', blocks: 3 })
  await fixture.scan()
  const report = await recordedAudit(patient())
  assert.equal(report.ok, false)
  assert.deepEqual(
    report.differences.map(({ kind, network, asset }) => ({ kind, network, asset })),
    [{ kind: 'surplus', network: 'ETH', asset: 'ETH' }],
  )
  const [{ ledger, chain: held } = { ledger: '', chain: '' }] = report.differences
  assert.equal(parseEther(held) - parseEther(ledger), parseEther('0.25'))
  const { differences, surpluses } = (await latestAudit(database.get())) ?? {}
  assert.deepEqual([differences, surpluses], [1, 1])
  assert.match(
    showAudit(report).join('\n'),
    /^DIFFERENCE ETH acme \w+ 0x\w+ ETH: ledger [\d.]+, chain [\d.]+ \(surplus\)$/m,
  )
  assert.match(
    showAudit(report).join('\n'),
    /\n1 differences: deficits 0, surpluses 1, not compared 0\. .*withdrawals need not be stopped\.$/,
  )
})

test('a ledger balance above the chain’s is a deficit, even if another account has a surplus', async () => {
  const services = patient()
  const { source } = fixture
  const before = await audit(services)
  const address = before.differences[0]?.subject.split(' ')[1] ?? source
  await database.get().query(
    `update ledger_accounts set balance = balance + 10 ^ 18 where asset = 'ETH' and balance > 0
        and kind = 'unswept' and address = $1`,
    [address],
  )
  await database.get().query(
    `update ledger_accounts set balance = balance + 10 ^ 18 where asset = 'ETH' and balance > 0
        and kind = 'available'`,
  )
  const report = await audit(services)
  assert.ok(
    report.differences.some(({ kind, network }) => kind === 'deficit' && network === 'ETH'),
    JSON.stringify(report.differences),
  )
  assert.match(
    showAudit(report).join('\n'),
    /\(DEFICIT[;)].*\n.*differences: deficits [1-9].* stop withdrawals\./s,
  )
})

test('a network that cannot be queried is reported as neither surplus nor deficit', async () => {
  const services = patient()
  const [chain] = services.networks.all()
  const away = { ...chain, balance: () => Promise.reject(new Error('away')) }
  Object.assign(services, { networks: { all: () => [away], has: () => true } })
  const report = await audit(services)
  assert.ok(
    report.differences.some(({ kind, subject }) => kind === 'unknown' && subject === 'endpoint'),
    JSON.stringify(report.differences),
  )
  assert.match(showAudit(report).join('\n'), /not compared [1-9]\d*\. .*repair the endpoint/)
})
