import assert from 'node:assert/strict'
import { createHash, createHmac } from 'node:crypto'
import { after, before, describe, test } from 'node:test'
import {
  assertConfirmed,
  call,
  fundedWallet,
  TestPlatform,
  type Transfer,
  type User,
} from '../testing/harness.ts'
import type { Order } from '../testing/venues/trading-fixture.ts'
import { testEmittedEvents } from '../testing/event-assertions.ts'
import { waitFor } from '../../../testing/wait-for.ts'

/**
 * Tests of trading, of transfers between a wallet and an exchange in both directions, and of
 * conversions, through the API, with real chains, real nodes, and local exchanges that use their
 * own protocols: nothing between a signed request and the matching engine is scripted.
 */
const platform = new TestPlatform()

before(() => platform.start())
after(() => platform.remove())

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

describe('trading', () => {
  let user: User
  before(async () => {
    user = await platform.user('desk')
  })

  interface Account {
    id: string
    balances: {
      asset: string
      available: string
      total: string
      usd: string | null
      price_usd: string | null
    }[]
    difference: unknown[]
    warnings: string[]
    [field: string]: unknown
  }
  const MARKET: Record<string, string> = { kraken: 'BTC/USD', binance: 'BTC/USDT' }
  const venue = (action: string, more: Record<string, unknown>) =>
    platform.operator('devnet', { command: 'venue', action, ...more })
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
        (await platform.database.one(`select 1 from orders where id = $1 and state = 'ENDED'`, [
          id,
        ]))
          ? read(id)
          : null,
      { pauseMsMax: 100 },
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
      assert.equal(
        (await call(user, 'POST', `/dac/v1/orders/${resting.id}/cancel`, {})).status,
        200,
      )
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

  test('two processes with one account use rising nonces, and no request is refused', async () => {
    const account = await link('kraken', { unlimited: true })
    const other = await platform.startApi()
    const path = `/dac/v1/exchange-accounts/${account.id}/test`
    // Each process tests one account of a workspace at a time.
    const answers = await Promise.all(
      [{}, { base: other.base }].map(async (at) => {
        const given: { ok: boolean; error: string | null }[] = []
        for (let count = 0; count < 6; count++)
          given.push(
            (await call<{ ok: boolean; error: string | null }>(user, 'POST', path, {}, at)).body,
          )
        return given
      }),
    )
    assert.deepEqual(
      answers.flat().map(({ ok, error }) => [ok, error]),
      Array.from({ length: 12 }, () => [true, null]),
    )
    await other.stop()
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
      (await call(user, 'DELETE', `/dac/v1/exchange-accounts/${linked.body.id}`, {})).status,
      200,
    )
    await audit()
  })
})

describe('transfers and conversions', () => {
  let user: User

  interface Moved {
    id: string
    status: string
    sub_status: string
    credited: string | null
    fee: string | null
    transaction_id: string | null
    hash: string | null
    reason: string | null
    [field: string]: unknown
  }
  interface Account {
    id: string
    balances: { asset: string; total: string }[]
    difference: unknown[]
  }
  interface DepositTarget {
    address: string
    address_tag: string | null
    changed: boolean
  }
  const accounts: Record<string, string> = {}
  const keys: Record<string, string> = {}

  before(async () => {
    user = await platform.user('treasury')
    await fundedWallet(platform, user, 'BTC', '2')
    for (const exchange of ['kraken', 'binance']) {
      const key = await platform.operator('devnet', {
        command: 'venue',
        action: 'key',
        exchange,
        unlimited: true,
      })
      const { body, text } = await call<Account>(user, 'POST', '/dac/v1/exchange-accounts', {
        exchange,
        label: exchange,
        allow_withdrawal: true,
        ...key,
      })
      accounts[exchange] = body.id ?? assert.fail(text)
      keys[exchange] = String(key['api_key'])
    }
  })

  /**
   * Sends a request to the exchange with a separate key of the account's owner, signed according to
   * Kraken's documentation.
   */
  async function kraken(method: string, fields: Record<string, string>): Promise<void> {
    const { api_key: key, api_secret: secret } = await platform.operator('devnet', {
      command: 'venue',
      action: 'key',
      exchange: 'kraken',
      account_of: keys['kraken'],
    })
    const { kraken: base } = await platform.operator('devnet', { command: 'venue', action: 'urls' })
    const path = `/0/private/${method}`
    const nonce = String(Date.now())
    const body = new URLSearchParams({ nonce, ...fields }).toString()
    const digest = createHash('sha256')
      .update(nonce + body)
      .digest()
    const sign = createHmac('sha512', Buffer.from(String(secret), 'base64'))
      .update(Buffer.concat([Buffer.from(path), digest]))
      .digest('base64')
    const answer = await fetch(`${String(base)}${path}`, {
      method: 'POST',
      body,
      headers: {
        'api-key': String(key),
        'api-sign': sign,
        'content-type': 'application/x-www-form-urlencoded',
      },
    })
    assert.deepEqual(((await answer.json()) as { error: string[] }).error, [])
  }

  const held = async (exchange: string, coin: string) =>
    Number(
      (
        await call<Account>(user, 'GET', `/dac/v1/exchange-accounts/${accounts[exchange]}`)
      ).body.balances.find(({ asset }) => asset === coin)?.total ?? 0,
    )
  const place = async (exchange: string, asset: string) =>
    (
      await call<DepositTarget>(
        user,
        'GET',
        `/dac/v1/exchange-accounts/${accounts[exchange]}/deposit-address?asset=${asset}`,
      )
    ).body
  const send = (
    exchange: string,
    asset: string,
    amount: string,
    to: DepositTarget,
    more: Record<string, unknown> = {},
  ) =>
    call<Transfer & { code: string; message: string; destination_type: string }>(
      user,
      'POST',
      '/dac/v1/transaction',
      {
        asset,
        amount,
        destination_address: to.address,
        destination_type: 'EXCHANGE',
        source_type: 'INTERNAL',
        destination_id: accounts[exchange],
        ...(to.address_tag === null ? {} : { address_tag: to.address_tag }),
        ...more,
      },
    )
  const withdraw = (
    exchange: string,
    asset: string,
    amount: string,
    more: Record<string, unknown> = {},
  ) =>
    call<Moved & { code: string; message: string }>(user, 'POST', '/dac/v1/exchange-withdrawals', {
      exchange_account: accounts[exchange],
      asset,
      amount,
      ...more,
    })
  const read = async (id: string) =>
    (await call<Moved>(user, 'GET', `/dac/v1/exchange-transfers/${id}`)).body
  const ended = (id: string) =>
    waitFor(
      `exchange transfer ${id}`,
      async () =>
        (await platform.database.one(
          `select 1 from exchange_transfers where id = $1 and state in ('DONE', 'FAILED')`,
          [id],
        ))
          ? read(id)
          : null,
      { pauseMsMax: 100 },
    )
  const of = async (transaction: string) =>
    (
      await call<{ data: Moved[] }>(
        user,
        'GET',
        `/dac/v1/exchange-transfers?transaction_id=${transaction}`,
      )
    ).body.data[0] ?? assert.fail('no exchange transfer')

  for (const exchange of ['kraken', 'binance']) {
    test(`${exchange}: counts a deposit and a withdrawal of a coin once, and all balances agree`, async () => {
      const before = await held(exchange, 'BTC')
      const sent = await send(exchange, 'BTC', '0.4', await place(exchange, 'BTC'))
      assert.deepEqual([sent.status, sent.body.destination_type], [200, 'EXCHANGE'], sent.text)
      await assertConfirmed(user, sent.body.id)
      const there = await ended((await of(sent.body.id)).id)
      assert.deepEqual(
        [there.status, there.credited, there['direction']],
        ['completed', '0.4', 'to_exchange'],
        JSON.stringify(there),
      )
      await waitFor(
        'the balance',
        async () => Math.abs((await held(exchange, 'BTC')) - before - 0.4) < 1e-9,
      )
      const peerCalls = await withdraw(exchange, 'BTC', '0.3', { sequence_id: exchange })
      assert.equal(peerCalls.status, 200, peerCalls.text)
      assert.equal(
        (await withdraw(exchange, 'BTC', '0.3', { sequence_id: exchange })).headers.get(
          'idempotent-replayed',
        ),
        'true',
      )
      const back = await ended(peerCalls.body.id)
      assert.equal(back.status, 'completed', JSON.stringify(back))
      const deposit = (
        await call<Transfer & { source_type: string; source_id: string }>(
          user,
          'GET',
          `/dac/v1/transaction/${back.transaction_id}`,
        )
      ).body
      assert.deepEqual([deposit.source_type, deposit.source_id], ['EXCHANGE', accounts[exchange]])
      assert.equal(
        Number(deposit.amount).toFixed(8),
        (0.3 - Number(back.fee)).toFixed(8),
        'the exchange’s fee is in what was asked for',
      )
      await audit()
    })
  }

  test('the deposit address includes its tag, and a transfer without the tag is refused', async () => {
    await fundedWallet(platform, user, 'XRP', '500')
    const to = await place('binance', 'XRP')
    assert.match(String(to.address_tag), /^\d+$/)
    const wrong = await send('binance', 'XRP', '50', { ...to, address_tag: null })
    assert.deepEqual(
      [
        wrong.status,
        wrong.body.message.startsWith(
          'address_tag: the deposit address of this account at binance for XRP is',
        ),
      ],
      [400, true],
      wrong.text,
    )
    const sent = await send('binance', 'XRP', '50', to)
    assert.equal(sent.status, 200, sent.text)
    assert.equal((await ended((await of(sent.body.id)).id)).credited, '50')
    const peerCalls = await withdraw('binance', 'XRP', '40')
    assert.equal(peerCalls.status, 200, peerCalls.text)
    assert.equal((await ended(peerCalls.body.id)).status, 'completed')
    await audit()
  })

  test('a changed deposit address is used only if confirm_address contains it', async () => {
    const old = await place('kraken', 'BTC')
    await fault('kraken', 'changed-address')
    const refused = await send('kraken', 'BTC', '0.01', old)
    assert.equal(refused.status, 400, refused.text)
    const now = await place('kraken', 'BTC')
    assert.equal(now.changed, true)
    await fault('kraken', 'heal')
    const unnamed = await send('kraken', 'BTC', '0.01', now)
    assert.deepEqual(
      [unnamed.status, unnamed.body.code],
      [409, 'EXCHANGE_ADDRESS_CHANGED'],
      unnamed.text,
    )
    const named = await send('kraken', 'BTC', '0.01', now, { confirm_address: now.address })
    assert.equal(named.status, 200, named.text)
    assert.equal((await ended((await of(named.body.id)).id)).status, 'completed')
    await audit()
  })

  test('pays a withdrawal once if the response is lost or the process is killed', async () => {
    for (const exchange of ['kraken', 'binance']) {
      await fault(exchange, 'drop-answer')
      const lost = await ended((await withdraw(exchange, 'BTC', '0.05')).body.id)
      assert.equal(lost.status, 'completed', JSON.stringify(lost))
      await fault(exchange, 'heal')
      let id = ''
      await platform.dieAt('exchange-withdrawal.answered', async () => {
        id = (await withdraw(exchange, 'BTC', '0.06', { sequence_id: `killed ${exchange}` })).body
          .id
      })
      user.base = platform.base
      const killed = await ended(
        (await withdraw(exchange, 'BTC', '0.06', { sequence_id: `killed ${exchange}` })).body.id,
      )
      assert.deepEqual([killed.id, killed.status], [id === '' ? killed.id : id, 'completed'])
      const rows = await platform.database.query(
        `select 1 from transactions where source_type = 'EXCHANGE' and source_id = $1
        and amount < 6000000`,
        [accounts[exchange]],
      )
      assert.equal(rows.length, 2)
    }
    await audit()
  })

  test('a withdrawal that the exchange cancels is returned to its balance in the ledger', async () => {
    await fault('kraken', 'stuck-withdrawal')
    const {
      body: { id },
    } = await withdraw('kraken', 'BTC', '0.07')
    const stuck = await waitFor('the exchange has it', async () => {
      const now = await read(id)
      return now.sub_status === 'WITHDRAWING' ? now : null
    })
    await audit()
    await kraken('WithdrawCancel', { asset: 'XBT', refid: String(stuck['exchange_transfer_id']) })
    const back = await ended(id)
    assert.deepEqual(
      [back.status, back.reason],
      ['failed', 'the exchange cancelled it, and still has the coins'],
      JSON.stringify(back),
    )
    await fault('kraken', 'heal')
    await audit()
  })

  test('converts at the account with the better price, as one order', async () => {
    interface Conversion {
      id: string
      status: string
      exchange: string
      receive: string
      others: { receive: string | null; reason: string | null }[]
      order: { id: string; status: string; fees: unknown[] } | null
      message?: string
    }
    const quote = await call<Conversion>(user, 'POST', '/dac/v1/conversions/quote', {
      from_asset: 'BTC',
      to_asset: 'USDT',
      amount: '0.05',
    })
    assert.deepEqual(
      [quote.status, quote.body.status, quote.body.others.length],
      [200, 'quoted', 1],
      quote.text,
    )
    assert.equal(
      (await call(user, 'POST', '/dac/v1/conversions', { quote: quote.body.id })).status,
      200,
    )
    const done = await waitFor('the conversion', async () => {
      const { body } = await call<Conversion>(user, 'GET', `/dac/v1/conversions/${quote.body.id}`)
      return body.order?.status === 'filled' ? body : null
    })
    assert.equal(done.status, 'ordered')
    await audit()
  })
})

testEmittedEvents(
  () => platform.database,
  [
    'order.created',
    'order.updated',
    'exchange_account.created',
    'exchange_account.failing',
    'exchange_account.deleted',
    'exchange_transfer.created',
    'exchange_transfer.updated',
  ],
)
