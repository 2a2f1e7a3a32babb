import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import type { ChainTip } from '@custody/chains'
import { Devnet } from '../../devnet/src/devnet.ts'
import { useDatabase } from './deposits-support.ts'
import { FamilyFixture, type Place } from './family-fixture.ts'
import { ManualClock } from './manual-clock.ts'

/**
 * An endpoint that reports a head whose blocks it cannot return, on chains where depth decides
 * finality. No transfer ends and no deposit is credited by blocks that were never read, and the
 * scan does not request them endlessly.
 */
const clock = new ManualClock()
const database = useDatabase({ migrated: true, clock })
const home = mkdtempSync(join(tmpdir(), 'custody-lying-head-'))
let devnet: Devnet
/**
 * By so many blocks the endpoint is ahead of what it can show: more than any of these chains wants.
 */
const AHEAD = 60
/** Passes of a scan after which it is taken for one without end. */
const PASSES_MAX = 50

const PLACES: readonly Place[] = [
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

/** From now on the endpoint tells of a head that is not there, until `end` is called. */
function lie({ services, place }: FamilyFixture, ahead = AHEAD): { end(): void } {
  const { client } = services.networks.get(place.code)
  const honest = client.tip.bind(client)
  let asked = 0
  client.tip = async (): Promise<ChainTip> => {
    assert.ok(++asked <= PASSES_MAX, 'the scan asks without end for a block that is not there')
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
  test(`${place.code}: a transfer is not final by blocks that cannot be read, and ends well when its block is gone`, async () => {
    const stage = new FamilyFixture(database.get(), devnet, place, clock)
    try {
      await stage.open()
      const id = await stage.create('sent')
      await stage.sentHash(id)
      await stage.runTo(id, 'CONFIRMING')
      const head = lie(stage)
      await stage.control({ command: 'mine', blocks: 1 })
      await stage.scan()
      for (let look = 0; look < 5; look++) await lookAgain(stage, id)
      const { state, status, confirmations } = await stage.read(id)
      assert.deepEqual([state, status, confirmations], ['CONFIRMING', 'pending', 1])
      head.end()
      await stage.control({ command: 'reorg', depth: 1, drop: true })
      await stage.run()
      assert.deepEqual([(await stage.read(id)).state, await stage.onChain(id)], ['CONFIRMED', 1])
      await stage.check()
    } finally {
      await stage.close()
    }
  })

  test(`${place.code}: a deposit is not credited by blocks that cannot be read`, async () => {
    const stage = new FamilyFixture(database.get(), devnet, place, clock)
    try {
      await stage.open()
      const before = await stage.available()
      const head = lie(stage)
      await stage.control({
        command: 'fund',
        asset: place.code,
        address: stage.source,
        amount: place.amount,
      })
      await stage.control({ command: 'mine', blocks: 1 })
      await stage.scan()
      assert.equal(await stage.available(), before)
      const [deposit] = await stage.database.query<{ status: string; confirmations: number }>(
        `select status, confirmations from transactions where kind = 'DEPOSIT' order by created_at desc, id limit 1`,
      )
      assert.equal(deposit?.status, 'pending')
      head.end()
      await stage.run()
      assert.equal(await stage.available(), before + stage.amount)
      await stage.check()
    } finally {
      await stage.close()
    }
  })
}

test('a scan fails and is reported after a minute without the announced blocks, and continues once they appear', async () => {
  const [, place] = PLACES as [Place, Place]
  const stage = new FamilyFixture(database.get(), devnet, place, clock)
  try {
    await stage.open()
    const head = lie(stage, 1)
    await stage.scan()
    clock.advance(30_000)
    await stage.scan()
    clock.advance(31_000)
    await assert.rejects(
      stage.scan(),
      /BTC: the endpoint reports a head at \d+ and does not return block \d+/,
    )
    head.end()
    await stage.fund('1')
    await stage.check()
  } finally {
    await stage.close()
  }
})

test('no address is assigned while the endpoint cannot return its head, because the scan would begin at a doubtful block', async () => {
  const [, place] = PLACES as [Place, Place]
  const stage = new FamilyFixture(database.get(), devnet, place, clock)
  try {
    const head = lie(stage, 1)
    await assert.rejects(stage.open(), { code: 'NETWORK_UNAVAILABLE' })
    assert.deepEqual(await stage.database.query('select 1 from network_scans'), [])
    assert.deepEqual(await stage.database.query('select 1 from chain_addresses'), [])
    head.end()
    await stage.open()
  } finally {
    await stage.close()
  }
})

/** Makes the transfer due and processes it as a worker does. */
async function lookAgain(stage: FamilyFixture, id: string): Promise<void> {
  await stage.database.query('update transactions set next_run_at = $2 where id = $1', [
    id,
    stage.database.now(),
  ])
  await stage.step()
}
