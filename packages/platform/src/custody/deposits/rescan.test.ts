import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { RpcUnavailable, type ChainBlock, type FamilyName } from '@custody/chains'
import * as fc from '../../../../../testing/property.ts'
import { readRescan } from './rescan.ts'
import type { Application } from '../../server/app/application.ts'
import { rescan } from '../../server/operator/books/rescan-cli.ts'
import { endRescan, rescanProgress, startRescan } from '../../server/operator/books/rescan.ts'
import { startOperatorServer } from '../../server/operator/server.ts'
import {
  DEPTH,
  FAMILIES,
  useDatabase,
  DepositFixture,
  type Tenant,
} from '../../../testing/deposits-support.ts'

/**
 * Tests that a rescan finds deposits that a lying endpoint hid from the scan. It finds each once,
 * and screens it like every deposit.
 */
const database = useDatabase()
const home = mkdtempSync(join(tmpdir(), 'custody-rescan-'))
after(() => rmSync(home, { recursive: true, force: true }))

const FAMILY_NAMES = Object.keys(FAMILIES) as FamilyName[]

async function openFixture(
  family: FamilyName,
): Promise<{ fixture: DepositFixture; alice: Tenant; services: Application; lies: Lies }> {
  await database.started
  await database.admin().query('delete from rescans')
  const fixture = new DepositFixture(database.get(), family)
  await fixture.open()
  const lies = new Lies(fixture)
  const services = Object.assign(fixture.services, {
    settings: { ...fixture.services.settings, home },
    hold: { because: null, shortage: null, assertNone: () => undefined },
  })
  services.environment.sleep = async () => undefined
  return { fixture, alice: await fixture.tenant('alice'), services, lies }
}

/**
 * Heights that the endpoint returns without their transactions on each request, and heights that it
 * cannot return.
 */
class Lies {
  readonly empty = new Set<number>()
  readonly missing = new Set<number>()
  readonly requests: number[] = []

  constructor({ chain }: DepositFixture) {
    const honest = chain.block.bind(chain)
    chain.block = async (height: number): Promise<ChainBlock | null> => {
      this.requests.push(height)
      if (this.missing.has(height)) throw new RpcUnavailable(`the endpoint does not keep ${height}`)
      const block = await honest(height)
      return block && (this.empty.has(height) ? { ...block, txids: [], transfers: [] } : block)
    }
  }
}

const pay = (
  fixture: DepositFixture,
  tenant: Tenant,
  txid: string,
  amount: bigint,
  asset = fixture.assets[0],
) =>
  fixture.chain.mine({ txid, outcome: [{ position: 0, asset, address: tenant.deposit, amount }] })

/** Resolves when the rescan has ended, as the command waits for it. */
async function run(
  services: Application,
  network: string,
  input: Record<string, unknown>,
): Promise<Record<string, unknown>> {
  await startRescan(services, { network, ...input })
  for (let look = 0; look < 10_000; look++) {
    const progress = await rescanProgress(services, { network })
    if (progress['done'] === true || progress['running'] !== true) return progress
    await new Promise((resolve) => {
      setTimeout(resolve, 2)
    })
  }
  return assert.fail('the rescan does not end')
}

for (const family of FAMILY_NAMES) {
  test(`${family}: a rescan credits a missed deposit once, however often it runs`, async () => {
    const { fixture, alice, services, lies } = await openFixture(family)
    const { code } = fixture.network
    const [asset] = fixture.assets
    pay(fixture, alice, 'seen', 5n)
    const hidden = pay(fixture, alice, 'hidden', 7n)
    lies.empty.add(hidden.height)
    fixture.chain.bury()
    await fixture.settle()
    assert.deepEqual(await fixture.books(alice), { [asset]: '5' }, 'it is lost')
    lies.empty.clear()
    assert.deepEqual(await run(services, code, { from: '1' }), {
      network: code,
      from: 1,
      to: DEPTH + 2,
      heights: DEPTH + 2,
      deposits: 1,
      done: true,
      running: false,
      reason: null,
    })
    fixture.chain.mine()
    await fixture.settle()
    assert.deepEqual(await fixture.books(alice), { [asset]: '12' })
    for (const input of [
      { from: '1' },
      { from: '0', to: '3' },
      { from: String(hidden.height), to: String(hidden.height) },
    ]) {
      assert.equal((await run(services, code, input))['deposits'], 0)
      await fixture.settle()
    }
    assert.deepEqual(await fixture.books(alice), { [asset]: '12' })
    assert.deepEqual(
      (await fixture.deposits()).map(({ state }) => state),
      ['CREDITED', 'CREDITED'],
    )
  })
}

test('a deposit found by a rescan is screened, and emits the events of every deposit', async () => {
  const { fixture, alice, services, lies } = await openFixture('evm')
  await fixture.screenDeposits(alice)
  fixture.risks.set('somebody', 'SEVERE')
  const hidden = pay(fixture, alice, '0xhidden', 7n)
  lies.empty.add(hidden.height)
  fixture.chain.bury()
  await fixture.settle()
  lies.empty.clear()
  await run(services, 'ETH', { from: '1' })
  fixture.chain.mine()
  await fixture.settle()
  assert.deepEqual(
    (await fixture.deposits()).map(({ state }) => state),
    ['FROZEN'],
  )
  assert.ok(fixture.requests.includes('somebody'))
  const events = await fixture.database.query<{ type: string }>(
    'select type from events where workspace_id = $1 order by id',
    [alice.workspace],
  )
  assert.deepEqual(
    events.map(({ type }) => type),
    ['deposit.detected', 'address.frozen', 'deposit.frozen'],
  )
})

test('a rescan credits no removed deposit, and a later reorganisation removes its deposits', async () => {
  const { fixture, alice, services, lies } = await openFixture('evm')
  const gone = pay(fixture, alice, '0xgone', 7n, 'ETH')
  await fixture.settle()
  fixture.chain.drop(1)
  fixture.chain.mine()
  fixture.chain.bury()
  await fixture.settle()
  assert.deepEqual(
    (await fixture.deposits()).map(({ state }) => state),
    ['REORGED'],
  )
  await run(services, 'ETH', { from: '1' })
  await fixture.settle()
  assert.deepEqual(
    (await fixture.deposits()).map(({ state }) => state),
    ['REORGED'],
  )
  // If the endpoint still returns the block that was removed, the result is ignored, because the
  // scan has read another block at that height.
  const honest = fixture.chain.block.bind(fixture.chain)
  fixture.chain.block = async (height) =>
    height === gone.height ? structuredClone(gone) : honest(height)
  const stopped = await run(services, 'ETH', { from: String(gone.height), to: String(gone.height) })
  assert.equal(stopped['done'], false)
  assert.match(String(stopped['reason']), /returns another block at \d+ than the scan has read/)
  fixture.chain.block = honest

  const late = pay(fixture, alice, '0xlate', 9n, 'ETH')
  lies.empty.add(late.height)
  await fixture.scan()
  lies.empty.clear()
  assert.equal((await run(services, 'ETH', { from: String(late.height) }))['deposits'], 1)
  await fixture.settle()
  assert.deepEqual(await fixture.books(alice), {}, 'its block is not final')
  fixture.chain.drop(1)
  fixture.chain.mine()
  fixture.chain.bury()
  await fixture.settle()
  assert.deepEqual(await fixture.books(alice), {})
  assert.deepEqual(
    (await fixture.deposits()).map(({ state }) => state),
    ['REORGED', 'REORGED'],
  )
})

test('an interrupted rescan resumes at the same block, while the regular scan continues', async () => {
  const { fixture, alice, services, lies } = await openFixture('evm')
  for (let count = 0; count < 40; count++) fixture.chain.mine()
  const hidden = pay(fixture, alice, '0xhidden', 7n, 'ETH')
  lies.empty.add(hidden.height)
  fixture.chain.bury()
  await fixture.settle()
  lies.empty.clear()
  lies.missing.add(30)
  const failed = await run(services, 'ETH', { from: '1' })
  assert.deepEqual(
    [failed['done'], failed['running'], failed['reason']],
    [false, false, 'the endpoint does not keep 30'],
  )
  const done = Number(failed['heights'])
  assert.ok(done > 0 && done < 30)
  // The process ends after one part of the range; the next process continues after that part.
  lies.missing.clear()
  let parts = 0
  services.environment.checkpoint = (name) => {
    if (name === 'rescan.part' && ++parts === 1) throw new Error('the process ended here')
  }
  const ended = await run(services, 'ETH', { from: '1' })
  assert.equal(ended['done'], false)
  services.environment.checkpoint = () => undefined
  // The scan of the network continues and finds the new deposit.
  pay(fixture, alice, '0xnew', 1n, 'ETH')
  await fixture.scan()
  lies.requests.length = 0
  const whole = await run(services, 'ETH', { from: '1' })
  assert.deepEqual([whole['done'], whole['deposits'], whole['to']], [true, 1, 41 + DEPTH])
  assert.ok(
    Math.min(...lies.requests) > done,
    `it went on behind ${done}, not at ${Math.min(...lies.requests)}`,
  )
  fixture.chain.bury()
  await fixture.settle()
  assert.deepEqual(await fixture.books(alice), { ETH: '8' })
})

test('a second rescan of a network is refused until the first ends or is cancelled', async () => {
  const { fixture, services, lies } = await openFixture('evm')
  for (let count = 0; count < 5; count++) fixture.chain.mine()
  await fixture.settle()
  lies.missing.add(3)
  const pause = Promise.withResolvers<void>()
  services.environment.sleep = () => pause.promise
  await startRescan(services, { network: 'ETH', from: '3' })
  await assert.rejects(
    startRescan(services, { network: 'ETH', from: '1' }),
    /the rescan of ETH from 3 to 5 is in progress, at 3: wait until it ends, or stop it with "npx custody rescan ETH --stop"/,
  )
  assert.equal((await startRescan(services, { network: 'ETH', from: '3' }))['started'], false)
  assert.equal((await endRescan(services, { network: 'ETH' }))['running'], false)
  pause.resolve()
  lies.missing.clear()
  services.environment.sleep = async () => undefined
  assert.equal((await run(services, 'ETH', { from: '1' }))['done'], true)
  assert.equal((await readRescan(services, 'ETH'))?.to, 5)
})

test('custody rescan names bad input, prints progress, and exits 0 only if it read everything', async () => {
  const { fixture, alice, services, lies } = await openFixture('evm')
  const hidden = pay(fixture, alice, '0xhidden', 7n, 'ETH')
  lies.empty.add(hidden.height)
  fixture.chain.bury()
  await fixture.settle()
  lies.empty.clear()
  const operator = await startOperatorServer(services)
  const written: string[] = []
  const write = process.stdout.write.bind(process.stdout)
  process.stdout.write = ((text: unknown) => {
    written.push(String(text))
    return true
  }) as never
  try {
    const head = 1 + DEPTH
    const bad: [string, Record<string, string>, RegExp][] = [
      ['NOPE', { from: '1' }, /^NETWORK: "NOPE" is not a network; use one of .*ETH/],
      ['BTC', { from: '1' }, /^NETWORK: no endpoint is configured for BTC/],
      ['ETH', {}, /^--from is required/],
      ['ETH', { from: '-1' }, /^--from: "-1" is not a height/],
      ['ETH', { from: '1.5' }, /^--from: "1.5" is not a height/],
      ['ETH', { from: '0x1' }, /^--from: "0x1" is not a height/],
      ['ETH', { from: '1', to: 'x' }, /^--to: "x" is not a height/],
      ['ETH', { from: '9'.repeat(16) }, /is not a height/],
      ['ETH', { from: String(head + 1) }, new RegExp(`^--from: ${head + 1} is beyond ${head}`)],
      [
        'ETH',
        { from: '1', to: String(head + 1) },
        new RegExp(`^--to: ${head + 1} is beyond ${head}`),
      ],
      ['ETH', { from: '2', to: '1' }, /^--from: 2 is above --to, which is 1/],
    ]
    for (const [network, values, message] of bad) {
      await assert.rejects(rescan(home, network, values), (error: Error) => {
        assert.match(error.message, message)
        return true
      })
    }
    await assert.rejects(rescan(home, 'ETH', { stop: true }), /ETH was never rescanned/)
    const { result, exitCode } = await rescan(home, 'ETH', { from: '1' })
    assert.deepEqual([exitCode, result['deposits'], result['heights']], [0, 1, head])
    assert.ok(
      written.includes(`ETH: ${head} of ${head} heights read, 1 deposits found\n`),
      written.join(''),
    )
    lies.missing.add(2)
    const stopped = await rescan(home, 'ETH', { from: '2' })
    assert.deepEqual(
      [stopped.exitCode, stopped.text],
      [1, 'the rescan was stopped; run the command again to continue at 2'],
    )
    assert.ok(
      written.some((line) => line.includes('waiting: the endpoint does not keep 2')),
      written.join(''),
    )
  } finally {
    process.stdout.write = write
    await operator.close()
  }
})

test('for any hidden blocks and rescans, each payment of the final chain is credited once', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.constantFrom(...FAMILY_NAMES),
      fc.array(fc.record({ paid: fc.integer({ min: 0, max: 3 }), hidden: fc.boolean() }), {
        minLength: 1,
        maxLength: 12,
      }),
      fc.array(fc.tuple(fc.nat(14), fc.nat(14)), { maxLength: 3 }),
      fc.integer({ min: 0, max: DEPTH - 1 }),
      async (family, blocks, ranges, dropped) => {
        const { fixture, alice, services, lies } = await openFixture(family)
        const { code } = fixture.network
        for (const [at, { paid, hidden }] of blocks.entries()) {
          const outcome = Array.from({ length: paid }, (_, position) => ({
            position,
            asset: fixture.assets[0],
            address: alice.deposit,
            amount: 3n,
          }))
          const { height } = fixture.chain.mine({ txid: `tx${at}`, outcome })
          if (hidden) lies.empty.add(height)
          await fixture.scan()
        }
        const again = async (from: number, to: number) => {
          const head = fixture.chain.blocks.length - 1
          const [low, high] = [Math.min(from, to, head), Math.min(Math.max(from, to), head)]
          await run(services, code, { from: String(low), to: String(high) })
        }
        for (const [from, to] of ranges) await again(from, to)
        lies.empty.clear()
        fixture.chain.drop(dropped)
        fixture.chain.bury()
        fixture.chain.mine()
        await fixture.settle()
        for (const [from, to] of [...ranges, [0, 1000] as const]) await again(from, to)
        // While no new block arrives, the scan checks for waiting deposits only every few seconds.
        fixture.now += 60_000
        await fixture.settle()
        const owed = fixture.chain.blocks
          .flatMap(({ transfers }) => transfers)
          .reduce((sum, { amount }) => sum + amount, 0n)
        assert.deepEqual(
          await fixture.books(alice),
          owed === 0n ? {} : { [fixture.assets[0]]: String(owed) },
        )
      },
    ),
    { numRuns: 25 },
  )
})
