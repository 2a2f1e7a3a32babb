import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { createWalletClient, defineChain, http, parseEther } from 'viem'
import { privateKeyToAccount } from 'viem/accounts'
import { Devnet } from '../../../../devnet/src/devnet.ts'
import { audit } from './audit.ts'
import { auditLoop } from './loop.ts'
import { latestAudit, recordedAudit } from './recorded.ts'
import type { Application } from '../app/application.ts'
import type { Chain } from '../../core/engine/chain.ts'
import { adoptIntoBooks } from '../operator/books/adopt.ts'
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

/** Services for which the chain holds more, or less, of an asset at the wallet's address. */
function holding(name: string, more: bigint): Application {
  const [chain] = fixture.services.networks.all()
  const changed: Chain = {
    ...chain!,
    balances: async (addresses, asset) =>
      (await chain!.balances!(addresses, asset)).map((amount, at) =>
        asset.asset_name === name && addresses[at] === fixture.source ? amount + more : amount,
      ),
  }
  return Object.assign(patient(), { networks: { all: () => [changed], has: () => true } })
}

// A thousandth of the fee cap of ETH, and what it is worth at least in a token that is worth most.
for (const [name, minimum, unit, below] of [
  ['ETH', 10n ** 14n, '0.000000000000000001', '0.000099999999999999'],
  ['USDT_ETH', 10_000n, '0.000001', '0.009999'],
] as const) {
  test(`a surplus of ${name} below the cost of a sweep is dust, which leaves the audit green`, async () => {
    await fixture.check()
    for (const [more, amount] of [
      [1n, unit],
      [minimum - 1n, below],
    ] as const) {
      const report = await recordedAudit(holding(name, more))
      assert.deepEqual([report.ok, report.differences], [true, []])
      assert.deepEqual(report.dust, [
        { kind: 'dust', network: 'ETH', asset: name, addresses: 1, amount },
      ])
      const { differences, surpluses } = (await latestAudit(database.get())) ?? {}
      assert.deepEqual([differences, surpluses], [0, 0])
      assert.deepEqual(showAudit(report).slice(-2), [
        `DUST ${name}: 1 address holds ${amount} more than the ledger records, each less than a sweep costs`,
        'the ledger agrees with the chains',
      ])
    }
  })

  test(`a surplus of ${name} of the cost of a sweep, and a deficit of one unit, are differences`, async () => {
    const surplus = await audit(holding(name, minimum))
    assert.deepEqual(
      [surplus.ok, surplus.dust, surplus.differences.map(({ kind, asset }) => [kind, asset])],
      [false, [], [['surplus', name]]],
    )
    const deficit = await audit(holding(name, -1n))
    assert.deepEqual(
      [deficit.ok, deficit.dust, deficit.differences.map(({ kind, asset }) => [kind, asset])],
      [false, [], [['deficit', name]]],
    )
  })
}

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
  // Networks without addresses and coins are counted, and not listed.
  const none = { addresses: 0, coins: 0 }
  const networks = { ETH: { addresses: 1, coins: 0 }, BTC: none, LTC: { addresses: 0, coins: 2 } }
  assert.match(
    showAudit({ ...report, networks: { ...networks, XRP: none } })[0] ?? '',
    /^\d+ ledger entries; ETH: 1 address, LTC: 2 coins, nothing on 2 networks$/,
  )
  assert.match(
    showAudit(report).join('\n'),
    /^DIFFERENCE ETH acme \w+ 0x\w+ ETH: ledger [\d.]+, chain [\d.]+ \(surplus\)$/m,
  )
  assert.match(
    showAudit(report).join('\n'),
    /\n1 difference: deficits 0, surpluses 1, not compared 0\. .*withdrawals need not be stopped\.$/,
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

test('while the endpoint contradicts a final block, its differences are neither, and none is recorded', async () => {
  const services = patient()
  const contradiction = { height: 7, known: 'aa', other: 'bb', since: '2026-01-01T00:00:00.000Z' }
  const set = (value: unknown) =>
    database.get().query('update network_scans set contradiction = $1', [value])
  await set(JSON.stringify(contradiction))
  const report = await audit(services)
  const ofChain = report.differences.filter(({ network }) => network === 'ETH')
  assert.ok(ofChain.length > 0 && ofChain.every(({ kind }) => kind === 'reorganised'))
  assert.match(
    showAudit(report).join('\n'),
    /\(reorganised; .* accept-reorg ETH 7 bb\)\n.*, reorganised [1-9].*decide which chain is right/s,
  )
  const input = { asset: 'ETH', amount: '0.25', address: fixture.source }
  await assert.rejects(adoptIntoBooks(services, input), /--asset: nothing can be recorded now: /)
  await set(null)
  assert.ok((await audit(services)).differences.every(({ kind }) => kind !== 'reorganised'))
})

test('a network that cannot be queried is reported as neither surplus nor deficit', async () => {
  const services = patient()
  const [chain] = services.networks.all()
  const away = { ...chain, balances: () => Promise.reject(new Error('away')) }
  Object.assign(services, { networks: { all: () => [away], has: () => true } })
  const report = await audit(services)
  assert.ok(
    report.differences.some(({ kind, subject }) => kind === 'unknown' && subject === 'endpoint'),
    JSON.stringify(report.differences),
  )
  assert.match(showAudit(report).join('\n'), /not compared [1-9]\d*\. .*repair the endpoint/)
})

const EVERY_MS = 6 * 3_600_000

/** Returns the loop of one worker, and the messages that it logs. */
function worker(change: Partial<Application> = {}) {
  const lines: string[] = []
  const note = (level: string) => (_fields: unknown, text: string) => lines.push(`${level} ${text}`)
  const log = { info: note('info'), warn: note('warn'), error: note('error') }
  const services = Object.assign(patient(), change, {
    log,
    settings: { ...fixture.services.settings, auditEveryMs: EVERY_MS },
  })
  const loop = auditLoop(services)
  return { lines, run: (signal = new AbortController().signal) => loop.run(signal), loop }
}
const audits = async () =>
  Number((await database.get().one<{ count: string }>('select count(*) from audits'))?.count)
const isDue = async () =>
  (
    await database
      .get()
      .one<{ due: boolean }>(`select ${worker().loop.due} due`, [new Date(clock.now())])
  )?.due === true

test('one of several workers audits when it is due, and logs each deficit as an error', async () => {
  await database
    .get()
    .query(`insert into installation (network) values ('local') on conflict do nothing`)
  const before = await audits()
  assert.ok(await isDue(), 'a new installation has no time of its first audit')
  await worker().run()
  assert.deepEqual([await audits(), await isDue()], [before, false])
  await clock.advance(EVERY_MS - 1)
  await worker().run()
  assert.deepEqual([await audits(), await isDue()], [before, false])
  await clock.advance(1)
  assert.ok(await isDue())
  const workers = [worker(), worker(), worker()]
  await Promise.all(workers.map(({ run }) => run()))
  assert.deepEqual([await audits(), await isDue()], [before + 1, false])
  const [told = [], ...silent] = workers
    .map(({ lines }) => lines)
    .sort((a, b) => b.length - a.length)
  assert.deepEqual(silent, [[], []])
  assert.ok(told.includes('error the ledger differs from a chain'), told.join())
  assert.equal(told.at(-1), 'info the audit was completed')
})

test('an audit that is stopped is due at once, a failed one later, a killed one at the next time', async () => {
  const before = await audits()
  await clock.advance(EVERY_MS)
  const stop = new AbortController()
  const [chain] = fixture.services.networks.all()
  const stopped = worker({
    networks: { all: () => (stop.abort(), [chain]), has: () => true } as never,
  })
  await stopped.run(stop.signal)
  assert.deepEqual([await audits(), await isDue(), stopped.lines], [before, true, []])

  const failed = worker({
    networks: {
      all: () => {
        throw new Error('no connection')
      },
    } as never,
  })
  await assert.rejects(failed.run(), /no connection/)
  assert.equal(await isDue(), false)
  await clock.advance(15 * 60_000)
  assert.ok(await isDue())

  fixture.crashAt = 'audit.claimed'
  await assert.rejects(worker().run(), /the process ended here/)
  assert.equal(await isDue(), false)
  await clock.advance(EVERY_MS)
  await worker().run()
  assert.equal(await audits(), before + 1)
})
