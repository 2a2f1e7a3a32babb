// Binance's protocol, used with unmodified ccxt.
import assert from 'node:assert/strict'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { localUtxoChains } from '../bitcoin/local.ts'
import { Devnet } from '../devnet.ts'
import { signatureOf } from './binance/auth.ts'
import { METHODS } from './binance/index.ts'
import { removeHome, tempHome } from '../../testing/support.ts'
import {
  clientOf,
  control,
  failure,
  newKey,
  type Client,
  type Key,
} from '../../testing/venue-support.ts'
import { waitFor } from '../../../../testing/wait-for.ts'

const home = tempHome()
const start = () => Devnet.start(home, 0, { manual: true, families: [localUtxoChains] })
let devnet: Devnet
let key: Key
let binance: Client
const fault = (mode: string) => control(devnet, { command: 'fault', network: 'BINANCE', mode })
const another = async (more: Record<string, unknown> = {}) =>
  clientOf('binance', devnet, await newKey(devnet, 'binance', more))
/** Sends a signed request without ccxt. @returns the response and its status */
async function signed(
  method: string,
  path: string,
  args: Record<string, unknown>,
  o: { inBody?: boolean; secret?: string } = {},
): Promise<{ status: number; headers: Headers; body: { code?: number; msg?: string } }> {
  const named = Object.entries({ timestamp: Date.now(), ...args })
  const text = named
    .map(([name, value]) => `${name}=${encodeURIComponent(String(value))}`)
    .join('&')
  const whole = `${text}&signature=${signatureOf(text, o.secret ?? key.api_secret)}`
  const answer = await fetch(
    `${devnet.url}/exchanges/binance${path}${o.inBody ? '' : `?${whole}`}`,
    {
      method,
      headers: { 'x-mbx-apikey': key.api_key },
      ...(o.inBody ? { body: whole } : {}),
    },
  )
  return {
    status: answer.status,
    headers: answer.headers,
    body: (await answer.json()) as { code?: number },
  }
}
const order = (args: Record<string, unknown>) =>
  signed(
    'POST',
    '/api/v3/order',
    {
      symbol: 'BTCUSDT',
      side: 'BUY',
      type: 'LIMIT',
      timeInForce: 'GTC',
      quantity: '0.001',
      price: '50000',
      ...args,
    },
    { inBody: true },
  )

before(async () => {
  devnet = await start()
  key = await newKey(devnet, 'binance')
  binance = await clientOf('binance', devnet, key)
})
after(() => {
  devnet.close()
  removeHome(home)
})

test("calculates the published signature of the documentation's example", () => {
  const query =
    'symbol=LTCBTC&side=BUY&type=LIMIT&timeInForce=GTC&quantity=1&price=0.1&recvWindow=5000&timestamp=1499827319559'
  assert.equal(
    signatureOf(query, 'NhqPtmdSJYdKjVHjA7PZj4Mge3R5YNiP1e3UZjInClVN65XAbvqqM6A7H5fATj0j'),
    'c8db56825ae71d6d79447849e617115f4a920fa2acdcab2b053c4b2838bd6b71',
  )
})

test('returns markets with their filters, prices, order book, coins and fees', async () => {
  assert.ok(
    ['BTC/USDT', 'ETH/BTC', 'BTC/USDC', 'DOGE/USDT'].every((symbol) =>
      binance.symbols.includes(symbol),
    ),
  )
  const { precision, limits } = binance.market('BTC/USDT')
  assert.deepEqual(
    [precision.amount, precision.price, limits['amount']?.min, limits['cost']?.min],
    [0.00001, 0.01, 0.00001, 5],
  )
  const { bid, ask, last } = await binance.fetchTicker('BTC/USDT')
  // The price is 60,000 USD, and one tether costs 1.0003 USD.
  assert.ok(bid < last && last < ask && Math.abs(last - 60_000 / 1.0003) < 1)
  assert.equal((await binance.fetchOrderBook('BTC/USDT', 5)).asks.length, 5)
  const { maker, taker } = (await binance.fetchTradingFees())['BTC/USDT']!
  assert.deepEqual([maker, taker], [0.001, 0.001])
})

test('executes orders of each type and reports them', async () => {
  const client = await another({ balances: 'USDT=200000,BTC=1' })
  const first = await client.createOrder('BTC/USDT', 'market', 'buy', 0.01, undefined, {
    clientOrderId: 'first',
  })
  assert.deepEqual([first.status, first.filled, first.clientOrderId], ['closed', 0.01, 'first'])
  assert.deepEqual(
    (await client.fetchOrder(undefined, 'BTC/USDT', { clientOrderId: 'first' })).id,
    first.id,
  )
  const [fill] = await client.fetchMyTrades('BTC/USDT')
  // A buyer pays the fee in the purchased coin.
  assert.deepEqual([fill!.order, fill!.fee], [first.id, { cost: 0.00001, currency: 'BTC' }])
  assert.equal((await client.fetchBalance())['BTC']!.total, 1.00999)
  const spent = await client.createOrder('BTC/USDT', 'market', 'buy', 0, undefined, { cost: 1000 })
  assert.ok(spent.cost! <= 1000 && spent.cost! > 999)
  const earned = await client.createOrder('BTC/USDT', 'market', 'sell', 0, undefined, {
    cost: 1000,
  })
  assert.ok(earned.status === 'closed' && earned.cost! <= 1000 && earned.cost! > 999)
  const killed = await client.createOrder('BTC/USDT', 'limit', 'buy', 3, 59_990, {
    timeInForce: 'FOK',
  })
  const part = await client.createOrder('BTC/USDT', 'limit', 'buy', 3, 59_990, {
    timeInForce: 'IOC',
  })
  assert.deepEqual([killed.status, killed.filled, killed.info['status']], ['expired', 0, 'EXPIRED'])
  assert.deepEqual([part.status, part.info['status']], ['expired', 'EXPIRED'])
  assert.ok(part.filled! > 0)
  const resting = await client.createOrder('BTC/USDT', 'limit', 'buy', 0.1, 50_000, {
    clientOrderId: 'resting',
    postOnly: true,
  })
  assert.equal((await client.fetchBalance())['USDT']!.used, 5000)
  const again = client.createOrder('BTC/USDT', 'limit', 'buy', 0.1, 50_000, {
    clientOrderId: 'resting',
  })
  assert.match(await failure(again), /Duplicate order sent/)
  assert.match(
    await failure(client.createOrder('BTC/USDT', 'limit', 'buy', 0.1, 61_000, { postOnly: true })),
    /^OrderImmediatelyFillable/,
  )
  assert.deepEqual(
    (await client.fetchOpenOrders('BTC/USDT')).map(({ id }) => id),
    [resting.id],
  )
  assert.equal(
    (await client.cancelOrder(undefined, 'BTC/USDT', { clientOrderId: 'resting' })).status,
    'canceled',
  )
  assert.match(await failure(client.cancelOrder(resting.id, 'BTC/USDT')), /^OrderNotFound.*-2011/)
  assert.match(await failure(client.fetchOrder('77', 'BTC/USDT')), /^OrderNotFound.*-2013/)
  assert.equal((await client.fetchBalance())['USDT']!.used, 0)
  assert.equal((await client.fetchOrders('BTC/USDT')).length, 6)
  assert.match(
    await failure(client.createOrder('BTC/USDT', 'market', 'sell', 9)),
    /^InsufficientFunds/,
  )
})

test('of fifty concurrent orders with funds for twenty, exactly twenty are accepted', async () => {
  const client = await another({ balances: 'USDT=10000', unlimited: true })
  const said = await Promise.all(
    Array.from({ length: 50 }, () =>
      failure(client.createOrder('BTC/USDT', 'limit', 'buy', 0.01, 50_000)),
    ),
  )
  const count = (start: string) => said.filter((each) => each.startsWith(start)).length
  assert.deepEqual([count('none'), count('InsufficientFunds')], [20, 30])
  assert.deepEqual((await client.fetchBalance())['USDT'], { free: 0, used: 10_000, total: 10_000 })
})

test('does not match an account with itself, and keeps partial fills after a cancellation', async () => {
  const [one, other] = [
    await another({ balances: 'ONE=5000,USDT=100' }),
    await another({ balances: 'ONE=5000,USDT=100' }),
  ]
  const ask = await one.createOrder('ONE/USDT', 'limit', 'sell', 2000, 0.0119966)
  const own = await one.createOrder('ONE/USDT', 'limit', 'buy', 1000, 0.0119966)
  assert.deepEqual([own.info['status'], own.filled], ['EXPIRED_IN_MATCH', 0])
  await other.createOrder('ONE/USDT', 'limit', 'buy', 500, 0.0119966)
  assert.deepEqual((await one.fetchOrder(ask.id, 'ONE/USDT')).info['status'], 'PARTIALLY_FILLED')
  const { status, filled } = await one.cancelOrder(ask.id, 'ONE/USDT')
  assert.deepEqual([status, filled], ['canceled', 500])
})

test('each refusal has its error code and changes nothing', async () => {
  const before = (await binance.fetchBalance())['USDT']
  for (const [args, code, text] of [
    [{ price: '50000.001' }, -1013, /PRICE_FILTER/],
    [{ quantity: '0.0010001' }, -1013, /LOT_SIZE/],
    [{ quantity: '0.00001' }, -1013, /NOTIONAL/],
    [{ price: '600000' }, -1013, /PERCENT_PRICE_BY_SIDE/],
    [{ quantity: '0.000000001' }, -1111, /quantity/],
    [{ symbol: 'NO' }, -1121, /symbol/],
    [{ side: 'HOLD' }, -1117, /side/],
    [{ type: 'STOP_LOSS' }, -1116, /orderType/],
    [{ timeInForce: 'GTD' }, -1115, /timeInForce/],
    [{ quantity: '' }, -1102, /quantity/],
    [{ newClientOrderId: 'ä' }, -1100, /newClientOrderId/],
    [{ quantity: '5' }, -2010, /insufficient balance/],
    [{ recvWindow: 60_001 }, -1131, /60000/],
    [{ timestamp: Date.now() - 10_000 }, -1021, /outside/],
    [{ timestamp: Date.now() + 600_000 }, -1021, /ahead/],
    [{ type: 'MARKET' }, -1106, /timeInForce/],
    [{ timestamp: '' }, -1102, /timestamp/],
  ] as const) {
    const { status, body } = await order(args)
    assert.deepEqual([status, body.code], [400, code], JSON.stringify([args, body]))
    assert.match(body.msg ?? '', text)
  }
  assert.deepEqual((await binance.fetchBalance())['USDT'], before)
  const trial = { symbol: 'BTCUSDT', side: 'SELL', type: 'MARKET', quantity: '0.1' }
  assert.deepEqual((await signed('POST', '/api/v3/order/test', trial)).body, {})
  assert.equal((await fetch(`${devnet.url}/exchanges/binance/fapi/v1/exchangeInfo`)).status, 404)
})

test('verifies signatures over query and body, permissions, and revoked keys', async () => {
  const [query, body] = [
    'symbol=BTCUSDT&side=SELL&type=MARKET',
    `quantity=0.001&timestamp=${Date.now()}`,
  ]
  const mixed = await fetch(`${devnet.url}/exchanges/binance/api/v3/order?${query}`, {
    method: 'POST',
    headers: { 'x-mbx-apikey': key.api_key },
    body: `${body}&signature=${signatureOf(query + body, key.api_secret)}`,
  })
  assert.equal(mixed.status, 200)
  const wrong = await signed('GET', '/api/v3/account', {}, { secret: 'x' })
  assert.deepEqual([wrong.status, wrong.body.code], [400, -1022])
  const reader = await another({ permissions: 'query' })
  assert.match(await failure(reader.createOrder('BTC/USDT', 'market', 'buy', 0.01)), /-2015/)
  const cautious = await another({ no_withdraw: true })
  const rights = (await cautious.request('account/apiRestrictions', 'sapi', 'GET')) as Record<
    string,
    boolean
  >
  assert.deepEqual(
    [rights['enableWithdrawals'], rights['enableSpotAndMarginTrading'], rights['ipRestrict']],
    [false, true, false],
  )
  const gone = await newKey(devnet, 'binance')
  const client = await clientOf('binance', devnet, gone)
  await control(devnet, { command: 'venue', action: 'revoke', api_key: gone.api_key })
  assert.match(await failure(client.fetchBalance()), /-2015/)
})

test('counts request weights per minute, and orders per ten seconds', async () => {
  const client = await another()
  const early = await Promise.all(
    Array.from({ length: 105 }, () =>
      failure(client.createOrder('BTC/USDT', 'limit', 'buy', 0.001, 40_000)),
    ),
  )
  // A new window may begin between the requests.
  assert.ok(early.filter((each) => each !== 'none').every((each) => /-1015/.test(each)))
  const account = await newKey(devnet, 'binance')
  let [calls, limited] = [0, '']
  const own = await clientOf('binance', devnet, account)
  while (calls < 25 && limited === '') {
    calls += 1
    const said = await failure(own.withdraw('BTC', 0.00001, 'nowhere'))
    if (said.startsWith('DDoSProtection')) limited = said
  }
  assert.match(limited, /429.*-1003/)
})

test('executes deposits and withdrawals on a local chain', async () => {
  const client = await another({ unlimited: true })
  const { address } = await client.fetchDepositAddress('LTC', { network: 'LTC' })
  // Concurrent requests of one account return the same address.
  const newcomer = await another()
  const all = await Promise.all([1, 2, 3].map(() => newcomer.fetchDepositAddress('LTC')))
  assert.equal(new Set([...all.map((each) => each.address), address]).size, 2)
  await control(devnet, { command: 'fund', asset: 'LTC', address, amount: '2.5' })
  await waitFor('it is seen', async () => (await client.fetchDeposits('LTC')).length === 1)
  const [seen] = await client.fetchDeposits('LTC')
  assert.deepEqual([seen!.status, seen!.amount, seen!.network], ['pending', 2.5, 'LTC'])
  await control(devnet, { command: 'mine', network: 'LTC', blocks: 11 })
  await waitFor('it is credited', async () => (await client.fetchBalance())['LTC']?.total === 2.5)
  for (const [amount, to, wanted] of [
    [5, address, /-4026/],
    [0.001, address, /-4028|-4022/],
  ] as const) {
    assert.match(await failure(client.withdraw('LTC', amount, to)), wanted)
  }
  const { id } = await client.withdraw('LTC', 1, address, undefined, {
    withdrawOrderId: 'mine',
    network: 'LTC',
  })
  await waitFor(
    'it is paid',
    async () => (await client.fetchWithdrawals('LTC'))[0]?.status === 'ok',
  )
  const [paid] = await client.fetchWithdrawals('LTC')
  assert.deepEqual(
    [paid!.id, paid!.amount, paid!.fee?.cost, paid!.info['withdrawOrderId']],
    [id, 0.99, 0.01, 'mine'],
  )
  assert.match(paid!.txid!, /^[0-9a-f]{64}$/)
  assert.equal((await client.fetchBalance())['LTC']!.total, 1.5)
  const wrong = await client.withdraw('LTC', 1, 'no-address', undefined, { network: 'LTC' })
  const endOf = async (wanted: string) =>
    (await client.fetchWithdrawals('LTC')).find((each) => each.id === wanted)?.status
  await waitFor('it is rejected', async () => (await endOf(wrong.id)) === 'failed')
  assert.equal((await client.fetchBalance())['LTC']!.total, 1.5)
})

test('simulates outages, rate limits, clock skew, lost responses, and repeated or unknown data', async () => {
  const client = await another()
  for (const [mode, wanted] of [
    ['down', /^(ExchangeNotAvailable|NetworkError)/],
    ['rate-limited', /^DDoSProtection/],
    ['clock-skew', /^InvalidNonce.*-1021/],
    ['stale', /-1001/],
  ] as const) {
    await fault(mode)
    assert.match(await failure(client.fetchBalance()), wanted, mode)
  }
  await fault('drop-answer')
  const placing = client.createOrder('BTC/USDT', 'market', 'buy', 0.01, undefined, {
    clientOrderId: 'lost',
  })
  assert.match(await failure(placing), /^(ExchangeNotAvailable|NetworkError)/)
  assert.equal(
    (await client.fetchOrder(undefined, 'BTC/USDT', { clientOrderId: 'lost' })).filled,
    0.01,
  )
  await fault('unknown-answer')
  assert.match(
    await failure(
      client.createOrder('BTC/USDT', 'limit', 'buy', 0.01, 40_000, { clientOrderId: 'unsure' }),
    ),
    /-1007/,
  )
  assert.equal(
    (await client.cancelOrder(undefined, 'BTC/USDT', { clientOrderId: 'unsure' })).status,
    'canceled',
  )
  await fault('duplicate-fill')
  assert.deepEqual((await client.fetchMyTrades('BTC/USDT')).length, 2)
  await fault('hidden-order')
  const { id } = await client.createOrder('BTC/USDT', 'limit', 'buy', 0.01, 40_000)
  assert.match(await failure(client.fetchOrder(id, 'BTC/USDT')), /-2013/)
  await waitFor(
    'it is known',
    async () => (await failure(client.fetchOrder(id, 'BTC/USDT'))) === 'none',
  )
  const { address } = await client.fetchDepositAddress('LTC', { network: 'LTC' })
  await fault('changed-address')
  assert.notEqual((await client.fetchDepositAddress('LTC', { network: 'LTC' })).address, address)
  await fault('heal')
})

/** Values that a faulty or malicious client may send for any parameter. */
const ODD = [
  '',
  '-1',
  '0',
  '1e400',
  'NaN',
  '9'.repeat(40),
  '\u0000',
  'x'.repeat(300),
  '[]',
  '[null]',
  '{"a":1}',
  '__proto__',
  'ä',
  '1.5',
]
const NAMES = [
  'symbol',
  'symbols',
  'side',
  'type',
  'timeInForce',
  'quantity',
  'quoteOrderQty',
  'price',
  'newClientOrderId',
  'newOrderRespType',
  'orderId',
  'origClientOrderId',
  'startTime',
  'endTime',
  'limit',
  'fromId',
  'coin',
  'network',
  'address',
  'addressTag',
  'amount',
  'withdrawOrderId',
  'status',
  'offset',
  'txId',
  'recvWindow',
  'timestamp',
  'signature',
]
const GOOD: Record<string, string> = {
  symbol: 'BTCUSDT',
  side: 'BUY',
  type: 'LIMIT',
  timeInForce: 'GTC',
  quantity: '0.001',
  price: '40000',
  coin: 'BTC',
  network: 'BTC',
  address: 'bcrt1qw508d6qejxtdg4y5r3zarvary0c5xw7kygt080',
  amount: '0.1',
  orderId: '1000001',
}

test('no request causes a server error', async () => {
  const { api_key, api_secret } = await newKey(devnet, 'binance', { unlimited: true })
  const ask = async (method: string, path: string, args: Record<string, string>) => {
    const text = new URLSearchParams({ timestamp: String(Date.now()), ...args }).toString()
    const answer = await fetch(
      `${devnet.url}/exchanges/binance${path}?${text}&signature=${signatureOf(text, api_secret)}`,
      {
        method,
        headers: { 'x-mbx-apikey': api_key },
      },
    )
    await answer.json()
    assert.ok(answer.status < 500, `${method} ${path}?${text}: ${answer.status}`)
  }
  let turn = 0
  for (const name of Object.keys(METHODS)) {
    const [method = '', path = ''] = name.split(' ')
    await ask(method, path, GOOD)
    for (const odd of ODD) {
      await ask(method, path, Object.fromEntries(NAMES.slice(0, -3).map((each) => [each, odd])))
      for (let left = 2; left > 0; left -= 1)
        await ask(method, path, { ...GOOD, [NAMES[(turn += 1) % NAMES.length]!]: odd })
    }
  }
})

test('an unused exchange creates no file, and invalid commands report the fault', async () => {
  const venue = (more: Record<string, unknown>) => control(devnet, { command: 'venue', ...more })
  for (const [more, wanted] of [
    [{ action: 'nothing' }, /action "nothing" is unknown/],
    [{ action: 'key', exchange: 'okx' }, /exchange "okx" is unknown/],
    [{ action: 'key', exchange: 'kraken', permissions: 'all' }, /permission "all" is unknown/],
    [{ action: 'key', exchange: 'kraken', balances: 'BTC:1' }, /not of the form/],
    [{ action: 'key', exchange: 'kraken', balances: 'KLAY=1' }, /"KLAY" is not on KRAKEN/],
    [{ action: 'revoke', api_key: 'x' }, /is not a key of a local exchange/],
    [{ action: 'key', exchange: 'kraken', account_of: 'x' }, /is not a key of KRAKEN/],
    [
      { action: 'address', api_key: key.api_key, asset: 'NO', address: 'x' },
      /asset "NO" is unknown/,
    ],
  ] as const)
    await assert.rejects(venue(more), wanted)
  assert.deepEqual(readdirSync(join(home, 'exchanges')), ['binance.journal'])
  const base = `${devnet.url}/exchanges`
  assert.deepEqual(await venue({ action: 'urls' }), {
    kraken: `${base}/kraken`,
    binance: `${base}/binance`,
  })
})
