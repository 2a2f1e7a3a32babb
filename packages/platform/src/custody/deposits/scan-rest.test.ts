import assert from 'node:assert/strict'
import { test } from 'node:test'
import { BlocksAhead } from './blocks-ahead.ts'
import type { Database } from '../../core/database/pool.ts'
import { useDatabase, DepositFixture } from '../../../testing/deposits-support.ts'
import { shareAdmin } from '../../../testing/test-database.ts'

/**
 * Tests of the scan of a chain without new blocks: the chain is polled, the database is not
 * queried, and a new block is processed without delay.
 */
const database = useDatabase()

/** Returns a database that counts its queries. */
function counted(inner: Database): { database: Database; requestCount: () => number } {
  let calls = 0
  const count =
    <Given extends unknown[], Answer>(ask: (...args: Given) => Answer) =>
    (...values: Given): Answer => {
      calls++
      return ask(...values)
    }
  return {
    database: shareAdmin(
      {
        ...inner,
        query: count(inner.query) as never,
        one: count(inner.one) as never,
        transaction: count(inner.transaction) as never,
      },
      inner,
    ),
    requestCount: () => {
      const so = calls
      calls = 0
      return so
    },
  }
}

test('scanning an idle chain sends no database queries until a new block or the next full pass', async () => {
  const { database: within, requestCount } = counted(database.get())
  const fixture = new DepositFixture(within, 'evm')
  await fixture.open()
  const alice = await fixture.tenant('alice')
  await fixture.scan()
  requestCount()
  for (let pass = 0; pass < 5; pass++) await fixture.scan()
  assert.equal(requestCount(), 0, 'nothing came, and nothing is requestCount')
  fixture.now += 5000
  await fixture.scan()
  assert.ok(requestCount() > 0, 'what else may be due is looked for now and then')
  fixture.chain.mine({
    txid: '0xone',
    outcome: [{ position: 0, asset: 'ETH', address: alice.deposit, amount: 5n }],
  })
  await fixture.scan()
  assert.equal((await fixture.deposits()).length, 1, 'a block is seen at once')
  fixture.chain.drop(1)
  fixture.chain.mine()
  await fixture.scan()
  assert.deepEqual(
    (await fixture.deposits()).map(({ state }) => state),
    ['REORGED'],
    'another block at the same height as well',
  )
})

test('a failed scan is repeated immediately', async () => {
  const { database: within, requestCount } = counted(database.get())
  const fixture = new DepositFixture(within, 'evm')
  await fixture.open()
  const alice = await fixture.tenant('alice')
  fixture.chain.mine({
    txid: '0xtwo',
    outcome: [{ position: 0, asset: 'ETH', address: alice.deposit, amount: 5n }],
  })
  const { block } = fixture.chain
  fixture.chain.block = async () => {
    throw new Error('the chain is away')
  }
  await assert.rejects(fixture.scan(), /the chain is away/)
  fixture.chain.block = block
  requestCount()
  await fixture.scan()
  assert.equal((await fixture.deposits()).length, 1)
})

test('blocks are prefetched within the size of the cache, and returned in order', async () => {
  const answers = new Map<number, (error?: Error) => void>()
  const requestCount: number[] = []
  const ahead = new BlocksAhead({
    block: (height) =>
      new Promise((resolve, reject) => {
        requestCount.push(height)
        const transfers = Array.from({ length: 1 }) as never
        answers.set(height, (error) =>
          error
            ? reject(error)
            : resolve({
                height,
                hash: `h${height}`,
                parent: `h${height - 1}`,
                txids: [],
                transfers,
              }),
        )
      }),
  })
  const first = ahead.take(1, 100)
  assert.deepEqual(requestCount, [1, 2, 3, 4, 5, 6, 7, 8])
  for (const height of [3, 2, 1, 5]) answers.get(height)?.()
  const taken = (await first).map(({ height }) => height)
  assert.equal(taken[0], 1)
  assert.deepEqual(taken, [1, 2, 3].slice(0, taken.length))
  const rest =
    taken.length === 3 ? [] : (await ahead.take(taken.length + 1, 100)).map(({ height }) => height)
  assert.deepEqual(
    [...taken, ...rest],
    [1, 2, 3],
    'the fourth is not there, and the fifth waits for it',
  )
  for (let turn = 0; turn < 40; turn++) {
    for (const height of requestCount) if (height !== 4) answers.get(height)?.()
    await Promise.resolve()
    await new Promise((resolve) => {
      setImmediate(resolve)
    })
  }
  assert.deepEqual(
    requestCount,
    Array.from({ length: 35 }, (_, at) => at + 1),
    'thirty-two are at hand or under way',
  )
  const fourth = ahead.take(4, 100)
  answers.get(4)?.(new Error('the node is away'))
  await assert.rejects(fourth, /the node is away/)
  ahead.drop()
  const again = ahead.take(4, 4)
  answers.get(4)?.()
  assert.deepEqual(
    (await again).map(({ height }) => height),
    [4],
    'what was dropped is requestCount for again',
  )
})
