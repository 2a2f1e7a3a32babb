import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, beforeEach, test } from 'node:test'
import { Devnet } from '../../../../../devnet/src/devnet.ts'
import { rescanProgress, startRescan } from '../../../server/operator/books/rescan.ts'
import type { TransactionRow } from '../../../core/engine/transaction.ts'
import { useDatabase } from '../../../../testing/deposits-support.ts'
import { FamilyFixture } from '../../../../testing/chains/family-fixture.ts'
import { ManualClock } from '../../../../testing/manual-clock.ts'

/**
 * Tests of validators' withdrawals at endpoints that may omit them. The local chain makes none, so
 * they are added to the endpoints' blocks.
 */
const clock = new ManualClock()
const database = useDatabase({ migrated: true, clock })
const home = mkdtempSync(join(tmpdir(), 'custody-withdrawals-'))
const PLACE = { code: 'ETH', to: `0x${'ab'.repeat(20)}`, held: '1', amount: '0.5' }
const GWEI = 10n ** 9n
/** Number of blocks after which a block is final on the local chain. */
const FINAL_BLOCKS = 80
let devnet: Devnet
/** Height of the block with the withdrawal, its payee, and the hosts that omit it. */
let paid: { height: number; address: string } | null
let omitting: string[]

interface Block {
  number: string
  withdrawals?: unknown[]
}

/** Sends a request for any host to the local chain. */
const ask: typeof fetch = async (url, init) => {
  const { hostname, pathname } = new URL(String(url))
  const { method } = JSON.parse(String(init?.body)) as { method: string }
  const response = await fetch(`${devnet.url}${pathname}`, init)
  const answer = (await response.json()) as { result?: Block | null }
  const block = method === 'eth_getBlockByNumber' ? answer.result : null
  if (block && Number(block.number) === paid?.height && !omitting.includes(hostname))
    block.withdrawals = [
      { index: '0x5', validatorIndex: '0x7', address: paid.address, amount: '0x3e8' },
    ]
  return Response.json(answer, { status: response.status })
}

before(async () => {
  devnet = await Devnet.start(home, 0, { now: () => clock.startMs })
})
beforeEach(async () => {
  paid = null
  omitting = []
  await database.admin().query('delete from rescans')
})
after(() => {
  devnet.close()
  rmSync(home, { recursive: true, force: true })
})

async function opened(hosts: readonly string[]): Promise<FamilyFixture> {
  const fixture = new FamilyFixture(database.get(), devnet, PLACE, clock, ask, {
    endpoints: hosts.map((host) => ({ url: `http://${host}/eth` })),
    quorum: Math.min(2, hosts.length),
  })
  await fixture.open()
  return fixture
}

/** Adds a withdrawal of 1000 Gwei to the next block, and mines until the block is final. */
async function withdraw(fixture: FamilyFixture): Promise<void> {
  const { height } = await fixture.services.networks.client('ETH').tip()
  paid = { height: height + 1, address: fixture.source.toLowerCase() }
  for (const blocks of [1, FINAL_BLOCKS]) {
    await fixture.control({ command: 'mine', blocks })
    await fixture.scan()
  }
  await fixture.run()
}
const withdrawals = (fixture: FamilyFixture) =>
  fixture.database.query<TransactionRow>(
    `select t.* from transactions t join deposits d on d.transaction_id = t.id
     where d.txid like 'withdrawal:%'`,
  )

test('two of three endpoints are sufficient for a withdrawal that one omits', async () => {
  for (const host of ['a', 'b', 'c']) {
    const fixture = await opened(['a', 'b', 'c'])
    const before = await fixture.available()
    omitting = [host]
    await withdraw(fixture)
    assert.deepEqual(
      (await withdrawals(fixture)).map(({ status, hash }) => [status, hash]),
      [['confirmed', null]],
      host,
    )
    assert.equal((await fixture.available()) - before, 1000n * GWEI)
  }
})

test('a withdrawal that only one of three endpoints reports is not credited', async () => {
  const fixture = await opened(['a', 'b', 'c'])
  const before = await fixture.available()
  omitting = ['b', 'c']
  const { height } = await fixture.services.networks.client('ETH').tip()
  paid = { height: height + 1, address: fixture.source.toLowerCase() }
  for (let round = 0; round < 20; round++) {
    await fixture.control({ command: 'mine', blocks: round === 1 ? FINAL_BLOCKS : 1 })
    await fixture.scan()
    clock.advance(30_000)
  }
  assert.deepEqual(
    (await withdrawals(fixture)).map(({ state }) => state),
    ['REORGED'],
  )
  assert.equal(await fixture.available(), before)
})

test('a rescan credits a withdrawal that an endpoint omitted, once', async () => {
  const fixture = await opened(['a'])
  const before = await fixture.available()
  omitting = ['a']
  await withdraw(fixture)
  assert.deepEqual(await withdrawals(fixture), [])
  omitting = []
  for (const found of [1, 0]) {
    const to = paid?.height as number
    await startRescan(fixture.services, { network: 'ETH', from: to - 2, to })
    for (;;) {
      const progress = await rescanProgress(fixture.services, { network: 'ETH' })
      if (progress['done'] === true) {
        assert.equal(progress['deposits'], found)
        break
      }
      await new Promise((resolve) => {
        setImmediate(resolve)
      })
    }
    await fixture.scan()
    await fixture.run()
    assert.equal((await fixture.available()) - before, 1000n * GWEI)
  }
})
