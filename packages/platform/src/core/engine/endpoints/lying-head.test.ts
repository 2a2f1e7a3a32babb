import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import type { ChainTip } from '@custody/chains'
import { Devnet } from '../../../../../devnet/src/devnet.ts'
import { useDatabase } from '../../../../testing/deposits-support.ts'
import { FamilyFixture, type WalletAddress } from '../../../../testing/chains/family-fixture.ts'
import { ManualClock } from '../../../../testing/manual-clock.ts'

/**
 * Tests with an endpoint that reports a head whose blocks it cannot return, on chains where depth
 * decides finality. No transfer ends and no deposit is credited by blocks that were never read, and
 * the scan does not request them endlessly.
 */
const clock = new ManualClock()
const database = useDatabase({ migrated: true, clock })
const home = mkdtempSync(join(tmpdir(), 'custody-lying-head-'))
let devnet: Devnet
/**
 * Number of blocks by which the reported head exceeds the blocks that the endpoint can return; more
 * confirmations than any of these chains requires.
 */
const AHEAD = 60
/** Number of passes after which a scan is considered endless. */
const PASSES_MAX = 50

const PLACES: readonly WalletAddress[] = [
  { code: 'FTM', to: '0x00000000000000000000000000000000000000AA', held: '5', amount: '1' },
  { code: 'BTC', to: 'bcrt1q6z64a43mjgkcq0ul2znwneq3spghrlau9slefp', held: '2', amount: '0.5' },
  {
    code: 'ADA',
    to: 'addr_test1vz2fxv2umyhttkxyxp8x0dlpdt3k6cwng5pxj3jhsydzerspjrlsz',
    held: '50',
    amount: '3',
  },
]

before(async () => {
  devnet = await Devnet.start(home, 0, { now: () => clock.startMs })
})
after(() => {
  devnet.close()
  rmSync(home, { recursive: true, force: true })
})

/** Makes the endpoint report a head that does not exist, until `end` is called. */
function lie({ services, place }: FamilyFixture, ahead = AHEAD): { end(): void } {
  const { client } = services.networks.get(place.code)
  const honest = client.tip.bind(client)
  let requestCount = 0
  client.tip = async (): Promise<ChainTip> => {
    assert.ok(
      ++requestCount <= PASSES_MAX,
      'the scan asks without end for a block that is not there',
    )
    const { height, finalHeight } = await honest()
    return { height: height + ahead, hash: 'ab'.repeat(32), finalHeight }
  }
  return {
    end: () => {
      client.tip = honest
    },
  }
}

for (const place of PLACES) {
  test(`${place.code}: a transfer is not final while blocks above it cannot be read`, async () => {
    const fixture = new FamilyFixture(database.get(), devnet, place, clock)
    try {
      await fixture.open()
      const id = await fixture.create('sent')
      await fixture.sentHash(id)
      await fixture.runTo(id, 'CONFIRMING')
      const head = lie(fixture)
      await fixture.control({ command: 'mine', blocks: 1 })
      await fixture.scan()
      for (let look = 0; look < 5; look++) await lookAgain(fixture, id)
      const { state, status, confirmations } = await fixture.read(id)
      assert.deepEqual([state, status, confirmations], ['CONFIRMING', 'pending', 1])
      head.end()
      await fixture.control({ command: 'reorg', depth: 1, drop: true })
      await fixture.run()
      assert.deepEqual(
        [(await fixture.read(id)).state, await fixture.onChain(id)],
        ['CONFIRMED', 1],
      )
      await fixture.check()
    } finally {
      await fixture.close()
    }
  })

  test(`${place.code}: a deposit is not credited while blocks above it cannot be read`, async () => {
    const fixture = new FamilyFixture(database.get(), devnet, place, clock)
    try {
      await fixture.open()
      const before = await fixture.available()
      const head = lie(fixture)
      await fixture.control({
        command: 'fund',
        asset: place.code,
        address: fixture.source,
        amount: place.amount,
      })
      await fixture.control({ command: 'mine', blocks: 1 })
      await fixture.scan()
      assert.equal(await fixture.available(), before)
      const [deposit] = await fixture.database.query<{ status: string; confirmations: number }>(
        `select status, confirmations from transactions where kind = 'DEPOSIT'
          order by created_at desc, id limit 1`,
      )
      assert.equal(deposit?.status, 'pending')
      head.end()
      await fixture.run()
      assert.equal(await fixture.available(), before + fixture.amount)
      await fixture.check()
    } finally {
      await fixture.close()
    }
  })
}

test('a scan fails after a minute without the announced blocks, and continues once they exist', async () => {
  const [, place] = PLACES as [WalletAddress, WalletAddress]
  const fixture = new FamilyFixture(database.get(), devnet, place, clock)
  try {
    await fixture.open()
    const head = lie(fixture, 1)
    await fixture.scan()
    clock.advance(30_000)
    await fixture.scan()
    clock.advance(31_000)
    await assert.rejects(
      fixture.scan(),
      /BTC: the endpoint reports \d+ as its newest block, but does not return block \d+/,
    )
    head.end()
    await fixture.fund('1')
    await fixture.check()
  } finally {
    await fixture.close()
  }
})

test('assigns no address while the endpoint cannot return the block of its head', async () => {
  const [, place] = PLACES as [WalletAddress, WalletAddress]
  const fixture = new FamilyFixture(database.get(), devnet, place, clock)
  try {
    const head = lie(fixture, 1)
    await assert.rejects(fixture.open(), { code: 'NETWORK_UNAVAILABLE' })
    assert.deepEqual(await fixture.database.query('select 1 from network_scans'), [])
    assert.deepEqual(await fixture.database.query('select 1 from chain_addresses'), [])
    head.end()
    await fixture.open()
  } finally {
    await fixture.close()
  }
})

/** Makes the transfer due and processes it as a worker does. */
async function lookAgain(fixture: FamilyFixture, id: string): Promise<void> {
  await fixture.database.query('update transactions set next_run_at = $2 where id = $1', [
    id,
    fixture.database.now(),
  ])
  await fixture.step()
}
