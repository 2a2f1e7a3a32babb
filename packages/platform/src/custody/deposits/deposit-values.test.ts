import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parsePrice } from '../prices/decimals.ts'
import { Prices } from '../prices/prices.ts'
import type { PriceSource } from '../prices/source.ts'
import {
  DEPTH,
  registry,
  useDatabase,
  DepositFixture,
  type Tenant,
} from '../../../testing/deposits-support.ts'
import { testEmittedEvents } from '../../../testing/event-assertions.ts'

const database = useDatabase()
const MINUTE_MS = 60_000

/**
 * Opens a fixture whose platform has the real price cache with one source. The test sets the prices
 * of the source.
 */
async function openPriced(): Promise<{
  fixture: DepositFixture
  alice: Tenant
  setPrice(usd: string): Promise<void>
}> {
  const fixture = new DepositFixture(database.get(), 'evm')
  await fixture.open()
  const { environment, log } = fixture.services
  const answer = new Map<string, string>()
  const source: PriceSource = {
    name: 'scripted',
    quotes: async () =>
      [...answer].map(([coin, usd]) => ({
        coin,
        price: parsePrice(usd) as bigint,
        at: fixture.now,
      })),
  }
  const prices = new Prices({
    sources: [source],
    coins: ['ETH', 'USDT'],
    environment,
    log,
    everyMs: MINUTE_MS,
  })
  Object.assign(fixture.services, { prices })
  const setPrice = async (usd: string) => {
    for (const coin of ['ETH', 'USDT']) answer.set(coin, usd)
    await prices.refresh(source)
  }
  return { fixture, alice: await fixture.tenant('alice'), setPrice }
}

const paid = (alice: Tenant, amount: bigint) => ({
  txid: '0xpaid',
  outcome: [{ position: 0, asset: 'USDT_ETH', address: alice.deposit, amount }],
})

/**
 * Returns the type and `amount_in_usd` of each event so far, in order, exactly as the event's text
 * contains them.
 */
async function emittedValues(): Promise<[type: string, usd: string][]> {
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

const values = async (fixture: DepositFixture) =>
  (await fixture.deposits()).map(({ state, amount_usd: usd }) => [state, usd])

test('a deposit keeps the exact USD value of the time at which it was recorded', async () => {
  const { fixture, alice, setPrice } = await openPriced()
  await setPrice('1.0003')
  fixture.chain.mine(paid(alice, 123_456_789_123_456_789n))
  await fixture.scan()
  // The value is 123456789123.456789 USDT × 1.0003, to a millionth of a USD.
  assert.deepEqual(await values(fixture), [['CONFIRMING', '123493826160193826']])
  await setPrice('2')
  fixture.chain.bury()
  await fixture.settle()
  assert.deepEqual(await values(fixture), [['CREDITED', '123493826160193826']])
  assert.deepEqual(await emittedValues(), [
    ['deposit.detected', '123493826160.193826'],
    ['deposit.confirmed', '123493826160.193826'],
  ])
})

for (const [name, prepare] of [
  ['without any price', async () => undefined],
  [
    'with a stale price',
    async ({ fixture, setPrice }) => {
      await setPrice('1')
      fixture.now += 6 * MINUTE_MS
    },
  ],
] satisfies [string, (o: Awaited<ReturnType<typeof openPriced>>) => Promise<void>][]) {
  test(`a deposit is credited ${name}, and keeps no value even if a price is available later`, async () => {
    const opened = await openPriced()
    const { fixture, alice, setPrice } = opened
    await prepare(opened)
    fixture.chain.mine(paid(alice, 5_000_000n))
    await fixture.scan()
    await setPrice('1')
    fixture.chain.bury()
    await fixture.settle()
    assert.deepEqual(await values(fixture), [['CREDITED', null]])
    assert.deepEqual(await fixture.books(alice), { USDT_ETH: '5000000' })
  })
}

test('attack: credits a deposit without a USD value if its value has too many digits', async () => {
  const { fixture, alice, setPrice } = await openPriced()
  await setPrice('1000000')
  const most = 10n ** 77n
  fixture.chain.mine(paid(alice, most))
  fixture.chain.bury()
  await fixture.settle()
  assert.deepEqual(await values(fixture), [['CREDITED', null]])
  assert.deepEqual(await fixture.books(alice), { USDT_ETH: most.toString() })
  assert.equal(registry.asset('USDT_ETH')?.decimals, 6)
})

test('a deposit that is mined again after a reorganisation keeps its first USD value', async () => {
  const { fixture, alice, setPrice } = await openPriced()
  await setPrice('1')
  fixture.chain.mine(paid(alice, 5_000_000n))
  fixture.chain.bury()
  await fixture.settle()
  fixture.chain.drop(DEPTH + 1)
  fixture.chain.mine()
  await fixture.settle()
  await setPrice('3')
  fixture.chain.mine(paid(alice, 5_000_000n))
  fixture.chain.bury()
  await fixture.settle()
  assert.deepEqual(await values(fixture), [['CREDITED', '5000000']])
  assert.deepEqual(await fixture.books(alice), { USDT_ETH: '5000000' })
})

testEmittedEvents(database.get, ['deposit.detected', 'deposit.confirmed', 'deposit.reverted'])
