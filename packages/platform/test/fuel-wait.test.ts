import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { Devnet } from '../../devnet/src/devnet.ts'
import { useDatabase } from './deposits-support.ts'
import { FamilyFixture } from './family-fixture.ts'
import { ManualClock } from './manual-clock.ts'

/** A transfer that waits for its fuel: nothing but the fuel wakes it, and the fuel always does. */
const clock = new ManualClock()
const database = useDatabase({ migrated: true, clock })
const home = mkdtempSync(join(tmpdir(), 'custody-fuel-'))
const ETH = {
  code: 'ETH',
  to: '0x00000000000000000000000000000000000000AA',
  held: '5',
  amount: '1',
}
let devnet: Devnet

before(async () => {
  devnet = await Devnet.start(home, 0, { now: () => clock.startMs })
})
after(() => {
  devnet.close()
  rmSync(home, { recursive: true, force: true })
})

async function staged(play: (stage: FamilyFixture, id: string) => Promise<void>): Promise<void> {
  const stage = new FamilyFixture(database.get(), devnet, ETH, clock)
  try {
    await stage.open()
    await play(stage, await stage.create('fuelled'))
    await stage.run()
    await stage.check()
  } finally {
    await stage.close()
  }
}
const due = async (stage: FamilyFixture, id: string) =>
  (
    await stage.database.one<{ due: boolean }>(
      'select next_run_at <= $2 due from transactions where id = $1',
      [id, stage.database.now()],
    )
  )?.due

test('blocks without its fuel do not wake a transfer: many that wait for one tank cost nothing', () =>
  staged(async (stage, id) => {
    await stage.runTo(id, 'FUELING')
    assert.equal(await due(stage, id), false)
    await stage.control({ command: 'mine', blocks: 1 })
    await stage.scan()
    assert.equal(await due(stage, id), false, 'a block is no reason to look again')
  }))

test('fuel that is booked while its transfer is being processed wakes it anyway', () =>
  staged(async (stage, id) => {
    await stage.runTo(id, 'FUELING')
    const { arrived } = stage.services.tanks
    const tanks = stage.services.tanks as { arrived: typeof arrived }
    let came = false
    tanks.arrived = async (services, row) => {
      const answer = await arrived(services, row)
      if (row.id !== id || answer !== 'waits' || came) return answer
      came = true
      while ((await arrived(services, row)) === 'waits')
        assert.ok(await stage.turn(), 'the fuel is never booked')
      return answer
    }
    try {
      await stage.database.query('update transactions set next_run_at = $2 where id = $1', [
        id,
        stage.database.now(),
      ])
      for (let round = 0; !came && round < 50; round++) await stage.turn()
      assert.ok(came, 'it was never looked at')
      assert.equal(await due(stage, id), true)
    } finally {
      tanks.arrived = arrived
    }
  }))

test('fuel whose block is replaced by another with another base fee: the tank pays by the last one', () =>
  staged(async (stage, id) => {
    await stage.runTo(id, 'FUELING')
    const booked = () => stage.database.one(`select 1 from ledger_entries where kind = 'fuel'`)
    for (let round = 0; !(await booked()); round++)
      assert.ok(round < 50 && (await stage.turn()), 'the fuel is never booked')
    const feeOf = async () =>
      (
        await stage.database.one<{ fee: string }>(
          `select c.fee::text from chain_transactions c join transactions t on t.id = c.transaction_id where t.kind = 'FUEL'`,
        )
      )?.fee
    const before = await feeOf()
    await stage.control({ command: 'reorg', depth: 1 })
    await stage.run()
    assert.notEqual(await feeOf(), before, 'the fee is another')
  }))

test('a transfer whose block is removed between two queries is not final by a later head', () =>
  staged(async (stage, id) => {
    await stage.runTo(id, 'CONFIRMING')
    const { hash } = await stage.read(id)
    const client = stage.services.networks.client('ETH') as {
      status(hash: string): Promise<{ state: string }>
    }
    const { status } = client
    let isGone = false
    client.status = async (asked) => {
      const answer = await status.call(client, asked)
      if (asked !== hash || answer.state !== 'included' || isGone) return answer
      isGone = true
      await stage.control({ command: 'reorg', depth: 1, drop: true })
      await stage.control({ command: 'mine', blocks: 80 })
      return answer
    }
    try {
      await stage.run()
      assert.ok(isGone, 'the block never went')
      assert.equal((await stage.read(id)).status, 'confirmed')
      assert.equal(await stage.onChain(id), 1)
    } finally {
      client.status = status
    }
  }))
