import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { test } from 'node:test'
import { housekeepingLoop } from '../../server/app/housekeeping.ts'
import { ApiError } from '../../core/errors.ts'
import { orderLoop } from './loop.ts'
import { listOrders } from './list-orders.ts'
import { createOrder } from './create-order.ts'
import { claimOrder } from './lease.ts'
import { workOn } from './loop.ts'
import { readOrder } from './read-order.ts'
import { pauseMethod } from '../../../testing/pausable-method.ts'
import { useDatabase } from '../../../testing/deposits-support.ts'
import { adminOf } from '../../../testing/test-database.ts'
import { testEmittedEvents, wrongEvents } from '../../../testing/event-assertions.ts'
import { TradingFixture } from '../../../testing/venues/trading-fixture.ts'

/**
 * Tests of orders from the request to the ledger, with real ccxt and a fake Kraken that is
 * controlled by each test.
 */
let current: TradingFixture | undefined
const database = useDatabase({ migrated: true, now: () => current?.now ?? Date.now() })
const open = async () => {
  // The events of the previous test match the registry of events.
  if (current) assert.deepEqual(await wrongEvents(database.get()), [])
  return (current = new TradingFixture(database.get())).begin()
}
const refused = (code: string, message: RegExp) => (error: unknown) =>
  error instanceof ApiError && error.code === code && (assert.match(error.message, message), true)

test('a filled limit order books fill and fee, and charges the platform fee', async () => {
  const fixture = await open()
  const { id, status, sub_status, platform_fee } = await fixture.create()
  assert.deepEqual(
    [status, sub_status, platform_fee],
    ['open', 'NEW', '30'],
    'ten basis points of 30,000 USD',
  )
  await fixture.pass(2)
  const order = await fixture.read(id)
  assert.deepEqual(
    [order.status, order.sub_status, order.filled, order.cost, order.average_price],
    ['filled', 'ENDED', '0.5', '30000', '60000'],
  )
  assert.deepEqual(
    order.fills.map(({ amount, fee, fee_asset }) => [amount, fee, fee_asset]),
    [['0.5', '120', 'USD']],
  )
  assert.deepEqual(await fixture.books(), {
    'venue venue:BTC': '10.5',
    'venue venue:USD': '969880',
    'venue_fees venue:USD': '120',
    'prepaid USD': '970',
    'fees USD': '30',
  })
  await fixture.reconcile()
  await fixture.reconcile()
  const { balances, difference } = await fixture.account()
  assert.deepEqual(
    [balances.map(({ asset, total, usd }) => [asset, total, usd]), difference],
    [
      [
        ['BTC', '10.5', '630000'],
        ['USD', '969880', '969880'],
      ],
      [],
    ],
  )
  assert.deepEqual(await fixture.events(id), [
    'created open NEW',
    'updated open SENDING',
    'updated open WORKING',
    'updated filled ENDED',
  ])
  const [sent] = fixture.kraken.adds
  assert.deepEqual(
    [sent?.['cl_ord_id'], sent?.['ordertype'], fixture.kraken.adds.length],
    [id.replaceAll('-', ''), 'limit', 1],
  )
})

test('a market order is an IOC limit order, and spends at most the requested quote amount', async () => {
  const fixture = await open()
  const buy = await fixture.create({ type: 'market', price: undefined, max_slippage_bps: 50 })
  assert.deepEqual([buy.price, buy.protection_price], [null, '60300'])
  const sell = await fixture.create({ type: 'market', side: 'sell', price: undefined })
  assert.equal(sell.protection_price, '59390.1', '1 % by itself, up to the grid')
  const spend = await fixture.create({
    type: 'market',
    price: undefined,
    amount: undefined,
    quote_amount: '100',
  })
  assert.equal(spend.amount, '0.00165016', '100 / 60,600, down to the grid')
  await fixture.pass(4)
  for (const { id } of [buy, sell, spend]) assert.equal((await fixture.read(id)).status, 'filled')
  assert.ok(Number((await fixture.read(spend.id)).cost) <= 100)
  assert.deepEqual(
    fixture.kraken.adds.map(({ timeinforce, price, ordertype }) => [timeinforce, price, ordertype]),
    [
      ['IOC', '60300', 'limit'],
      ['IOC', '59390.1', 'limit'],
      ['IOC', '60600', 'limit'],
    ],
  )
})

test('an order whose price moved beyond the protection does nothing and costs nothing', async () => {
  const fixture = await open()
  const { id } = await fixture.create({ type: 'market', price: undefined, max_slippage_bps: 10 })
  fixture.kraken.ask.price = 61_000
  await fixture.pass(4)
  const { status, reason, filled, platform_fee } = await fixture.read(id)
  assert.deepEqual(
    [status, reason, filled, platform_fee],
    ['cancelled', 'PRICE_PROTECTION', '0', '0'],
  )
  assert.deepEqual(await fixture.books(), {
    'venue venue:BTC': '10',
    'venue venue:USD': '1000000',
    'prepaid USD': '1000',
  })
})

test('finds an order whose response was lost, and does not send it again', async () => {
  const fixture = await open()
  fixture.kraken.lose = 'answer'
  const { id } = await fixture.create()
  await fixture.pass(3)
  const { status, exchange_order_id } = await fixture.read(id)
  assert.deepEqual(
    [status, exchange_order_id, fixture.kraken.adds.length],
    ['filled', fixture.kraken.only.id, 1],
  )
  assert.deepEqual((await fixture.events(id)).slice(2, 3), ['updated unknown ASKING'])
})

test('an order that is listed only a minute later stays unknown until then, and is not resent', async () => {
  const fixture = await open()
  Object.assign(fixture.kraken, { lose: 'answer', visibleAfterMs: 60_000 })
  const { id } = await fixture.create()
  await fixture.pass(50)
  assert.equal((await fixture.read(id)).status, 'unknown')
  await fixture.pass(70)
  assert.deepEqual(
    [(await fixture.read(id)).status, fixture.kraken.adds.length, fixture.alerts.length],
    ['filled', 1, 0],
  )
})

test('an accepted order that is not listed yet waits until the exchange lists it', async () => {
  const fixture = await open()
  fixture.kraken.visibleAfterMs = 20_000
  const { id } = await fixture.create()
  await fixture.pass(10)
  assert.deepEqual(
    [(await fixture.read(id)).status, (await fixture.read(id)).sub_status],
    ['open', 'WORKING'],
  )
  await fixture.pass(40)
  assert.equal((await fixture.read(id)).status, 'filled')
})

test('an order whose request was lost is rejected once no list of the exchange can contain it', async () => {
  const fixture = await open()
  fixture.kraken.lose = 'request'
  const { id } = await fixture.create()
  await fixture.pass(80)
  assert.equal((await fixture.read(id)).status, 'unknown', 'absence proves nothing yet')
  await fixture.pass(60)
  const { status, reason } = await fixture.read(id)
  assert.deepEqual([status, reason, fixture.kraken.adds.length], ['rejected', 'NOT_TAKEN', 1])
  assert.equal((await fixture.books())['prepaid USD'], '1000')
})

test('while the exchange does not respond an order is unknown, with one alert', async () => {
  const fixture = await open()
  const { id } = await fixture.create()
  Object.assign(fixture.kraken, { lose: 'answer', errorAfterAdd: 'EService:Unavailable' })
  await fixture.pass(600)
  const { status, version } = await fixture.read(id)
  assert.equal(status, 'unknown')
  assert.equal(fixture.alerts.length, 1)
  assert.match(JSON.stringify(fixture.alerts), new RegExp(id.replaceAll('-', '')))
  assert.match(
    await fixture.services.metrics.text(),
    /custody_orders_unknown_total\{exchange="kraken"\} 1/,
  )
  assert.equal((await fixture.events(id)).length, Number(version), 'each change is one event')
  fixture.kraken.error = null
  await fixture.pass(70)
  assert.deepEqual([(await fixture.read(id)).status, fixture.kraken.adds.length], ['filled', 1])
})

test('an order refused by the exchange is rejected with the reason; busy ones are retried', async () => {
  const fixture = await open()
  fixture.kraken.held.set('ZUSD', 500_000)
  const rich = await fixture.create({ amount: '10' })
  const maker = await fixture.create({ post_only: true })
  await fixture.pass(2)
  assert.deepEqual(
    [(await fixture.read(rich.id)).reason, (await fixture.read(maker.id)).reason],
    ['INSUFFICIENT_FUNDS', 'WOULD_TAKE'],
  )
  fixture.kraken.error = 'EAPI:Rate limit exceeded'
  const later = await fixture.create()
  await fixture.pass(5)
  assert.deepEqual(
    [(await fixture.read(later.id)).status, (await fixture.read(later.id)).sub_status],
    ['open', 'NEW'],
  )
  fixture.kraken.error = null
  await fixture.pass(10)
  assert.equal((await fixture.read(later.id)).status, 'filled')
  fixture.kraken.error = 'EAPI:Rate limit exceeded'
  const never = await fixture.create()
  await fixture.pass(130)
  assert.deepEqual(
    [(await fixture.read(never.id)).status, (await fixture.read(never.id)).reason],
    ['rejected', 'RATE_LIMITED'],
  )
  assert.equal((await fixture.books())['prepaid_reserved USD'], undefined)
})

test('partial fills add up, and a fill that is reported twice counts once', async () => {
  const fixture = await open()
  const { id } = await fixture.create({ price: '50000' })
  await fixture.pass(2)
  const there = fixture.kraken.only
  fixture.kraken.fill(there.id, 0.2)
  await fixture.pass(4)
  const part = await fixture.read(id)
  assert.deepEqual(
    [part.status, part.filled, part['remaining']],
    ['partially_filled', '0.2', '0.3'],
  )
  there.trades.push(...there.trades)
  fixture.kraken.fill(there.id, 0.1)
  await fixture.pass(4)
  assert.deepEqual(
    [(await fixture.read(id)).filled, (await fixture.read(id)).fills.length],
    ['0.3', 2],
  )
  fixture.kraken.fill(there.id, 0.2)
  await fixture.pass(4)
  const { status, fees } = await fixture.read(id)
  assert.deepEqual([status, fees], ['filled', [{ asset: 'USD', amount: '100' }]])
  assert.deepEqual(
    [(await fixture.books())['venue venue:BTC'], (await fixture.books())['venue venue:USD']],
    ['10.5', '974900'],
  )
})

test('an order with late fills does not end before all of them are known', async () => {
  const fixture = await open()
  fixture.kraken.hidesTrades = true
  const { id } = await fixture.create()
  await fixture.pass(5)
  assert.deepEqual(
    [(await fixture.read(id)).status, (await fixture.read(id)).filled],
    ['open', '0'],
  )
  fixture.kraken.hidesTrades = false
  await fixture.pass(2)
  assert.equal((await fixture.read(id)).status, 'filled')
})

test('an order cancelled after a partial fill keeps that fill and its share of the fee', async () => {
  const fixture = await open()
  const { id } = await fixture.create({ price: '50000' })
  await fixture.pass(2)
  const there = fixture.kraken.only
  await fixture.cancel(id)
  fixture.kraken.fill(there.id, 0.2)
  await fixture.pass(5)
  const { status, filled, reason, platform_fee } = await fixture.read(id)
  assert.deepEqual(
    [status, filled, reason, platform_fee],
    ['cancelled', '0.2', null, '10'],
    'of 25 USD',
  )
  await assert.rejects(
    fixture.cancel(id),
    refused('ORDER_FINAL', /^id: the order is already cancelled/),
  )
  // A fill that the venue reports after the cancellation is detected by the second query.
  const late = await fixture.create({ price: '50000' })
  await fixture.pass(2)
  const other = [...fixture.kraken.orders.values()].at(-1) as typeof there
  await fixture.cancel(late.id)
  await fixture.work()
  fixture.kraken.fill(other.id, 0.1)
  other.status = 'canceled'
  await fixture.pass(5)
  assert.deepEqual(
    [(await fixture.read(late.id)).status, (await fixture.read(late.id)).filled],
    ['cancelled', '0.1'],
  )
})

test('an order filled before its cancellation arrives is filled', async () => {
  const fixture = await open()
  const { id } = await fixture.create({ price: '50000' })
  await fixture.pass(2)
  fixture.kraken.fill(fixture.kraken.only.id, 0.5)
  await fixture.cancel(id)
  await fixture.pass(3)
  assert.equal((await fixture.read(id)).status, 'filled')
  const unsent = await fixture.create()
  await fixture.cancel(unsent.id)
  await fixture.pass(2)
  assert.deepEqual(
    [(await fixture.read(unsent.id)).status, fixture.kraken.adds.length],
    ['cancelled', 1],
  )
})

test('of 50 orders on a balance for 20, 20 are accepted and the rest are rejected', async () => {
  const fixture = await open()
  fixture.kraken.held.set('ZUSD', 20 * 1000 + 500)
  fixture.kraken.ask.volume = 0
  const made = await Promise.all(
    Array.from({ length: 50 }, () => fixture.create({ amount: '0.02', price: '50000' })),
  )
  const controller = new AbortController()
  const loop = orderLoop(fixture.services)
  // Runs the real workers, with the real number of concurrent ones.
  while (
    (await fixture.database.query(`select 1 from orders where state in ('NEW', 'SENDING')`))
      .length > 0
  ) {
    fixture.services.trading.due.ring()
    await loop.run(controller.signal)
  }
  controller.abort()
  await loop.run(controller.signal)
  const all = await Promise.all(made.map(({ id }) => fixture.read(id)))
  const count = (of: string) => all.filter(({ status }) => status === of).length
  assert.deepEqual([count('open'), count('rejected'), fixture.kraken.adds.length], [20, 30, 50])
  assert.ok(all.every(({ status, reason }) => status === 'open' || reason === 'INSUFFICIENT_FUNDS'))
  const nonces = fixture.kraken.adds.map(({ nonce }) => Number(nonce))
  assert.deepEqual(
    nonces,
    nonces.toSorted((a, b) => a - b),
    'numbers rise in the order in which requests arrive',
  )
})

const DEATHS = [
  'order.created',
  'order.sending',
  'order.answered',
  'order.unknown',
  'order.placed',
  'order.written',
  'order.ended',
  'order.cancel-requested',
] as const
for (const death of DEATHS) {
  test(`sends and fills an order at most once if the process ends at ${death}`, async () => {
    const fixture = await open()
    fixture.dieAt = death
    if (death === 'order.unknown') fixture.kraken.lose = 'answer'
    if (death === 'order.ended') fixture.kraken.held.set('ZUSD', 1)
    await fixture
      .create({ price: death === 'order.cancel-requested' ? '50000' : '60000', sequence_id: 'one' })
      .catch(() => undefined)
    const { id } = await fixture.create({
      price: death === 'order.cancel-requested' ? '50000' : '60000',
      sequence_id: 'one',
    })
    if (death === 'order.cancel-requested') {
      await fixture.work()
      await assert.rejects(fixture.cancel(id))
    }
    await fixture.work()
    assert.equal(fixture.dieAt, null, 'it was reached')
    // Another worker can take the dead worker's orders immediately, as after a restart.
    await fixture.database.query(
      'update orders set lease_until = null, next_run_at = $1 where next_run_at is not null',
      [new Date(fixture.now)],
    )
    await fixture.pass(150)
    const order = await fixture.read(id)
    const expected =
      death === 'order.sending'
        ? ['rejected', 'NOT_TAKEN']
        : death === 'order.ended'
          ? ['rejected', 'INSUFFICIENT_FUNDS']
          : death === 'order.cancel-requested'
            ? ['cancelled', null]
            : ['filled', null]
    assert.deepEqual([order.status, order.reason], expected)
    assert.equal(fixture.kraken.adds.length, death === 'order.sending' ? 0 : 1)
    assert.equal(order.fills.length, order.status === 'filled' ? 1 : 0)
    await fixture.reconcile()
    await fixture.reconcile()
    if (death !== 'order.ended') assert.deepEqual((await fixture.account()).difference, [])
    assert.equal((await fixture.books())['prepaid_reserved USD'], undefined)
  })
}

test('a worker that lost its lease writes nothing, and a late request is never sent', async () => {
  const fixture = await open()
  const { id } = await fixture.create()
  const slow = await claimOrder(fixture.services, [])
  const real = fixture.services.exchanges.account.bind(fixture.services.exchanges)
  // A minute passes between the commit and the request, so another process has already queried the
  // order.
  fixture.services.exchanges.account = async (o) => {
    const venue = await real(o)
    return Object.assign(Object.create(venue) as typeof venue, {
      place: async (...args: Parameters<typeof venue.place>) => {
        fixture.now += 125_000
        fixture.services.exchanges.account = real
        await fixture.work()
        return venue.place(...args)
      },
    })
  }
  await workOn(fixture.services, slow as NonNullable<typeof slow>)
  await fixture.pass(70)
  assert.deepEqual(
    [(await fixture.read(id)).status, (await fixture.read(id)).reason, fixture.kraken.adds.length],
    ['rejected', 'NOT_TAKEN', 0],
  )
})

test('an order left for an hour is not sent; one sent before a database restore is found', async () => {
  const fixture = await open()
  const old = await fixture.create()
  fixture.now += 3_600_000
  await fixture.pass(2)
  assert.deepEqual(
    [
      (await fixture.read(old.id)).status,
      (await fixture.read(old.id)).reason,
      fixture.kraken.adds.length,
    ],
    ['rejected', 'NOT_TAKEN', 0],
  )
  const { id } = await fixture.create()
  const before = await fixture.database.query('select * from orders where id = $1', [id])
  await fixture.pass(2)
  // Restores the backup from before the order was sent.
  await adminOf(fixture.database).query('delete from order_fills where order_id = $1', [id])
  await adminOf(fixture.database).query(
    `delete from ledger_postings where entry_id in (select id from ledger_entries
      where kind = 'venue-fill')`,
  )
  await adminOf(fixture.database).query(`delete from ledger_entries where kind = 'venue-fill'`)
  const { state, status, venue_id, filled, cost, fees, sent_at, fee_charged, next_run_at } =
    before[0] as Record<string, unknown>
  await fixture.database.query(
    `update orders set state = $2, status = $3, venue_id = $4, filled = $5, cost = $6, fees = $7,
      sent_at = $8, fee_charged = $9,
    next_run_at = $10, last_error = null where id = $1`,
    [
      id,
      state,
      status,
      venue_id,
      filled,
      cost,
      JSON.stringify(fees),
      sent_at,
      fee_charged,
      next_run_at,
    ],
  )
  fixture.now += 3_600_000
  await fixture.pass(3)
  assert.deepEqual(
    [
      (await fixture.read(id)).status,
      (await fixture.read(id)).fills.length,
      fixture.kraken.adds.length,
    ],
    ['filled', 1, 1],
  )
})

test('a key revoked during an order fails the account, and a new key lets the order continue', async () => {
  const fixture = await open()
  const { id } = await fixture.create({ price: '50000' })
  await fixture.pass(2)
  fixture.kraken.error = 'EAPI:Invalid key'
  fixture.kraken.fill(fixture.kraken.only.id, 0.5)
  await fixture.pass(100)
  assert.deepEqual(
    [(await fixture.account()).status, (await fixture.read(id)).status],
    ['failing', 'open'],
  )
  await assert.rejects(
    fixture.create(),
    refused('EXCHANGE_KEY_REFUSED', /^exchange_account: kraken rejects its key \(/),
  )
  assert.equal(
    (await fixture.database.query(`select 1 from events where type = 'exchange_account.failing'`))
      .length,
    1,
  )
  fixture.kraken.error = null
  await fixture.pass(31)
  assert.equal((await fixture.read(id)).status, 'filled')
  await fixture.reconcile()
  assert.equal((await fixture.account()).status, 'active')
})

test('a repeated sequence_id returns the first order; a refused request stores nothing', async () => {
  const fixture = await open()
  const [one, two] = await Promise.all([
    fixture.create({ sequence_id: 's' }),
    fixture.create({ sequence_id: 's' }),
  ])
  assert.equal(one.id, two.id)
  assert.equal((await fixture.create({ sequence_id: 's', amount: '1' })).id, one.id)
  assert.equal((await fixture.database.query('select 1 from orders')).length, 1)
  const poor = await fixture.tenant('poor', 0)
  const { id } = await fixture.link({ api_key: 'other' }, poor)
  await assert.rejects(
    fixture.create({ exchange_account: id, sequence_id: 's' }, poor),
    refused(
      'PREPAID_FEE_EXHAUSTED',
      /the prepaid fee account has 0 USD, less than the platform fee of 30 USD/,
    ),
  )
  assert.equal(
    (
      await fixture.database.query('select 1 from orders where sub_account_id = $1', [
        poor.subAccountId,
      ])
    ).length,
    0,
  )
})

test('if an order is refused while an identical request waits, both requests are refused', async () => {
  const fixture = await open()
  const caller = await fixture.tenant('poor', 0)
  const body = {
    exchange_account: (await fixture.link({ api_key: 'other' }, caller)).id,
    sequence_id: 's',
  }
  const pausePoint = pauseMethod(fixture.services.exchanges, 'traits')
  const [waits, another] = [
    fixture.create(body, caller),
    async () => fixture.create({ ...body, amount: '0.6' }, caller),
  ]
  await pausePoint.reached
  const poor = refused(
    'PREPAID_FEE_EXHAUSTED',
    /the prepaid fee account has 0 USD, less than the platform fee of 30 USD/,
  )
  await assert.rejects(fixture.create(body, caller), poor)
  await fixture.database.query('select prepaid_adjust($1, $2, $3, 0)', [
    caller.workspaceId,
    randomUUID(),
    '1000000000',
  ])
  pausePoint.open()
  await assert.rejects(waits, poor)
  assert.deepEqual(await fixture.database.query('select 1 from orders'), [])
  const taken = await fixture.create(body, caller)
  await fixture.pass(2)
  assert.deepEqual([await fixture.create(body, caller), await another()], [taken, taken])
  assert.equal(fixture.kraken.adds.length, 1)
})

test('a request started before a refusal and paused until after it is refused too', async () => {
  const fixture = await open()
  const caller = await fixture.tenant('poor', 0)
  const { id } = await fixture.link({ api_key: 'other' }, caller)
  const body = {
    exchange_account: id,
    market: 'BTC/USD',
    side: 'buy',
    type: 'limit',
    amount: '0.5',
    price: '60000',
    sequence_id: 's',
  }
  const askedAt = fixture.services.environment.now()
  await fixture.pass(1)
  const poor = refused('PREPAID_FEE_EXHAUSTED', /the prepaid fee account has 0 USD/)
  await assert.rejects(fixture.ask(createOrder, { body, caller }), poor)
  await fixture.database.query('select prepaid_adjust($1, $2, $3, 0)', [
    caller.workspaceId,
    randomUUID(),
    '1000000000',
  ])
  await assert.rejects(fixture.ask(createOrder, { body, caller, askedAt }), poor)
  assert.deepEqual(await fixture.database.query('select 1 from orders'), [])
  const taken = await fixture.ask(createOrder, { body, caller })
  assert.deepEqual(
    await fixture.ask(createOrder, { body, caller, askedAt }),
    taken,
    'what was made is answered, whenever it came',
  )
})

test('refusing an order does not affect a waiting request with its key and another payload', async () => {
  const fixture = await open()
  const caller = await fixture.tenant('poor', 10)
  const body = {
    exchange_account: (await fixture.link({ api_key: 'other' }, caller)).id,
    sequence_id: 's',
  }
  const pausePoint = pauseMethod(fixture.services.exchanges, 'traits')
  const waits = fixture.create({ ...body, amount: '0.1' }, caller)
  await pausePoint.reached
  await assert.rejects(
    fixture.create(body, caller),
    refused('PREPAID_FEE_EXHAUSTED', /has 10 USD, less than the platform fee of 30 USD/),
  )
  pausePoint.open()
  const taken = await waits
  assert.deepEqual(await fixture.create(body, caller), taken)
})

test('a refused key is deleted when no request with that key can still be running', async () => {
  const fixture = await open()
  const caller = await fixture.tenant('poor', 0)
  const body = {
    exchange_account: (await fixture.link({ api_key: 'other' }, caller)).id,
    sequence_id: 's',
  }
  const refusedKeys = () => fixture.database.query('select refusals from refused_keys')
  for (let count = 1; count < 3; count++) {
    await assert.rejects(fixture.create(body, caller), refused('PREPAID_FEE_EXHAUSTED', /./))
    assert.deepEqual(await refusedKeys(), [{ refusals: count }])
  }
  fixture.now += 3_600_000
  await housekeepingLoop(fixture.services).run(new AbortController().signal)
  assert.equal((await refusedKeys()).length, 1)
  fixture.now += 1
  await housekeepingLoop(fixture.services).run(new AbortController().signal)
  assert.deepEqual(await refusedKeys(), [])
})

test('a tenant cannot read accounts and orders of another tenant', async () => {
  const fixture = await open()
  const { id } = await fixture.create()
  const other = await fixture.tenant('two')
  for (const ask of [
    () => fixture.ask(readOrder, { params: { id }, caller: other }),
    () => fixture.create({}, other),
  ])
    await assert.rejects(
      ask(),
      refused('NOT_FOUND', /(?:order|exchange account) \S+ does not exist/),
    )
  assert.deepEqual((await fixture.ask<{ data: unknown[] }>(listOrders, { caller: other })).data, [])
  for (const [query, count] of [
    [{}, 1],
    [{ status: 'open' }, 1],
    [{ status: 'filled' }, 0],
    [{ market: 'btc/usd' }, 1],
    [{ side: 'sell' }, 0],
    [{ id }, 1],
    [{ id: id.replaceAll('-', '') }, 1],
    [{ exchange_account: fixture.accountId }, 1],
    [{ exchange_account: 'x' }, 0],
    [{ exchange: 'Kraken', type: 'limit' }, 1],
    [{ after: '1900000000' }, 0],
    [{ before: '1900000000' }, 1],
  ] as const)
    assert.equal(
      (await fixture.ask<{ total: string }>(listOrders, { query })).total,
      String(count),
      JSON.stringify(query),
    )
})

test('an invalid order is refused with its field and limit, and nothing is sent or stored', async () => {
  const fixture = await open()
  const market = { type: 'market', price: undefined }
  for (const [more, code, message] of [
    [{ amount: '0.00001' }, 'INVALID_AMOUNT', /^amount: must be at least 0.0001 BTC on BTC\/USD$/],
    [{ amount: '0.500000001' }, 'INVALID_AMOUNT', /^amount: must be a multiple of 0.00000001 BTC$/],
    [
      { amount: '0.0002', price: '10' },
      'INVALID_AMOUNT',
      /^amount: must be worth at least 0.5 USD on BTC\/USD; it is 0.002 USD$/,
    ],
    [{ price: '60000.05' }, 'INVALID_REQUEST', /^price: must be a multiple of 0.1 USD$/],
    [{ price: '0' }, 'INVALID_AMOUNT', /^price: must be greater than zero/],
    [{ amount: '0' }, 'INVALID_AMOUNT', /^amount: must be greater than zero/],
    [{ amount: '1e-19' }, 'INVALID_AMOUNT', /^amount: has more than 18 decimals/],
    [{ amount: '1e40' }, 'INVALID_AMOUNT', /^amount: must be at most/],
    [{ amount: '9'.repeat(48) }, 'INVALID_AMOUNT', /^amount: must be at most/],
    [{ amount: '-1' }, 'INVALID_REQUEST', /^amount: must not be negative/],
    [{ price: undefined }, 'INVALID_REQUEST', /^price: is required for a limit order/],
    [{ type: 'market' }, 'INVALID_REQUEST', /^price: is allowed only for a limit order/],
    [{ quote_amount: '5' }, 'INVALID_REQUEST', /^quote_amount: send either amount or quote_amount/],
    [{ amount: undefined }, 'INVALID_REQUEST', /^amount: is required/],
    [
      { amount: undefined, quote_amount: '0.4' },
      'INVALID_AMOUNT',
      /^quote_amount: must be at least 0.0001 BTC on BTC\/USD; it results in 0.00000666 BTC/,
    ],
    [
      { ...market, post_only: true },
      'INVALID_REQUEST',
      /^post_only: is allowed only for a limit order/,
    ],
    [{ ...market, time_in_force: 'GTC' }, 'INVALID_REQUEST', /^time_in_force: must be IOC or FOK/],
    [
      { post_only: true, time_in_force: 'IOC' },
      'INVALID_REQUEST',
      /^time_in_force: must be GTC if post_only is true/,
    ],
    [
      { max_slippage_bps: 5 },
      'INVALID_REQUEST',
      /^max_slippage_bps: is allowed only for a market order/,
    ],
    [
      { ...market, max_slippage_bps: 5001 },
      'INVALID_REQUEST',
      /^max_slippage_bps: must be an integer from 1 to 5000/,
    ],
    [{ side: 'hold' }, 'INVALID_REQUEST', /^side: must be one of buy, sell/],
    [
      { market: 'BTC/EUR' },
      'INVALID_REQUEST',
      /^market: kraken has no market BTC\/EUR; of BTC it has BTC\/USD/,
    ],
    [{ market: 'XBTUSD' }, 'INVALID_REQUEST', /^market: /],
    [
      { exchange_account: 'nonsense' },
      'NOT_FOUND',
      /^exchange_account: exchange account nonsense does not exist in this sub-account/,
    ],
  ] as const)
    await assert.rejects(
      fixture.ask(createOrder, {
        body: {
          exchange_account: fixture.accountId,
          market: 'BTC/USD',
          side: 'buy',
          type: 'limit',
          amount: '0.5',
          price: '60000',
          ...more,
        },
      }),
      refused(code, message),
      JSON.stringify(more),
    )
  fixture.kraken.ask.volume = 0
  await assert.rejects(
    fixture.create(market),
    refused('EXCHANGE_UNAVAILABLE', /^market: there are no asks on BTC\/USD now/),
  )
  assert.deepEqual(
    [fixture.kraken.adds.length, (await fixture.database.query('select 1 from orders')).length],
    [0, 0],
  )
})

test('creates the order whose events are checked at the end of this file', async () => {
  const fixture = await open()
  await fixture.create()
  await fixture.pass(2)
})
testEmittedEvents(
  () => database.get(),
  ['order.created', 'order.updated', 'exchange_account.created'],
)
