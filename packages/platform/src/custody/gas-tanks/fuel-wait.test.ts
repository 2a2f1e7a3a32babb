import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { Devnet } from '../../../../devnet/src/devnet.ts'
import { useDatabase } from '../../../testing/deposits-support.ts'
import { FamilyFixture } from '../../../testing/chains/family-fixture.ts'
import { ManualClock } from '../../../testing/manual-clock.ts'

/**
 * Tests of a transfer that waits for its fuel transaction: only the fuel transaction wakes the
 * transfer, and it always does.
 */
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

async function staged(play: (fixture: FamilyFixture, id: string) => Promise<void>): Promise<void> {
  const fixture = new FamilyFixture(database.get(), devnet, ETH, clock)
  try {
    await fixture.open()
    await play(fixture, await fixture.create('fuelled'))
    await fixture.run()
    await fixture.check()
  } finally {
    await fixture.close()
  }
}
const due = async (fixture: FamilyFixture, id: string) =>
  (
    await fixture.database.one<{ due: boolean }>(
      'select next_run_at <= $2 due from transactions where id = $1',
      [id, fixture.database.now()],
    )
  )?.due

test('a block without a transfer’s fuel transaction does not wake the transfer', () =>
  staged(async (fixture, id) => {
    await fixture.runTo(id, 'FUELING')
    assert.equal(await due(fixture, id), false)
    await fixture.control({ command: 'mine', blocks: 1 })
    await fixture.scan()
    assert.equal(await due(fixture, id), false, 'a block is no reason to look again')
  }))

test('a fuel transaction booked while its transfer is processed wakes the transfer', () =>
  staged(async (fixture, id) => {
    await fixture.runTo(id, 'FUELING')
    const { arrived } = fixture.services.tanks
    const tanks = fixture.services.tanks as { arrived: typeof arrived }
    let came = false
    tanks.arrived = async (row) => {
      const answer = await arrived(row)
      if (row.id !== id || answer !== 'waits' || came) return answer
      came = true
      while ((await arrived(row)) === 'waits')
        assert.ok(await fixture.turn(), 'the fuel is never booked')
      return answer
    }
    try {
      await fixture.database.query('update transactions set next_run_at = $2 where id = $1', [
        id,
        fixture.database.now(),
      ])
      for (let round = 0; !came && round < 50; round++) await fixture.turn()
      assert.ok(came, 'it was never looked at')
      assert.equal(await due(fixture, id), true)
    } finally {
      tanks.arrived = arrived
    }
  }))

test('the tank pays the fee of the final block if a reorganisation changes its base fee', () =>
  staged(async (fixture, id) => {
    await fixture.runTo(id, 'FUELING')
    const booked = () => fixture.database.one(`select 1 from ledger_entries where kind = 'fuel'`)
    for (let round = 0; !(await booked()); round++)
      assert.ok(round < 50 && (await fixture.turn()), 'the fuel is never booked')
    const feeOf = async () =>
      (
        await fixture.database.one<{ fee: string }>(
          `select c.fee::text from chain_transactions c
            join transactions t on t.id = c.transaction_id where t.kind = 'FUEL'`,
        )
      )?.fee
    const before = await feeOf()
    await fixture.control({ command: 'reorg', depth: 1 })
    await fixture.run()
    assert.notEqual(await feeOf(), before, 'the fee is another')
  }))

test('a transfer whose block is removed between two queries does not become final', () =>
  staged(async (fixture, id) => {
    await fixture.runTo(id, 'CONFIRMING')
    const { hash } = await fixture.read(id)
    const client = fixture.services.networks.client('ETH') as {
      status(hash: string): Promise<{ state: string }>
    }
    const { status } = client
    let isGone = false
    client.status = async (sql) => {
      const answer = await status.call(client, sql)
      if (sql !== hash || answer.state !== 'included' || isGone) return answer
      isGone = true
      await fixture.control({ command: 'reorg', depth: 1, drop: true })
      await fixture.control({ command: 'mine', blocks: 80 })
      return answer
    }
    try {
      await fixture.run()
      assert.ok(isGone, 'the block never went')
      assert.equal((await fixture.read(id)).status, 'confirmed')
      assert.equal(await fixture.onChain(id), 1)
    } finally {
      client.status = status
    }
  }))
