import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { call, TestPlatform, waitFor, type User } from '../testing/harness.ts'
import type { Order } from '../testing/venues/trading-fixture.ts'
import { testEmittedEvents } from '../testing/event-assertions.ts'

/**
 * Tests of trading through the API, at the local exchanges on their own protocols: nothing between
 * a signed request and the matching engine is scripted.
 */
const platform = new TestPlatform()
let user: User

before(async () => {
  await platform.start()
  user = await platform.user('desk')
})
after(() => platform.remove())

interface Account {
  id: string
  balances: { asset: string; available: string; total: string; usd: string | null }[]
  difference: unknown[]
  warnings: string[]
  [field: string]: unknown
}
const MARKET: Record<string, string> = { kraken: 'BTC/USD', binance: 'BTC/USDT' }
const venue = (action: string, more: Record<string, unknown>) =>
  platform.operator('devnet', { command: 'venue', action, ...more })
const fault = (exchange: string, mode: string) =>
  platform.operator('devnet', { command: 'fault', network: exchange.toUpperCase(), mode })
const audit = async () => {
  const report = (await platform.operator('audit')) as {
    ok: boolean
    differences: unknown
    exchanges: { accounts: number; balances: number }
  }
  assert.equal(report.ok, true, JSON.stringify(report.differences))
  return report.exchanges
}
const link = async (exchange: string, more: Record<string, unknown> = {}): Promise<Account> => {
  const key = await venue('key', { exchange, no_withdraw: true, unlimited: true, ...more })
  const answer = await call<Account>(user, 'POST', '/dac/v1/exchange-accounts', {
    exchange,
    label: exchange,
    ...key,
  })
  assert.equal(answer.status, 200, answer.text)
  return answer.body
}
const create = async (
  account: Account,
  exchange: string,
  more: Record<string, unknown>,
): Promise<Order> => {
  const answer = await call<Order>(user, 'POST', '/dac/v1/orders', {
    exchange_account: account.id,
    market: MARKET[exchange],
    ...more,
  })
  assert.equal(answer.status, 200, answer.text)
  return answer.body
}
const read = async (id: string) => (await call<Order>(user, 'GET', `/dac/v1/orders/${id}`)).body
/**
 * Polls the database until the order has ended, because a signed request costs ten times as much.
 */
const ended = (id: string) =>
  waitFor(
    `order ${id}`,
    async () =>
      (await platform.database.one(`select 1 from orders where id = $1 and state = 'ENDED'`, [id]))
        ? read(id)
        : null,
    30_000,
    100,
  )
const book = async (exchange: string) =>
  (
    await call<{ bids: { price: string }[]; asks: { price: string }[] }>(
      user,
      'GET',
      `/dac/v1/orderbook?exchange=${exchange}&market=${encodeURIComponent(MARKET[exchange] as string)}&depth=1`,
    )
  ).body
const accounts: Record<string, Account> = {}

for (const exchange of ['kraken', 'binance']) {
  test(`${exchange}: linking, buying, selling and cancelling keep the ledger equal to the exchange`, async () => {
    const account = await link(exchange)
    accounts[exchange] = account
    const buy = await ended(
      (await create(account, exchange, { side: 'buy', type: 'market', amount: '0.01' })).id,
    )
    assert.deepEqual([buy.status, buy.filled], ['filled', '0.01'], JSON.stringify(buy))
    assert.ok(Number(buy.average_price) <= Number(buy.protection_price))
    const sell = await ended(
      (await create(account, exchange, { side: 'sell', type: 'market', amount: '0.005' })).id,
    )
    assert.deepEqual(
      [sell.status, sell.fills.length > 0, sell.fees.length],
      ['filled', true, 1],
      JSON.stringify(sell),
    )
    const { bids } = await book(exchange)
    const low = String(Math.floor(Number(bids[0]?.price) / 2))
    const resting = await create(account, exchange, {
      side: 'buy',
      type: 'limit',
      amount: '0.01',
      price: low,
      post_only: true,
    })
    await waitFor('taken', async () => (await read(resting.id)).exchange_order_id)
    assert.equal((await call(user, 'POST', `/dac/v1/orders/${resting.id}/cancel`, {})).status, 200)
    assert.deepEqual(
      [(await ended(resting.id)).status, (await read(resting.id)).filled],
      ['cancelled', '0'],
    )
    const taker = await ended(
      (
        await create(account, exchange, {
          side: 'buy',
          type: 'limit',
          amount: '0.01',
          price: String(Math.ceil(Number(bids[0]?.price) * 1.01)),
          post_only: true,
        })
      ).id,
    )
    assert.deepEqual([taker.status, taker.reason], ['rejected', 'WOULD_TAKE'])
    assert.ok((await audit()).balances > 0)
  })

  test(`${exchange}: an order is placed once if its response is lost or everything is down`, async () => {
    const account = accounts[exchange] as Account
    await fault(exchange, 'drop-answer')
    const lost = await ended(
      (
        await create(account, exchange, {
          side: 'buy',
          type: 'limit',
          amount: '0.002',
          price: String(Math.ceil(Number((await book(exchange)).asks[0]?.price) * 1.005)),
        })
      ).id,
    )
    assert.equal(lost.status, 'filled', JSON.stringify(lost))
    const away = await create(account, exchange, {
      side: 'buy',
      type: 'limit',
      amount: '0.003',
      price: String(Math.floor(Number((await book(exchange)).bids[0]?.price) / 2)),
    })
    await waitFor('taken', async () => (await read(away.id)).exchange_order_id)
    await fault(exchange, 'down')
    assert.equal((await call(user, 'POST', `/dac/v1/orders/${away.id}/cancel`, {})).status, 200)
    await fault(exchange, 'heal')
    assert.equal((await ended(away.id)).status, 'cancelled')
    await audit()
  })
}

test('two accounts of the local exchange trade with each other, partially fill and cancel', async () => {
  const [maker, taker] = [await link('kraken'), accounts['kraken'] as Account]
  const bid = Number((await book('kraken')).bids[0]?.price)
  const inside = String(Math.floor(bid) + 2)
  const rest = await create(maker, 'kraken', {
    side: 'buy',
    type: 'limit',
    amount: '0.02',
    price: inside,
  })
  await waitFor('taken', async () => (await read(rest.id)).exchange_order_id)
  const hit = await ended(
    (
      await create(taker, 'kraken', {
        side: 'sell',
        type: 'limit',
        amount: '0.005',
        price: inside,
        time_in_force: 'IOC',
      })
    ).id,
  )
  assert.equal(hit.status, 'filled', JSON.stringify(hit))
  await call(user, 'POST', `/dac/v1/orders/${rest.id}/cancel`, {})
  const { status, filled, fills } = await ended(rest.id)
  assert.deepEqual([status, filled, fills.length], ['cancelled', '0.005', 1])
  await audit()
})

test('a fill that the exchange reports twice counts once, and a hidden one is found later', async () => {
  const account = accounts['kraken'] as Account
  for (const mode of ['duplicate-fill', 'hidden-order']) {
    await fault('kraken', mode)
    const order = await ended(
      (await create(account, 'kraken', { side: 'buy', type: 'market', amount: '0.001' })).id,
    )
    assert.deepEqual([order.status, order.filled], ['filled', '0.001'], mode)
    await fault('kraken', 'heal')
  }
  await audit()
})

test('an order is sent once if the process is killed right after sending it', async () => {
  const account = accounts['binance'] as Account
  let id = ''
  await platform.dieAt('order.answered', async () => {
    id = (
      await create(account, 'binance', {
        side: 'buy',
        type: 'market',
        amount: '0.001',
        sequence_id: 'killed',
      })
    ).id
  })
  user.base = platform.base
  const order = await ended(
    (
      await create(account, 'binance', {
        side: 'buy',
        type: 'market',
        amount: '0.001',
        sequence_id: 'killed',
      })
    ).id,
  )
  // The first response may have been lost with the process.
  assert.deepEqual(
    [order.id, order.status, order.filled],
    [id === '' ? order.id : id, 'filled', '0.001'],
  )
  await audit()
})

test('two processes with one account use rising nonces, and no request is refused', async () => {
  const account = await link('kraken', { unlimited: true })
  const other = await platform.startApi()
  const path = `/dac/v1/exchange-accounts/${account.id}/test`
  const answers = await Promise.all(
    Array.from({ length: 12 }, (_, at) =>
      call<{ ok: boolean; error: string | null }>(
        user,
        'POST',
        path,
        {},
        at % 2 === 0 ? {} : { base: other.base },
      ),
    ),
  )
  assert.deepEqual(
    answers.map(({ body }) => [body.ok, body.error]),
    answers.map(() => [true, null]),
  )
  await other.stop()
})

test('an order is kept while its key is revoked, and ends after a new key is set', async () => {
  const key = await venue('key', { exchange: 'binance', no_withdraw: true, unlimited: true })
  const spare = await venue('key', {
    exchange: 'binance',
    no_withdraw: true,
    unlimited: true,
    account_of: key['api_key'],
  })
  const { body: account } = await call<Account>(user, 'POST', '/dac/v1/exchange-accounts', {
    exchange: 'binance',
    label: 'mid-order',
    ...key,
  })
  const low = String(Math.floor(Number((await book('binance')).bids[0]?.price) / 2))
  const order = await create(account, 'binance', {
    side: 'buy',
    type: 'limit',
    amount: '0.01',
    price: low,
  })
  await waitFor('taken', async () => (await read(order.id)).exchange_order_id)
  await venue('revoke', { api_key: key['api_key'] })
  assert.equal((await call(user, 'POST', `/dac/v1/orders/${order.id}/cancel`, {})).status, 200)
  await waitFor(
    'the refusal',
    async () =>
      (await call<Account>(user, 'GET', `/dac/v1/exchange-accounts/${account.id}`)).body[
        'status'
      ] === 'failing',
  )
  assert.equal((await read(order.id)).status, 'open')
  assert.equal(
    (await call(user, 'PATCH', `/dac/v1/exchange-accounts/${account.id}`, spare)).status,
    200,
  )
  assert.deepEqual(
    [(await ended(order.id)).status, (await read(order.id)).filled],
    ['cancelled', '0'],
  )
  await audit()
})

test('an account whose key is revoked refuses orders, and can be unlinked', async () => {
  const key = await venue('key', { exchange: 'binance', no_withdraw: true })
  const linked = await call<Account>(user, 'POST', '/dac/v1/exchange-accounts', {
    exchange: 'binance',
    label: 'revoked',
    ...key,
  })
  await venue('revoke', { api_key: key['api_key'] })
  const tested = await call<{ ok: boolean; status: string }>(
    user,
    'POST',
    `/dac/v1/exchange-accounts/${linked.body.id}/test`,
    {},
  )
  assert.deepEqual([tested.body.ok, tested.body.status], [false, 'failing'])
  assert.equal(
    (
      await call(user, 'POST', '/dac/v1/orders', {
        exchange_account: linked.body.id,
        market: 'BTC/USDT',
        side: 'buy',
        type: 'market',
        amount: '0.001',
      })
    ).status,
    400,
  )
  assert.equal(
    (await call(user, 'DELETE', `/dac/v1/exchange-accounts/${linked.body.id}`)).status,
    200,
  )
  await audit()
})

testEmittedEvents(
  () => platform.database,
  [
    'order.created',
    'order.updated',
    'exchange_account.created',
    'exchange_account.failing',
    'exchange_account.deleted',
  ],
)
