import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { openDatabase, type Database } from '../src/core/database/pool.ts'
import { sendConcurrently } from '../testing/concurrent-transfers.ts'
import {
  assertConfirmed,
  balance,
  call,
  fundedWallet,
  terminal,
  TestPlatform,
  transferBody,
  type Answer,
  type Transfer,
  type User,
} from '../testing/harness.ts'
import { testEmittedEvents } from '../testing/event-assertions.ts'
import { waitFor } from '../../../testing/wait-for.ts'

/**
 * Tests of the fees of transfers through the API: the prepaid fee account with its reservations,
 * charges, refunds, suspension and prices, and gas tanks.
 */
const platform = new TestPlatform()
let database: Database

const ETH_TO = '0x00000000000000000000000000000000000000c1'
const BTC_TO = 'bcrt1qw508d6qejxtdg4y5r3zarvary0c5xw7kygt080'

before(async () => {
  await platform.start({ CUSTODY_PRICE_REFRESH_S: '1' })
  database = openDatabase(
    (
      JSON.parse(readFileSync(join(platform.home, 'runtime.json'), 'utf8')) as {
        database_url: string
      }
    ).database_url,
    { max: 2 },
  )
})
after(async () => {
  await database?.close()
  await platform.remove()
})

interface Account {
  balance: string
  reserved: string
  currency: string
  status: string
  tier: string
  fees: Record<string, string>
  volume_30d: string
}
interface Entry {
  id: string
  type: string
  amount: string
  balance_change: string
  balance_after: string
  transaction_id: string | null
}
interface Entries {
  data: Entry[]
  total: string
  page: string
  limit: string
}
interface Price {
  asset: string
  price_usd: string
  sources: string[]
  updated_at: string
  stale: boolean
}

const post = (user: User, body: string) => call<Transfer>(user, 'POST', '/dac/v1/transaction', body)
const account = async (user: User): Promise<Account> => {
  const answer = await call<Account>(user, 'POST', '/dac/v1/prepaid-fee', {})
  assert.equal(answer.status, 200, answer.text)
  return answer.body
}
const entries = async (user: User, query = '') =>
  (await call<Entries>(user, 'GET', `/dac/v1/prepaid-fee/entries${query}`)).body
const adjust = (workspace: string, amount: string) =>
  platform.operator('prepaid-fee adjust', { workspace, amount })
const events = async (workspace: string) =>
  await database.query<{ type: string; payload: Record<string, unknown> }>(
    `select e.type, e.payload from events e join workspaces w on w.id = e.workspace_id
      where w.name = $1 and e.type like 'prepaid_fee.%' order by e.id`,
    [workspace],
  )
const fault = (network: string, mode: string) =>
  platform.operator('devnet', { command: 'fault', network, mode })
const setPrice = (coin: string, price: string, source: string | null = null) =>
  platform.operator('devnet', { command: 'price', coin, price, source })
const prices = (user: User, assets: string, base = user.base) =>
  call<Price[]>(user, 'GET', `/dac/v1/prices?assets=${assets}`, undefined, { base })
const priceIs = (user: User, coin: string, price: string) =>
  waitFor(
    `${coin} at ${price}`,
    async () => (await prices(user, coin)).body[0]?.price_usd === price,
  )
const audit = async () => {
  const report = (await platform.operator('audit')) as {
    ok: boolean
    differences: unknown
    dust: unknown
  }
  assert.deepEqual([report.ok, report.dust], [true, []], JSON.stringify(report.differences))
}
/** Asserts that the entries sum to the balance, to the last digit. */
const explains = async (user: User) => {
  const { data } = await entries(user, '?limit=500')
  const micro = (text: string) => BigInt(Math.round(Number(text) * 1e6))
  assert.equal(
    data.reduce((sum, each) => sum + micro(each.balance_change), 0n),
    micro((await account(user)).balance),
  )
  // The balance of each entry also matches, from the newest backwards, on later pages too.
  let after = micro((await account(user)).balance)
  for (const each of data) {
    assert.equal(micro(each.balance_after), after, each.id)
    after -= micro(each.balance_change)
  }
  assert.deepEqual((await entries(user, '?limit=2&page=2')).data, data.slice(2, 4))
}

test('the prepaid account has its documented fields; without a valid key the response is 401', async () => {
  const user = await platform.user('shape')
  assert.deepEqual(await account(user), {
    balance: '100000',
    reserved: '0',
    currency: 'USD',
    status: 'ok',
    tier: 'STARTER',
    fees: { basis_points: '25', percent: '0.25', minimum: '0.5', monthly: '0' },
    volume_30d: '0',
  })
  const reader = await platform.user('shape', { role: 'read-only' })
  assert.equal((await account(reader)).balance, '100000')
  const unknown = await call(user, 'POST', '/dac/v1/prepaid-fee', { page: 1 })
  assert.deepEqual(
    [unknown.status, unknown.body['code'], unknown.body['field']],
    [400, 'UNKNOWN_FIELD', 'page'],
  )
  assert.equal((await call(user, 'POST', '/dac/v1/prepaid-fee')).status, 400)
  assert.equal(
    (await call(null, 'POST', '/dac/v1/prepaid-fee', {}, { base: user.base })).status,
    401,
  )
  assert.equal(
    (
      await call(
        user,
        'POST',
        '/dac/v1/prepaid-fee',
        {},
        { headers: { 'x-api-key': '00000000-0000-4000-8000-000000000000' } },
      )
    ).status,
    401,
  )
  for (const query of ['?page=0', '?limit=501', '?limit=x', '?sort=up'])
    assert.equal((await call(user, 'GET', `/dac/v1/prepaid-fee/entries${query}`)).status, 400)
  const { data, total } = await entries(user)
  assert.deepEqual(
    [
      total,
      data.map(({ type, amount, balance_change: change, transaction_id: id }) => [
        type,
        amount,
        change,
        id,
      ]),
    ],
    ['1', [['adjustment', '100000', '100000', null]]],
  )
})

test('the operator adds and deducts USD, never below zero, and creates unknown workspaces', async () => {
  const cli = (...args: string[]) => platform.cli('prepaid-fee', ...args)
  const up = await cli('adjust', '--workspace', 'funds', '--amount', '250.5', '--json')
  assert.equal(up.status, 0, up.stderr)
  assert.equal((JSON.parse(up.stdout) as { balance: number }).balance, 100_250.5)
  assert.equal(
    (
      JSON.parse(
        (await cli('adjust', '--workspace', 'funds', '--amount=-12.5', '--json')).stdout,
      ) as { balance: number }
    ).balance,
    100_238,
  )
  for (const [amount, message] of [
    ['-200000', /would make it negative/],
    ['0', /--amount/],
    ['1e3', /--amount/],
    ['0.0000001', /6 decimals/],
    ['x', /--amount/],
  ] as const) {
    const refused = await cli('adjust', '--workspace', 'funds', `--amount=${amount}`)
    assert.equal(refused.status, 1)
    assert.match(refused.stderr, message)
  }
  const shown = await cli('show', '--workspace', 'funds', '--json')
  assert.equal((JSON.parse(shown.stdout) as { balance: number }).balance, 100_238)
  assert.equal((await cli('show', '--workspace', 'nobody')).status, 1)
  await explains(await platform.user('funds'))
})

test('a price needs agreement of both sources, and tokens use the price of their coin', async () => {
  const user = await platform.user('prices', { role: 'read-only' })
  const all = await prices(user, 'BTC,ETH,BASE,USDT_ETH,USDT_TRX,USDC_SOL,ONE')
  assert.equal(all.status, 200, all.text)
  assert.deepEqual(
    all.body.map(({ asset, price_usd: price, sources, stale }) => [
      asset,
      price,
      sources.join(),
      stale,
    ]),
    [
      ['BTC', '60000', 'coingecko,kraken', false],
      ['ETH', '3000', 'coingecko,kraken', false],
      ['BASE', '3000', 'coingecko,kraken', false],
      ['USDT_ETH', '1.0003', 'coingecko,kraken', false],
      ['USDT_TRX', '1.0003', 'coingecko,kraken', false],
      ['USDC_SOL', '0.9999', 'coingecko,kraken', false],
      ['ONE', '0.012', 'coingecko', false],
    ],
  )
  assert.equal((await call<Price[]>(user, 'GET', '/dac/v1/prices')).body.length > 30, true)
  for (const [assets, name] of [
    ['BTC,btc', 'btc'],
    ['NONE', 'NONE'],
  ] as const) {
    const refused = await prices(user, assets)
    assert.deepEqual([refused.status, refused.body as unknown as { field: string }]?.[0], 400)
    assert.match(refused.text, new RegExp(name))
  }
  assert.equal((await prices(user, '')).status, 400)
  await setPrice('LTC', '90')
  await priceIs(user, 'LTC', '90')
  await setPrice('LTC', '91', 'KRAKEN')
  await priceIs(user, 'LTC', '90.5')
  await setPrice('LTC', '120', 'KRAKEN')
  await waitFor(
    'the sources disagree',
    async () =>
      Date.now() - Date.parse((await prices(user, 'LTC')).body[0]?.updated_at ?? '') > 2500,
  )
  assert.equal((await prices(user, 'LTC')).body[0]?.price_usd, '90.5')
  await setPrice('LTC', '80')
  await priceIs(user, 'LTC', '80')
})

test('a fee is reserved at creation, charged at the first broadcast, otherwise returned', async () => {
  const user = await platform.user('fees')
  await fundedWallet(platform, user, 'ETH', '3')
  await fault('ETH', 'down')
  const held = await post(user, transferBody('ETH', '0.5', ETH_TO))
  assert.equal(held.status, 200, held.text)
  assert.deepEqual([held.body['amount_in_usd'], held.body['platform_fee']], ['1500', '3.75'])
  assert.deepEqual(
    [(await account(user)).balance, (await account(user)).reserved],
    ['99996.25', '3.75'],
  )
  assert.equal(
    (await call(user, 'POST', `/dac/v1/transaction/${held.body.id}/cancel`, {})).status,
    200,
  )
  assert.equal((await terminal(user, held.body.id)).status, 'failed')
  assert.deepEqual([(await account(user)).balance, (await account(user)).reserved], ['100000', '0'])
  await fault('ETH', 'heal')
  const small = await terminal(
    user,
    (await post(user, transferBody('ETH', '0.01', ETH_TO))).body.id,
  )
  assert.deepEqual([small.status, small['platform_fee']], ['confirmed', '0.5'])
  const large = await post(user, transferBody('ETH', '1', ETH_TO))
  const sent = await waitFor('it is broadcast', async () => {
    const { body } = await call<Transfer>(user, 'GET', `/dac/v1/transaction/${large.body.id}`)
    return body.hash === null ? null : body
  })
  assert.equal(
    (await entries(user)).data.find(
      ({ type, transaction_id: id }) => type === 'charge' && id === sent.id,
    )?.amount,
    '7.5',
    'charged as soon as a hash is shown',
  )
  await terminal(user, large.body.id)
  assert.deepEqual(
    [
      (await account(user)).balance,
      (await account(user)).reserved,
      (await account(user)).volume_30d,
    ],
    ['99992', '0', '3030'],
  )
  const kinds = (await entries(user)).data.map(
    ({ type, amount, balance_change: change, transaction_id: id }) =>
      `${type} ${amount} ${change} ${id === null ? '' : [held, large].some(({ body }) => body.id === id) ? 'known' : 'small'}`.trim(),
  )
  assert.deepEqual(kinds.toSorted(), [
    'adjustment 100000 100000',
    'charge 0.5 0 small',
    'charge 7.5 0 known',
    'refund 3.75 3.75 known',
    'reservation 0.5 -0.5 small',
    'reservation 3.75 -3.75 known',
    'reservation 7.5 -7.5 known',
  ])
  assert.equal((await entries(user, '?limit=2&page=2')).data.length, 2)
  assert.equal((await entries(user)).total, '7')
  await explains(user)
  // The wallet paid no fee: its balance decreased by the sent amount only, and the gas tank paid
  // the network fee.
  assert.equal((await balance(user, 'ETH')).balance, '1.99')
  await audit()
})

test('of 50 concurrent withdrawals on a balance for 20, exactly 20 are accepted', async () => {
  const users = await Promise.all(
    Array.from({ length: 5 }, (_, at) => platform.user('race', { subAccount: `sub-${at}` })),
  )
  const [first] = users as [User]
  await Promise.all(users.map((user) => fundedWallet(platform, user, 'ETH', '2')))
  await adjust('race', '-99990')
  const answers = await Promise.all(
    Array.from({ length: 50 }, (_, at) =>
      post(
        users[at % 5] as User,
        transferBody('ETH', '0.01', ETH_TO, { sequence_id: `race-${at}` }),
      ),
    ),
  )
  const passed = answers.filter(({ status }) => status === 200)
  const refused = answers.filter(({ status }) => status === 403)
  assert.deepEqual([passed.length, refused.length], [20, 30])
  assert.ok(refused.every(({ body }) => body['code'] === 'PREPAID_FEE_EXHAUSTED'))
  assert.deepEqual(
    [
      (await account(first)).balance,
      (await account(first)).reserved === '0',
      (await account(first)).status,
    ],
    ['0', false, 'empty'],
  )
  assert.deepEqual(
    (await events('race')).map(({ type, payload }) => [type, payload['percent']]),
    [
      ['prepaid_fee.low', 20],
      ['prepaid_fee.low', 5],
      ['prepaid_fee.empty', 0],
    ].slice(-1 - (await events('race')).filter(({ type }) => type === 'prepaid_fee.low').length),
  )
  assert.equal((await events('race')).filter(({ type }) => type === 'prepaid_fee.empty').length, 1)

  // At a zero balance, repeated requests, deposits and reads still work, and a refused
  // sequence_id can be used again.
  const at = answers.findIndex(({ status }) => status === 200)
  const replay = await post(
    users[at % 5] as User,
    transferBody('ETH', '0.01', ETH_TO, { sequence_id: `race-${at}` }),
  )
  assert.deepEqual(
    [replay.status, replay.headers.get('idempotent-replayed'), replay.body.id],
    [200, 'true', (answers[at] as Answer<Transfer>).body.id],
  )
  const missed = answers.findIndex(({ status }) => status === 403)
  const poor = users[missed % 5] as User
  assert.equal(
    (await post(poor, transferBody('ETH', '0.01', ETH_TO, { sequence_id: `race-${missed}` })))
      .status,
    403,
  )
  await fundedWallet(platform, poor, 'LTC', '1')
  for (const [index, answer] of answers.entries())
    if (answer.status === 200) await assertConfirmed(users[index % 5] as User, answer.body.id)
  assert.equal((await account(first)).reserved, '0')
  await adjust('race', '0.5')
  const late = await post(
    poor,
    transferBody('ETH', '0.01', ETH_TO, { sequence_id: `race-${missed}` }),
  )
  assert.equal(late.status, 200, late.text)
  await assertConfirmed(poor, late.body.id)
  const reader = await platform.user('race', { role: 'read-only' })
  assert.equal((await entries(reader)).data.filter(({ type }) => type === 'charge').length, 21)
  await explains(reader)
  await audit()
})

test('a withdrawal without a price gets 503, and a price of a minute ago is still accepted', async () => {
  const user = await platform.user('unpriced')
  await fundedWallet(platform, user, 'BTC', '1')
  await fundedWallet(platform, user, 'ETH', '1')
  await fault('PRICES', 'down')
  assert.equal(
    (await post(user, transferBody('BTC', '0.001', BTC_TO))).status,
    200,
    'the last price is younger than five minutes',
  )
  // A process that starts now has not received a price yet.
  const api = await platform.startApi()
  const before = (await call<{ total: string }>(user, 'GET', '/dac/v1/transactions?type=Withdraw'))
    .body.total
  const refused = await call(
    user,
    'POST',
    '/dac/v1/transaction',
    transferBody('BTC', '0.001', BTC_TO, { sequence_id: 'unpriced-1' }),
    { base: api.base },
  )
  assert.deepEqual(
    [refused.status, refused.body['code'], refused.body['field']],
    [503, 'PRICE_UNAVAILABLE', 'asset'],
    refused.text,
  )
  assert.match(refused.text, /BTC/)
  const response = await prices(user, 'ETH', api.base)
  assert.deepEqual(
    [response.status, (response.body as unknown as { code: string }).code],
    [503, 'PRICE_UNAVAILABLE'],
  )
  assert.match(response.text, /ETH/)
  assert.equal(
    (await call<{ total: string }>(user, 'GET', '/dac/v1/transactions?type=Withdraw')).body.total,
    before,
  )
  // A stale price is reported as stale, and no transaction is created with it.
  await fault('PRICES', 'stale')
  const old = await waitFor('the old price is read', async () => {
    const answer = await prices(user, 'BTC', api.base)
    return answer.status === 200 ? answer : null
  })
  assert.equal(old.body[0]?.stale, true)
  assert.equal(
    (
      await call(
        user,
        'POST',
        '/dac/v1/transaction',
        transferBody('BTC', '0.001', BTC_TO, { sequence_id: 'unpriced-1' }),
        { base: api.base },
      )
    ).status,
    503,
  )
  for (const mode of ['malformed', 'rate-limited']) {
    await fault('COINGECKO', mode)
    assert.equal((await post(user, transferBody('ETH', '0.001', ETH_TO))).status, 200)
  }
  await fault('PRICES', 'heal')
  const healed = await waitFor('prices are back', async () => {
    const answer = await call<Transfer>(
      user,
      'POST',
      '/dac/v1/transaction',
      transferBody('BTC', '0.001', BTC_TO, { sequence_id: 'unpriced-1' }),
      { base: api.base },
    )
    return answer.status === 200 ? answer : null
  })
  await assertConfirmed(user, healed.body.id)
  await api.stop()
})

describe('gas tanks', () => {
  interface Tank {
    network: string
    address: string
    balance: string
    float: string
    status: string
    threshold: string
    fee_cap: string | null
    max_gas_price: string | null
  }
  const tankOf = async (user: User, network: string) =>
    (await call<Tank[]>(user, 'GET', '/dac/v1/gas-tanks')).body.find(
      (each) => each.network === network,
    ) as Tank
  const assertEmitted = (type: string) =>
    waitFor(
      `${type} is emitted`,
      async () =>
        (
          await platform.database.query(
            `select 1 from events e join workspaces w on w.id = e.workspace_id where w.name = 'thin'
            and e.type = $1`,
            [type],
          )
        ).length > 0,
    )

  test('no nonce is skipped or reused by 60 transfers on one tank if the process is killed', () =>
    sendConcurrently(platform, 3))

  test('a low or empty tank is reported once, and transfers fail with the missing amount', async () => {
    const user = await platform.user('thin')
    await fundedWallet(platform, user, 'USDT_AVAX', '100')
    const tank = await waitFor('the tank is filled', async () => {
      const tank = await tankOf(user, 'AVAX')
      return tank.address && tank.balance === '10' && tank.status === 'ok' ? tank : null
    })
    assert.equal(
      (
        await platform.cli(
          'gas-tank',
          'drain',
          '--workspace',
          'thin',
          '--network',
          'AVAX',
          '--to',
          ETH_TO,
          '--json',
        )
      ).status,
      0,
    )
    await waitFor('the tank is empty', async () => (await tankOf(user, 'AVAX')).status === 'empty')
    // Waits for the event, because a state that is shorter than the monitoring interval is not
    // reported.
    await assertEmitted('gas_tank.empty')
    const before = await balance(user, 'USDT_AVAX')
    const failed = await terminal(
      user,
      (await post(user, transferBody('USDT_AVAX', '5', ETH_TO))).body.id,
    )
    assert.deepEqual([failed.status, failed.hash], ['failed', null])
    assert.match(
      String(failed.failure_reason),
      new RegExp(
        `gas tank of AVAX \\(${tank.address}\\) has .* AVAX; this transfer requires .*, so .* are missing`,
      ),
    )
    assert.deepEqual(await balance(user, 'USDT_AVAX'), before)
    await platform.fund('AVAX', tank.address, '0.005')
    await waitFor('the tank is low', async () => (await tankOf(user, 'AVAX')).status === 'low')
    await assertEmitted('gas_tank.low')
    await assertConfirmed(user, (await post(user, transferBody('USDT_AVAX', '5', ETH_TO))).body.id)
    // The entries contain every movement: their sum equals the tank's balance plus the remainder at
    // the address.
    const now = await waitFor('the books of the tank rest', async () => {
      const shown = await tankOf(user, 'AVAX')
      return shown.status === 'low' ? shown : null
    })
    const { data, total } = (
      await call<{ data: Record<string, string>[]; total: string }>(
        user,
        'GET',
        '/dac/v1/gas-tanks/AVAX/entries?limit=500',
      )
    ).body
    assert.equal(Number(total), data.length)
    const sum = (name: string) =>
      data.reduce((all, each) => all + BigInt(Math.round(Number(each[name]) * 1e18)), 0n)
    const near = (a: bigint, b: string) =>
      assert.ok(Math.abs(Number(a) - Number(b) * 1e18) < 1e6, `${a} ${b}`)
    near(sum('balance_change'), now.balance)
    near(sum('float_change'), now.float)
    assert.equal(sum('reserved_change'), 0n)
    for (const type of ['deposit', 'fuel_reservation', 'fuel', 'use'])
      assert.ok(
        data.some((each) => each['type'] === type),
        type,
      )
    assert.equal((await call(user, 'GET', '/dac/v1/gas-tanks/BTC/entries')).status, 404)
    await audit()
  })

  test('the operator can limit a tank’s fee, gas price and threshold; invalid values are named', async () => {
    const user = await platform.user('limited')
    await fundedWallet(platform, user, 'USDT_POL', '100')
    const set = (...options: string[]) =>
      platform.cli('gas-tank', 'set', '--workspace', 'limited', '--network', 'POL', ...options)
    for (const [options, message] of [
      [['--fee-cap', 'x'], /--fee-cap/],
      [[], /at least one/],
      [['--max-gas-price', '0'], /--max-gas-price/],
      [['--threshold', 'none'], /--threshold/],
    ] as const) {
      const answer = await set(...options)
      assert.equal(answer.status, 1)
      assert.match(answer.stderr, message)
    }
    assert.equal((await set('--fee-cap', '0.000001', '--threshold', '20')).status, 0)
    assert.deepEqual(
      [(await tankOf(user, 'POL')).fee_cap, (await tankOf(user, 'POL')).threshold],
      ['0.000001', '20'],
    )
    const capped = await terminal(
      user,
      (await post(user, transferBody('USDT_POL', '5', ETH_TO))).body.id,
    )
    assert.match(String(capped.failure_reason), /exceeds the gas tank's cap of 0.000001 POL/)
    assert.equal((await balance(user, 'USDT_POL')).balance, '100')
    // The maximum gas price is far below the chain's price, so the transfer waits. It continues once
    // the limit is removed.
    assert.equal((await set('--fee-cap', 'none', '--max-gas-price', '0.000000001')).status, 0)
    const { id } = (await post(user, transferBody('USDT_POL', '5', ETH_TO))).body
    await platform.tried(id, 1)
    const waiting = (
      await call<Transfer & { sub_status: string }>(user, 'GET', `/dac/v1/transaction/${id}`)
    ).body
    assert.deepEqual([waiting.status, waiting.sub_status], ['pending', 'QUEUED'])
    assert.equal((await set('--max-gas-price', 'none')).status, 0)
    await assertConfirmed(user, id)
  })
})

testEmittedEvents(() => platform.database, ['prepaid_fee.empty', 'gas_tank.low', 'gas_tank.empty'])
