import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Database } from '../src/database/pool.ts'
import { useDatabase, World } from './deposits-support.ts'

/** The scan of a chain that stands still: the chain is asked, the database is left alone, and nothing that comes is late. */
const database = useDatabase()

/** A database that counts what is asked of it. */
function counted(inner: Database): { database: Database; asked: () => number } {
  let asked = 0
  const count = <Given extends unknown[], Answer>(ask: (...given: Given) => Answer) => (...given: Given): Answer => {
    asked++
    return ask(...given)
  }
  return {
    database: { ...inner, query: count(inner.query) as never, one: count(inner.one) as never, transaction: count(inner.transaction) as never },
    asked: () => {
      const so = asked
      asked = 0
      return so
    },
  }
}

test('a chain that stands still costs the database nothing; a block, another tip and the next full pass do', async () => {
  const { database: within, asked } = counted(database.get())
  const world = new World(within, 'evm')
  await world.open()
  const alice = await world.tenant('alice')
  await world.scan()
  asked()
  for (let pass = 0; pass < 5; pass++) await world.scan()
  assert.equal(asked(), 0, 'nothing came, and nothing is asked')
  world.now += 5000
  await world.scan()
  assert.ok(asked() > 0, 'what else may be due is looked for now and then')
  world.chain.mine({ txid: '0xone', outcome: [{ position: 0, asset: 'ETH', address: alice.deposit, amount: 5n }] })
  await world.scan()
  assert.equal((await world.deposits()).length, 1, 'a block is seen at once')
  world.chain.drop(1)
  world.chain.mine()
  await world.scan()
  assert.deepEqual((await world.deposits()).map(({ state }) => state), ['REORGED'], 'another block at the same height as well')
})

test('a pass that failed is made again at once', async () => {
  const { database: within, asked } = counted(database.get())
  const world = new World(within, 'evm')
  await world.open()
  const alice = await world.tenant('alice')
  world.chain.mine({ txid: '0xtwo', outcome: [{ position: 0, asset: 'ETH', address: alice.deposit, amount: 5n }] })
  const { block } = world.chain
  world.chain.block = async () => { throw new Error('the chain is away') }
  await assert.rejects(world.scan(), /the chain is away/)
  world.chain.block = block
  asked()
  await world.scan()
  assert.equal((await world.deposits()).length, 1)
})
