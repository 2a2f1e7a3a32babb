import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parsePrice } from '../src/prices/decimals.ts'
import { Prices } from '../src/prices/prices.ts'
import type { PriceSource } from '../src/prices/source.ts'
import { DEPTH, registry, useDatabase, World, type Tenant } from './deposits-support.ts'
import { testEmittedEvents } from './event-assertions.ts'

const database = useDatabase()
const MINUTE_MS = 60_000

/**
 * A world whose platform has the real price memory over one source, which answers what the test
 * sets.
 */
async function openPriced(): Promise<{
  world: World
  alice: Tenant
  setPrice(usd: string): Promise<void>
}> {
  const world = new World(database.get(), 'evm')
  await world.open()
  const { environment, log } = world.services
  const answer = new Map<string, string>()
  const source: PriceSource = {
    name: 'scripted',
    quotes: async () =>
      [...answer].map(([coin, usd]) => ({ coin, price: parsePrice(usd) as bigint, at: world.now })),
  }
  const prices = new Prices({
    sources: [source],
    coins: ['ETH', 'USDT'],
    environment,
    log,
    everyMs: MINUTE_MS,
  })
  Object.assign(world.services, { prices })
  const setPrice = async (usd: string) => {
    for (const coin of ['ETH', 'USDT']) answer.set(coin, usd)
    await prices.refresh(source)
  }
  return { world, alice: await world.tenant('alice'), setPrice }
}

const paid = (alice: Tenant, amount: bigint) => ({
  txid: '0xpaid',
  outcome: [{ position: 0, asset: 'USDT_ETH', address: alice.deposit, amount }],
})

/**
 * Returns `amount_in_usd` of each event so far, in the order of the events, exactly as the event's
 * text contains it.
 */
async function told(): Promise<[type: string, usd: string][]> {
  const rows = await database
    .get()
    .query<{ type: string; body: string }>(
      'select type, payload::text body from events order by id',
    )
  return rows.map(({ type, body }) => [
    type,
    /"amount_in_usd": ?(null|[\d.]+)/.exec(body)?.[1] ?? 'absent',
  ])
}

const values = async (world: World) =>
  (await world.deposits()).map(({ state, amount_usd: usd }) => [state, usd])

test('a deposit keeps the exact USD value at the time it was recorded, also when it is credited', async () => {
  const { world, alice, setPrice } = await openPriced()
  await setPrice('1.0003')
  world.chain.mine(paid(alice, 123_456_789_123_456_789n))
  await world.scan()
  // (123456789123.456789 USDT × 1.0003), to a millionth of a USD.
  assert.deepEqual(await values(world), [['CONFIRMING', '123493826160193826']])
  await setPrice('2')
  world.chain.bury()
  await world.settle()
  assert.deepEqual(await values(world), [['CREDITED', '123493826160193826']])
  assert.deepEqual(await told(), [
    ['deposit.detected', '123493826160.193826'],
    ['deposit.confirmed', '123493826160.193826'],
  ])
})

for (const [name, prepare] of [
  ['without any price', async () => undefined],
  [
    'with a stale price',
    async ({ world, setPrice }) => {
      await setPrice('1')
      world.now += 6 * MINUTE_MS
    },
  ],
] satisfies [string, (o: Awaited<ReturnType<typeof openPriced>>) => Promise<void>][]) {
  test(`a deposit is credited ${name}, and has no value, even if a price is available later`, async () => {
    const opened = await openPriced()
    const { world, alice, setPrice } = opened
    await prepare(opened)
    world.chain.mine(paid(alice, 5_000_000n))
    await world.scan()
    await setPrice('1')
    world.chain.bury()
    await world.settle()
    assert.deepEqual(await values(world), [['CREDITED', null]])
    assert.deepEqual(await world.books(alice), { USDT_ETH: '5000000' })
  })
}

test('attack: a deposit whose value has too many digits for the database is credited without a value', async () => {
  const { world, alice, setPrice } = await openPriced()
  await setPrice('1000000')
  const most = 10n ** 77n
  world.chain.mine(paid(alice, most))
  world.chain.bury()
  await world.settle()
  assert.deepEqual(await values(world), [['CREDITED', null]])
  assert.deepEqual(await world.books(alice), { USDT_ETH: most.toString() })
  assert.equal(registry.asset('USDT_ETH')?.decimals, 6)
})

test('a deposit that a reorganisation removes and mines again at another price keeps its first value', async () => {
  const { world, alice, setPrice } = await openPriced()
  await setPrice('1')
  world.chain.mine(paid(alice, 5_000_000n))
  world.chain.bury()
  await world.settle()
  world.chain.drop(DEPTH + 1)
  world.chain.mine()
  await world.settle()
  await setPrice('3')
  world.chain.mine(paid(alice, 5_000_000n))
  world.chain.bury()
  await world.settle()
  assert.deepEqual(await values(world), [['CREDITED', '5000000']])
  assert.deepEqual(await world.books(alice), { USDT_ETH: '5000000' })
})

testEmittedEvents(database.get, ['deposit.detected', 'deposit.confirmed', 'deposit.reverted'])
