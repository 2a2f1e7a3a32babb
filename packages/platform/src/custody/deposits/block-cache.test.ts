import assert from 'node:assert/strict'
import { test } from 'node:test'
import { forgottenBelow } from './forget-blocks.ts'
import { useDatabase, DepositFixture } from '../../../testing/deposits-support.ts'

/**
 * Tests that the cache of blocks covers a reorganisation back to the final block, however fast
 * blocks are produced.
 */
const database = useDatabase()

test('evicts blocks only below the final height, or beyond the hard limit of the cache', () => {
  assert.equal(forgottenBelow(10_000, 9_990), 8_000, 'final blocks: 2000 are kept')
  assert.equal(forgottenBelow(10_000, 4_000), 4_000, '20 minutes at 200 ms: all that are not final')
  assert.equal(forgottenBelow(10_000, 0), 0, 'nothing is final')
  assert.equal(forgottenBelow(500_000, 0), 400_000, 'the bound')
  assert.equal(forgottenBelow(500_000, 100_000), 400_000)
})

test('EVM: a reorganisation of 6,000 blocks removes a deposit if finality is 20 minutes behind', async () => {
  const fixture = new DepositFixture(database.get(), 'evm')
  await fixture.open()
  const alice = await fixture.tenant('alice')
  let final = 0
  const { chain } = fixture
  const tip = chain.tip.bind(chain)
  chain.tip = async () => ({ ...(await tip()), finalHeight: final })
  await fixture.settle()
  for (let count = 0; count < 50; count++) chain.mine()
  final = 40
  const pay = (txid: string) => ({
    txid,
    outcome: [{ position: 0, asset: 'ETH', address: alice.deposit, amount: 7n }],
  })
  chain.mine(pay('0xfirst'))
  for (let count = 0; count < 6_050; count++) chain.mine()
  await fixture.settle()
  const lowest = await database
    .get()
    .one<{ least: string }>(`select min(height)::text least from blocks where network = 'ETH'`, [])
  assert.ok(Number(lowest?.least) <= final, `blocks are kept from ${lowest?.least}`)
  chain.drop(6_055)
  chain.mine(pay('0xsecond'))
  chain.mine()
  for (let count = 0; count < 6_060; count++) chain.mine()
  await fixture.settle()
  final = chain.blocks.length - 1
  await fixture.settle()
  assert.deepEqual(await fixture.books(alice), { ETH: '7' })
  assert.deepEqual(
    (await fixture.deposits()).map(({ state }) => state),
    ['REORGED', 'CREDITED'],
  )
})
