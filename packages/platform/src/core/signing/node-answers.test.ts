import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import type { Fetch } from '@custody/chains'
import { Devnet } from '../../../../devnet/src/devnet.ts'
import { useDatabase } from '../../../testing/deposits-support.ts'
import { FamilyFixture, type WalletAddress } from '../../../testing/chains/family-fixture.ts'
import { ManualClock } from '../../../testing/manual-clock.ts'

/**
 * Tests of a real local chain behind an endpoint that returns unusual responses. Payments are
 * credited, and a scan that cannot continue reports why.
 */
const clock = new ManualClock()
const database = useDatabase({ migrated: true, clock })
const home = mkdtempSync(join(tmpdir(), 'custody-node-answers-'))
let devnet: Devnet

const ETH: WalletAddress = {
  code: 'ETH',
  to: '0x00000000000000000000000000000000000000AA',
  held: '5',
  amount: '1',
}

before(async () => {
  devnet = await Devnet.start(home, 0, { now: () => clock.startMs })
})
after(() => {
  devnet.close()
  rmSync(home, { recursive: true, force: true })
})

type Change = (result: never, params: unknown[]) => unknown

/**
 * Replaces the endpoint's responses by method, as long as `changes` has an entry for the method.
 */
function changing(changes: Map<string, Change>): Fetch {
  return async (url, init) => {
    const response = await fetch(url, init)
    const { method, params } = JSON.parse(String(init.body)) as {
      method: string
      params: unknown[]
    }
    const change = changes.get(method)
    if (!change) return response
    const answer = (await response.json()) as { result: never }
    return Response.json({ ...answer, result: change(answer.result, params) })
  }
}

async function staged(
  place: WalletAddress,
  run: (fixture: FamilyFixture, changes: Map<string, Change>) => Promise<void>,
): Promise<void> {
  const changes = new Map<string, Change>()
  const fixture = new FamilyFixture(database.get(), devnet, place, clock, changing(changes))
  try {
    await fixture.open()
    await run(fixture, changes)
  } finally {
    await fixture.close()
  }
}

const seen = (fixture: FamilyFixture, asset: string) =>
  fixture.database.query<{ amount: string }>(
    `select d.amount::text from deposits d where d.network = $1 and d.asset = $2
      order by d.block_height`,
    [fixture.place.code, asset],
  )

for (const [what, price] of [
  ['without effectiveGasPrice', undefined],
  ['with effectiveGasPrice null', null],
  ['with effectiveGasPrice 0', '0x0'],
] as const) {
  test(`ETH, receipts ${what}: credits a native deposit, and books the paid fee of a transfer`, async () => {
    await staged(ETH, async (fixture, changes) => {
      changes.set(
        'eth_getTransactionReceipt',
        (receipt: object | null) => receipt && { ...receipt, effectiveGasPrice: price },
      )
      const before = await fixture.available()
      await fixture.fund('2')
      assert.equal(await fixture.available(), before + 2n * 10n ** 18n)
      const id = await fixture.create('sent')
      await fixture.run()
      const { state, fee } = await fixture.read(id)
      assert.equal(state, 'CONFIRMED')
      assert.ok(BigInt(fee) > 0n, `a fee of ${fee} was booked`)
      // The ledger agrees with the chain to the wei.
      await fixture.check()
    })
  })
}

test('ETH: credits a token deposit even if a node first returns wrong or no logs for its block', async () => {
  const [, other] = ['22', '33'].map((byte) => `0x${byte.repeat(32)}`)
  const wrong: Change[] = [
    (logs: object[]) => logs.map((log) => ({ ...log, blockHash: other })),
    (logs: object[]) => logs.map((log) => ({ ...log, blockHash: null })),
    (logs: object[]) => logs.map((log) => ({ ...log, removed: true })),
    (logs: object[]) => logs.flatMap((log) => [log, log]),
    () => [],
  ]
  await staged(ETH, async (fixture, changes) => {
    for (const [at, change] of wrong.entries()) {
      let requestCount = 0
      changes.set('eth_getLogs', (result, params) =>
        requestCount++ === 0 ? change(result, params) : result,
      )
      await fixture.control({
        command: 'fund',
        asset: 'USDT_ETH',
        address: fixture.source,
        amount: '25',
      })
      // An inconsistent response ends the pass; the next pass reads the block again.
      await fixture.scan().catch(() => undefined)
      await fixture.scan()
      assert.ok(requestCount > 0, 'the logs were asked for')
      assert.deepEqual(
        (await seen(fixture, 'USDT_ETH')).map(({ amount }) => amount),
        Array.from({ length: at + 1 }, () => '25000000'),
      )
    }
  })
})

test('ETH: a scan that cannot read a block reports method and field, and continues later', async () => {
  await staged(ETH, async (fixture, changes) => {
    changes.set(
      'eth_getBlockByNumber',
      (block: { transactions: object[] } | null) =>
        block && {
          ...block,
          transactions: block.transactions.map((each) =>
            typeof each === 'object' ? { ...each, value: undefined } : each,
          ),
        },
    )
    const before = await fixture.available()
    await fixture.control({ command: 'fund', asset: 'ETH', address: fixture.source, amount: '1' })
    await assert.rejects(
      fixture.scan(),
      /^RpcUnavailable: ETH: eth_getBlockByNumber returned no transactions\.value$/,
    )
    changes.clear()
    await fixture.scan()
    await fixture.run()
    assert.equal(await fixture.available(), before + 10n ** 18n)
  })
})

test('ETH: a block that does not follow its parent is requested again after a pause', async () => {
  await staged(ETH, async (fixture, changes) => {
    await fixture.control({ command: 'mine', blocks: 1 })
    changes.set('eth_getBlockByNumber', (block: object | null, [tag]) =>
      block && tag !== 'latest' && tag !== 'finalized'
        ? { ...block, parentHash: `0x${'77'.repeat(32)}` }
        : block,
    )
    await assert.rejects(fixture.scan(), /is not the block at \d+ that the same endpoint returns/)
    changes.clear()
    await fixture.scan()
  })
})
