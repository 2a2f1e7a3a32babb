// Kraken's protocol, used with unmodified ccxt.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { localUtxoChains } from '../bitcoin/local.ts'
import { Devnet } from '../devnet.ts'
import { apiSign } from './kraken/auth.ts'
import { PRIVATE } from './kraken/index.ts'
import { PUBLIC } from './kraken/public.ts'
import { localXrpChains } from '../xrp/local.ts'
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
const start = () =>
  Devnet.start(home, 0, { manual: true, families: [localUtxoChains, localXrpChains] })
let devnet: Devnet
let key: Key
let kraken: Client
const fault = (mode: string) => control(devnet, { command: 'fault', network: 'KRAKEN', mode })
const raw = (path: string, args: Record<string, unknown> = {}) =>
  kraken.request(path, 'private', 'POST', args) as Promise<{ result: unknown }>
const mine = (network: string, blocks: number) =>
  control(devnet, { command: 'mine', network, blocks })
/** Another account, whose request counter is zero. */
const another = async (more: Record<string, unknown> = {}) =>
  clientOf('kraken', devnet, await newKey(devnet, 'kraken', { unlimited: true, ...more }))

before(async () => {
  devnet = await start()
  key = await newKey(devnet, 'kraken', { unlimited: true })
  kraken = await clientOf('kraken', devnet, key)
})
after(() => {
  devnet.close()
  removeHome(home)
})

test("calculates the published signature of the documentation's example", () => {
  const secret =
    'kQH5HW/8p1uGOVjbgWA7FunAmGO8lsSUXNsu3eow76sz84Q18fWxnyRzBHCd3pd5nE9qa99HAZtuZuj6F1huXg=='
  const body = 'nonce=1616492376594&ordertype=limit&pair=XBTUSD&price=37500&type=buy&volume=1.25'
  assert.equal(
    apiSign('/0/private/AddOrder', '1616492376594', body, secret),
    '4/dpxb3iT4tp/ZCVEwSnEsLxx0bqyhLpdfOpc6fn7OR8+UClSV5n9E6aSS8MPtnRfp32bAb0nmbRn6H8ndwLUQ==',
  )
})

test('returns markets, prices and an order book', async () => {
  assert.ok(
    ['BTC/USD', 'ETH/BTC', 'BTC/USDT', 'DOGE/USD'].every((symbol) =>
      kraken.symbols.includes(symbol),
    ),
  )
  const { precision, limits, taker } = kraken.market('BTC/USD')
  assert.deepEqual(
    [precision, limits['amount']?.min, limits['cost']?.min, taker],
    [{ amount: 1e-8, price: 0.1 }, 0.00001, 0.5, 0.004],
  )
  const { bid, ask, last } = await kraken.fetchTicker('BTC/USD')
  assert.deepEqual([bid, last, ask], [59_994, 60_000, 60_006])
  const { bids, asks } = await kraken.fetchOrderBook('ETH/BTC', 3)
  assert.deepEqual(
    [bids.length, asks[0]![0] > bids[0]![0], asks[0]![0] < asks[1]![0]],
    [3, true, true],
  )
  const begun = Math.floor(Date.now() / 1000)
  const time = (await kraken.request('Time', 'public', 'GET')) as { result: { unixtime: number } }
  assert.ok(begun <= time.result.unixtime && time.result.unixtime <= Date.now() / 1000)
  const status = (await kraken.request('SystemStatus', 'public', 'GET')) as {
    result: { status: string }
  }
  assert.equal(status.result.status, 'online')
})

test('fills a market order immediately, and all endpoints report it the same', async () => {
  const client = await another()
  const { id } = await client.createOrder('BTC/USD', 'market', 'buy', 0.01, undefined, {
    clientOrderId: 'first',
  })
  const order = await client.fetchOrder(id)
  assert.deepEqual(
    [order.status, order.filled, order.average, order.cost, order.clientOrderId],
    ['closed', 0.01, 60_006, 600.06, 'first'],
  )
  const [fill, ...more] = await client.fetchMyTrades()
  assert.deepEqual(
    [more.length, fill!.order, fill!.takerOrMaker, fill!.fee],
    [0, id, 'taker', { cost: 2.4002, currency: 'USD' }],
  )
  assert.deepEqual(
    order.trades.map((trade) => trade.id),
    [fill!.id],
  )
  const balance = await client.fetchBalance()
  assert.deepEqual([balance['BTC']!.total, balance['USD']!.total], [1.01, 99_397.5398])
  const response = (await client.request('QueryTrades', 'private', 'POST', { txid: fill!.id })) as {
    result: Record<string, { vol: string }>
  }
  assert.equal(response.result[fill!.id]!.vol, '0.01000000')
})

test('an order for an amount of quote currency does not spend more than that amount', async () => {
  const { id } = await kraken.createOrder('BTC/USD', 'market', 'buy', 1, undefined, { cost: 1000 })
  const { info } = await kraken.fetchOrder(id)
  assert.ok(Number(info['cost']) <= 1000 && Number(info['cost']) > 999.99)
  assert.equal(info['oflags'], 'fciq,viqc')
})

test('a limit order holds its funds, has a client id, and is filled at its price or cancelled', async () => {
  const client = await another()
  const { id } = await client.createOrder('BTC/USD', 'limit', 'buy', 0.1, 50_000, {
    clientOrderId: 'resting',
  })
  assert.deepEqual((await client.fetchBalance())['USD'], {
    free: 94_980,
    used: 5020,
    total: 100_000,
  })
  const [result, ...none] = await client.fetchOpenOrders(undefined, undefined, undefined, {
    clientOrderId: 'resting',
  })
  assert.deepEqual([result!.id, none.length, result!.status], [id, 0, 'open'])
  assert.match(
    await failure(
      client.createOrder('BTC/USD', 'limit', 'buy', 0.1, 50_000, { clientOrderId: 'resting' }),
    ),
    /cl_ord_id/,
  )
  const other = await client.createOrder('BTC/USD', 'limit', 'buy', 0.1, 40_000)
  await control(devnet, { command: 'price', coin: 'BTC', price: '49000', source: 'KRAKEN' })
  const filled = await client.fetchOrder(id)
  assert.deepEqual([filled.status, filled.average], ['closed', 50_000])
  assert.equal((await client.fetchMyTrades())[0]!.takerOrMaker, 'maker')
  await control(devnet, { command: 'price', coin: 'BTC', price: '60000', source: 'KRAKEN' })
  await client.cancelOrder(other.id)
  assert.match(await failure(client.cancelOrder(other.id)), /^OrderNotFound/)
  assert.equal((await client.fetchOrder(other.id)).status, 'canceled')
  assert.deepEqual(
    (await client.fetchClosedOrders()).map(({ id: each }) => each).sort(),
    [id, other.id].sort(),
  )
  assert.equal((await client.fetchBalance())['USD']!.used, 0)
  // The order's id can be used again.
  await client.createOrder('BTC/USD', 'limit', 'buy', 0.1, 40_000, { clientOrderId: 'resting' })
})

test('a cancelled order keeps its fills, and two customers trade with each other', async () => {
  const [buyer, seller] = [await another(), await another()]
  const bid = await buyer.createOrder('SOL/BTC', 'limit', 'buy', 2, 0.0024999)
  const ask = await seller
    .createOrder('SOL/BTC', 'limit', 'sell', 0.5, 0.0024998)
    .catch((error: Error) => error)
  assert.match(String(ask), /Insufficient funds/)
  const rich = await another({ balances: 'SOL=5' })
  const { id } = await rich.createOrder('SOL/BTC', 'limit', 'sell', 0.5, 0.0024998)
  assert.deepEqual(
    [(await rich.fetchOrder(id)).average, (await rich.fetchOrder(id)).status],
    [0.0024999, 'closed'],
  )
  await buyer.cancelOrder(bid.id)
  const { status, filled } = await buyer.fetchOrder(bid.id)
  assert.deepEqual([status, filled], ['canceled', 0.5])
})

test('refusals use Kraken’s messages and change nothing', async () => {
  const before = await kraken.fetchBalance()
  const order = (...args: Parameters<Client['createOrder']>) => failure(kraken.createOrder(...args))
  const good = { pair: 'XBTUSD', type: 'buy', ordertype: 'limit', volume: '0.001', price: '50000' }
  const add = (args: Record<string, unknown>) => failure(raw('AddOrder', { ...good, ...args }))
  for (const [got, wanted] of [
    [order('BTC/USD', 'limit', 'buy', 0.01, 70_000, { postOnly: true }), /EOrder:Post only order/],
    [order('BTC/USD', 'market', 'buy', 30), /^InsufficientFunds/],
    [add({ volume: '0.000001' }), /volume minimum not met/],
    [add({ volume: '0.00001', price: '100' }), /EOrder:Cost minimum not met/],
    [add({ price: '50000.05' }), /up to 1 decimals/],
    [add({ volume: '0.123456789' }), /EGeneral:Invalid arguments:volume/],
    [add({ pair: 'NOUSD' }), /EQuery:Unknown asset pair/],
    [add({ type: 'hold' }), /Invalid arguments:type/],
    [add({ ordertype: 'stop-loss' }), /Invalid arguments:ordertype/],
    [add({ oflags: 'post,nompp' }), /Invalid arguments:oflags/],
    [add({ timeinforce: 'GTD' }), /Invalid arguments:timeinforce/],
    [add({ cl_ord_id: 'x'.repeat(19) }), /cl_ord_id/],
    [add({ cl_ord_id: 'x', userref: '5' }), /cl_ord_id/],
    [add({ userref: 'x' }), /userref/],
    [add({ deadline: new Date(Date.now() - 5).toISOString() }), /EService:Deadline elapsed/],
    [add({ deadline: new Date(Date.now() + 100_000).toISOString() }), /Invalid arguments:deadline/],
    [failure(raw('QueryOrders', { txid: 'OAAAAA-AAAAA-AAAAAA' })), /EOrder:Unknown order/],
  ] as const)
    assert.match(await got, wanted)
  const { result } = await raw('AddOrder', {
    pair: 'XBTUSD',
    type: 'buy',
    ordertype: 'market',
    volume: '0.01',
    validate: 'true',
  })
  assert.deepEqual(result, { descr: { order: 'buy 0.01000000 XBTUSD @ market' } })
  assert.deepEqual((await kraken.fetchBalance())['USD'], before['USD'])
})

test('an IOC order fills what is available, and a FOK order all or nothing', async () => {
  const client = await another({ balances: 'USD=9000000' })
  const statusOf = async (timeInForce: string) => {
    const { id } = await client.createOrder('BTC/USD', 'limit', 'buy', 40, 60_020, { timeInForce })
    return client.fetchOrder(id)
  }
  const [killed, part] = [await statusOf('FOK'), await statusOf('IOC')]
  assert.deepEqual([killed.status, killed.filled, part.status], ['canceled', 0, 'canceled'])
  assert.ok(part.filled! > 0 && part.filled! < 40)
})

test('a wrong key, signature, nonce or permission has its own error', async () => {
  const { api_key, api_secret } = key
  assert.match(
    await failure((await clientOf('kraken', devnet, { api_key: 'x', api_secret })).fetchBalance()),
    /EAPI:Invalid key/,
  )
  assert.match(
    await failure(
      (await clientOf('kraken', devnet, { api_key, api_secret: 'AAAA' })).fetchBalance(),
    ),
    /EAPI:Invalid signature/,
  )
  const own = await another({ permissions: 'query,trade' })
  assert.match(await failure(own.createDepositAddress('BTC')), /EGeneral:Permission denied/)
  const late = own.nonce() - 5
  own.nonce = () => late
  assert.match(await failure(own.fetchBalance()), /EAPI:Invalid nonce/)
  for (let wrong = 1; wrong < 20; wrong += 1) await failure(own.fetchBalance())
  own.nonce = () => late + 1000
  assert.match(await failure(own.fetchBalance()), /EGeneral:Temporary lockout/)
  const wide = await another({ nonce_window: 1000 })
  const at = wide.nonce()
  for (const [nonce, wanted] of [
    [at, /none/],
    [at - 5, /none/],
    [at - 5, /nonce/],
    [at - 2000, /nonce/],
  ] as const) {
    wide.nonce = () => nonce
    assert.match(await failure(wide.fetchBalance()), wanted)
  }
  const cautious = await another({ no_withdraw: true })
  const { result } = (await cautious.request('GetApiKeyInfo', 'private', 'POST')) as {
    result: { permissions: string[] }
  }
  assert.ok(
    result.permissions.includes('modify-trades') && !result.permissions.includes('withdraw-funds'),
  )
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
  '{"a":1}',
  '__proto__',
  'ä',
  '1.5',
  ',,',
]
const GOOD: Record<string, string> = {
  pair: 'XBTUSD',
  type: 'buy',
  ordertype: 'limit',
  volume: '0.001',
  price: '40000',
  asset: 'XBT',
  method: 'Bitcoin',
  key: 'mine',
  amount: '0.1',
}
const NAMES = [
  ...Object.keys(GOOD),
  'txid',
  'cl_ord_id',
  'userref',
  'deadline',
  'validate',
  'timeinforce',
  'oflags',
  'start',
  'end',
  'ofs',
  'trades',
  'new',
  'refid',
  'address',
  'max_fee',
  'count',
]

test('no request causes a server error', async () => {
  const { api_key, api_secret } = await newKey(devnet, 'kraken', { unlimited: true })
  let nonce = Date.now()
  const ask = async (path: string, args: Record<string, string>) => {
    const body = new URLSearchParams({ nonce: String((nonce += 1)), ...args }).toString()
    const isPublic = path.includes('public')
    const headers = {
      'api-key': api_key,
      'api-sign': apiSign(path, String(nonce), body, api_secret),
    }
    const url = `${devnet.url}/exchanges/kraken${path}${isPublic ? `?${body}` : ''}`
    const answer = await fetch(url, isPublic ? {} : { method: 'POST', headers, body })
    const { error } = (await answer.json()) as { error: string[] }
    assert.equal(answer.status, 200, `${path} ${body}`)
    assert.doesNotMatch(error.join(), /Invalid (signature|nonce)/)
  }
  let turn = 0
  const paths = [
    ...Object.keys(PUBLIC).map((name) => `/0/public/${name}`),
    ...Object.keys(PRIVATE).map((name) => `/0/private/${name}`),
  ]
  for (const path of paths) {
    await ask(path, GOOD)
    for (const odd of ODD) {
      await ask(path, Object.fromEntries(NAMES.map((each) => [each, odd])))
      for (let left = 2; left > 0; left -= 1)
        await ask(path, { ...GOOD, [NAMES[(turn += 1) % NAMES.length]!]: odd })
    }
  }
})

test('limits calls, counting trades separately; 20 concurrent calls exceed the limit', async () => {
  const counted = await clientOf('kraken', devnet, await newKey(devnet, 'kraken'))
  let calls = 0
  while (calls < 30 && (await failure(counted.fetchBalance())) === 'none') calls += 1
  assert.ok(calls >= 20 && calls < 25, String(calls))
  const { id } = await counted.createOrder('BTC/USD', 'limit', 'buy', 0.001, 40_000)
  await counted.cancelOrder(id)
})

test('a second key of an account sees the same data, and a revoked key sees none', async () => {
  const first = await newKey(devnet, 'kraken')
  const second = await newKey(devnet, 'kraken', { account_of: first.api_key })
  const [one, other] = [
    await clientOf('kraken', devnet, first),
    await clientOf('kraken', devnet, second),
  ]
  await one.createOrder('BTC/USD', 'market', 'sell', 0.5)
  assert.equal((await other.fetchBalance())['BTC']!.total, 0.5)
  await control(devnet, { command: 'venue', action: 'revoke', api_key: first.api_key })
  assert.match(await failure(one.fetchBalance()), /EAPI:Invalid key/)
  assert.equal(await failure(other.fetchBalance()), 'none')
})

test('a deposit is pending, then credited once; a tag distinguishes accounts of one address', async () => {
  assert.deepEqual(
    await failure(
      kraken.fetchDepositMethods('BTC').then(([first]) => assert.equal(first!.method, 'Bitcoin')),
    ),
    'none',
  )
  // No address was created yet.
  assert.deepEqual((await raw('DepositAddresses', { asset: 'XBT', method: 'Bitcoin' })).result, [])
  const { address } = await kraken.createDepositAddress('BTC')
  assert.equal((await kraken.fetchDepositAddress('BTC')).address, address)
  const before = (await kraken.fetchBalance())['BTC']!.total
  const { hash } = await control<{ hash: string }>(devnet, {
    command: 'fund',
    asset: 'BTC',
    address,
    amount: '0.12345678',
  })
  const statusOf = async () =>
    (await kraken.fetchDeposits('BTC')).map(({ txid, status, amount }) => [txid, status, amount])
  await waitFor('the deposit is seen', async () => (await statusOf()).length > 0)
  assert.deepEqual(await statusOf(), [[hash, 'pending', 0.12345678]])
  assert.equal((await kraken.fetchBalance())['BTC']!.total, before)
  await mine('BTC', 2)
  await waitFor('the deposit is credited', async () => (await statusOf())[0]![1] === 'ok')
  await mine('BTC', 3)
  assert.deepEqual((await statusOf()).length, 1)
  assert.ok(Math.abs((await kraken.fetchBalance())['BTC']!.total - before - 0.12345678) < 1e-9)
  const other = await another()
  const [mineOf, theirs] = [
    await kraken.createDepositAddress('XRP'),
    await other.createDepositAddress('XRP'),
  ]
  assert.ok(mineOf.address === theirs.address && mineOf.tag !== theirs.tag)
  await control(devnet, {
    command: 'fund',
    asset: 'XRP',
    address: theirs.address,
    amount: '40',
    tag: theirs.tag,
  })
  await mine('XRP', 2)
  await waitFor('XRP is credited', async () => (await other.fetchBalance())['XRP']?.total === 40)
  assert.equal((await kraken.fetchBalance())['XRP'], undefined)
})

test('pays a withdrawal less its fee to a registered address only, and can cancel it in time', async () => {
  const { address } = await kraken.createDepositAddress('BTC', { method: 'Bitcoin' })
  assert.match(
    await failure(kraken.withdraw('BTC', 0.1, undefined, undefined, { key: 'mine' })),
    /^InvalidAddress/,
  )
  const register = (to: string, name: string | null) =>
    control(devnet, {
      command: 'venue',
      action: 'address',
      api_key: key.api_key,
      asset: 'BTC',
      address: to,
      name,
    })
  await register(address, 'mine')
  await register(address, 'mine')
  await assert.rejects(register('elsewhere', 'mine'), /name "mine" is already used/)
  assert.equal((await register('elsewhere', null))['name'], 'BTC elsewhere')
  const addresses = (await raw('WithdrawAddresses', { asset: 'XBT', key: 'mine' })).result as {
    key: string
    address: string
    method: string
  }[]
  assert.deepEqual(
    addresses.map((each) => [each.key, each.address, each.method]),
    [['mine', address, 'Bitcoin']],
  )
  const info = (await raw('WithdrawInfo', { asset: 'XBT', key: 'mine', amount: '0.1' })).result as {
    amount: string
    fee: string
  }
  assert.deepEqual([info.amount, info.fee], ['0.0999900000', '0.0000100000'])
  for (const [more, wanted] of [
    [{ amount: '0.00001' }, /EFunding:Invalid amount/],
    [{ amount: '1000' }, /EFunding:Insufficient funds/],
    [{ amount: '0.123456789' }, /Invalid arguments:amount/],
    [{ amount: '0.1', address: 'elsewhere' }, /Invalid withdrawal address/],
    [{ amount: '0.1', max_fee: '0.000001' }, /Max fee exceeded/],
  ] as const)
    assert.match(await failure(raw('Withdraw', { asset: 'XBT', key: 'mine', ...more })), wanted)
  const before = (await kraken.fetchBalance())['BTC']!.total
  const { id } = await kraken.withdraw('BTC', 0.1, address, undefined, { key: 'mine' })
  const response = async () =>
    (await kraken.fetchWithdrawals('BTC')).find((each) => each.id === id)!
  const first = await response()
  assert.deepEqual(
    [first.info['status'], first.txid, first.amount, first.fee?.cost],
    ['Initial', undefined, 0.09999, 0.00001],
  )
  await waitFor('it is paid', async () => (await response()).status === 'ok')
  assert.ok(Math.abs(before - 0.1 - (await kraken.fetchBalance())['BTC']!.total) < 1e-9)
  await mine('BTC', 2)
  // The payment went to an address of the same account.
  const { txid: paid } = await response()
  await waitFor('it came in', async () =>
    (await kraken.fetchDeposits('BTC')).some(
      ({ txid, amount, status }) => status === 'ok' && amount === 0.09999 && txid === paid,
    ),
  )
  await fault('stuck-withdrawal')
  const held = await kraken.withdraw('BTC', 0.1, address, undefined, { key: 'mine' })
  assert.deepEqual((await raw('WithdrawCancel', { asset: 'XBT', refid: held.id })).result, true)
  assert.deepEqual((await raw('WithdrawCancel', { asset: 'XBT', refid: held.id })).result, false)
  assert.equal(
    (await kraken.fetchWithdrawals('BTC')).find((each) => each.id === held.id)!.info['status-prop'],
    'canceled',
  )
  await fault('heal')
})

test('simulates a lost response, fills that are reported twice, and a delayed order', async () => {
  const client = await another()
  await fault('drop-answer')
  assert.equal((await client.fetchBalance())['USD']!.total, 100_000)
  assert.match(
    await failure(client.createOrder('BTC/USD', 'limit', 'buy', 1, 90_000, { postOnly: true })),
    /Post only/,
  )
  const placing = client.createOrder('BTC/USD', 'limit', 'buy', 0.01, 40_000, {
    clientOrderId: 'lost',
  })
  assert.match(await failure(placing), /^(ExchangeNotAvailable|NetworkError)/)
  const [lost] = await client.fetchOpenOrders(undefined, undefined, undefined, {
    clientOrderId: 'lost',
  })
  await fault('drop-answer')
  assert.match(await failure(client.cancelOrder(lost!.id)), /^(ExchangeNotAvailable|NetworkError)/)
  assert.equal((await client.fetchOrder(lost!.id)).status, 'canceled')
  await fault('unknown-answer')
  assert.match(
    await failure(
      client.createOrder('BTC/USD', 'limit', 'buy', 0.01, 40_000, { clientOrderId: 'unsure' }),
    ),
    /EService:Timeout/,
  )
  const [unsure] = await client.fetchOpenOrders(undefined, undefined, undefined, {
    clientOrderId: 'unsure',
  })
  await fault('stalled-answer')
  const waiting = client.cancelOrder(unsure!.id)
  const isOver = await Promise.race([
    waiting.then(
      () => true,
      () => true,
    ),
    waitFor('it is cancelled', async () => (await client.fetchOpenOrders()).length === 0).then(
      () => false,
    ),
  ])
  assert.equal(isOver, false)
  await fault('duplicate-fill')
  const { id } = await client.createOrder('BTC/USD', 'market', 'buy', 0.01)
  const { trades } = await client.fetchOrder(id)
  assert.deepEqual([trades.length, trades[0]!.id === trades[1]!.id], [2, true])
  await client.createOrder('BTC/USD', 'market', 'buy', 0.01)
  assert.equal((await client.fetchMyTrades(undefined, undefined, undefined, { ofs: 1 })).length, 2)
  await fault('hidden-order')
  const hidden = await client.createOrder('BTC/USD', 'limit', 'buy', 0.01, 40_000)
  assert.match(await failure(client.fetchOrder(hidden.id)), /Unknown order/)
  assert.equal((await client.fetchOpenOrders()).length, 0)
  await waitFor('it is known', async () => (await client.fetchOpenOrders()).length === 1)
  await fault('heal')
})

test('simulates outages, rate limits, HTML responses, clock skew, and a changed address', async () => {
  for (const [mode, wanted] of [
    ['down', /^(ExchangeNotAvailable|NetworkError)/],
    ['rate-limited', /^DDoSProtection/],
    ['stale', /EService:Unavailable/],
  ] as const) {
    await fault(mode)
    assert.match(await failure(kraken.fetchBalance()), wanted, mode)
  }
  await fault('clock-skew')
  const { result } = (await kraken.request('Time', 'public', 'GET')) as {
    result: { unixtime: number }
  }
  assert.ok(Date.now() / 1000 - result.unixtime > 8)
  await fault('changed-address')
  const [first, second] = [
    await kraken.fetchDepositAddress('BTC'),
    await kraken.fetchDepositAddress('BTC'),
  ]
  assert.notEqual(first.address, second.address)
  await fault('heal')
  await assert.rejects(fault('nonsense'), /mode "nonsense" is unknown/)
})

test('a restart keeps keys, balances, orders and pending withdrawals, and repeats no payment', async () => {
  const client = await another()
  const { id } = await client.createOrder('BTC/USD', 'limit', 'buy', 0.1, 40_000)
  await client.createOrder('BTC/USD', 'market', 'sell', 0.25)
  const [balance, trades] = [await client.fetchBalance(), await client.fetchMyTrades()]
  const [, withdrawals] = [await fault('stuck-withdrawal'), await kraken.fetchWithdrawals('BTC')]
  const waiting = await kraken.withdraw('BTC', 0.05, undefined, undefined, { key: 'mine' })
  const [owned, deposits] = [
    await kraken.fetchBalance(),
    (await kraken.fetchDeposits('BTC')).length,
  ]
  const journal = () => readFileSync(join(home, 'exchanges', 'kraken.journal'), 'utf8')
  const written = journal()
  // Field names of the file are a format: homes of earlier versions have it.
  assert.match(written, /"known":\[\{/)
  devnet.close()
  // Everything that was returned is on the disk already: stopping writes nothing.
  assert.equal(journal(), written)
  devnet = await start()
  for (const each of [client, kraken]) {
    for (const name of Object.keys(each.urls.api))
      each.urls.api[name] = `${devnet.url}/exchanges/kraken`
  }
  assert.deepEqual((await client.fetchBalance())['USD'], balance['USD'])
  assert.deepEqual(
    (await client.fetchMyTrades()).map((trade) => trade.id),
    trades.map((trade) => trade.id),
  )
  assert.deepEqual(
    (await client.fetchOpenOrders()).map((order) => order.id),
    [id],
  )
  await client.cancelOrder(id)
  assert.equal((await client.fetchBalance())['USD']!.used, 0)
  // The hash of a payment that was not recorded is found on the chain.
  await waitFor(
    'it is paid',
    async () =>
      (await kraken.fetchWithdrawals('BTC')).find((each) => each.id === waiting.id)!.status ===
      'ok',
  )
  assert.equal((await kraken.fetchWithdrawals('BTC')).length, withdrawals.length + 1)
  await mine('BTC', 3)
  await waitFor(
    'it came in',
    async () =>
      (await kraken.fetchDeposits('BTC')).filter(({ status }) => status === 'ok').length > deposits,
  )
  assert.equal((await kraken.fetchDeposits('BTC')).length, deposits + 1)
  assert.ok(
    Math.abs((await kraken.fetchBalance())['BTC']!.total - owned['BTC']!.total - 0.04999) < 1e-9,
  )
  const next = await client.createOrder('BTC/USD', 'market', 'sell', 0.01)
  assert.ok(!trades.some(({ order }) => order === next.id))
})
