import assert from 'node:assert/strict'
import { test } from 'node:test'
import { DEPTH, registry, useDatabase } from './deposits-support.ts'
import { InvoiceFixture } from './invoices-fixture.ts'
import { saveInvoiceSettings } from '../src/invoices/save-settings.ts'
import { createInvoice } from '../src/invoices/create-invoice.ts'
import { readCheckout } from '../src/invoices/checkout-state.ts'
import { CHOICES_MAX } from '../src/invoices/choose.ts'
import { frameAncestors } from '../src/invoices/frame-ancestors.ts'
import { ApiError } from '../src/errors.ts'
import { testEmittedEvents } from './event-assertions.ts'

/** Each way in which money comes to an invoice, from block to books to state to event. */
let current: InvoiceFixture | undefined
const database = useDatabase({ migrated: true, now: () => current?.now ?? Date.now() })
const open = async (family: 'evm' | 'xrp' = 'evm') =>
  (current = await new InvoiceFixture(database.get(), family).begin())
const USDT = (amount: number): bigint => BigInt(Math.round(amount * 1e6))
const ETH = (milli: number): bigint => BigInt(milli) * 10n ** 15n
const HUNDRED = { fiat: 'USD', fiat_amount: 100, assets: ['USDT_ETH'] }
const refused = (code: string, message: RegExp) => (error: unknown) =>
  error instanceof ApiError && error.code === code && (assert.match(error.message, message), true)

test('paid in two parts: partial, then Processing in its block, then Paid once credited', async () => {
  const stage = await open()
  const { inv_id: id, address } = await stage.create(HUNDRED)
  assert.equal(await stage.state(id), 'Pending')
  stage.pay({ address, asset: 'USDT_ETH', amount: USDT(40) })
  await stage.settle()
  assert.equal(await stage.state(id), 'Pending partial')
  assert.deepEqual(
    await stage.read(id).then(({ paid_amount, due_amount }) => [paid_amount, due_amount]),
    ['40', '60'],
  )
  stage.pass(1)
  stage.pay({ address, asset: 'USDT_ETH', amount: USDT(60) })
  await stage.settle()
  assert.equal(await stage.state(id), 'Processing')
  stage.chain.bury()
  await stage.settle()
  assert.equal(await stage.state(id), 'Paid')
  const { payments, version } = await stage.read(id)
  assert.deepEqual(
    payments.map(({ amount, status, counts }) => [amount, status, counts]),
    [
      ['40', 'confirmed', true],
      ['60', 'confirmed', true],
    ],
  )
  const told = await stage.events(id)
  assert.deepEqual(told, ['created', 'updated', 'processing', ...told.slice(3, -1), 'paid'])
  assert.ok(told.slice(3, -1).every((type) => type === 'updated'))
  assert.equal(Number(version), told.length, 'each change is one event')
})

test('overpaid, underpaid within the tolerance, and underpaid beyond it', async () => {
  const stage = await open()
  const [over, within, beyond] = [
    await stage.create(HUNDRED),
    await stage.create(HUNDRED),
    await stage.create({ ...HUNDRED, tolerance: 0.5 }),
  ]
  stage.pay(
    { address: over.address, asset: 'USDT_ETH', amount: USDT(100) + 1n },
    { address: within.address, asset: 'USDT_ETH', amount: USDT(99.5) },
    { address: beyond.address, asset: 'USDT_ETH', amount: USDT(99.5) - 1n },
  )
  stage.chain.bury()
  await stage.settle()
  assert.deepEqual(
    await Promise.all([over, within, beyond].map(({ inv_id }) => stage.state(inv_id))),
    ['Paid over', 'Paid', 'Pending partial'],
  )
  stage.pass(30)
  await stage.look()
  assert.deepEqual(
    await Promise.all([over, within, beyond].map(({ inv_id }) => stage.state(inv_id))),
    ['Paid over', 'Paid', 'Expired partial'],
  )
  assert.deepEqual((await stage.read(over.inv_id))['excess'], [
    { asset: 'USDT_ETH', amount: '0.000001' },
  ])
})

test('a payment after expiry: Expired late, in full or not, until the merchant marks it', async () => {
  const stage = await open()
  const { inv_id: id, address } = await stage.create(HUNDRED)
  await stage.settle()
  stage.pass(30)
  await stage.settle()
  assert.equal(await stage.state(id), 'Expired')
  stage.pay({ address, asset: 'USDT_ETH', amount: USDT(100) })
  stage.chain.bury()
  await stage.settle()
  assert.equal(await stage.state(id), 'Expired late')
  assert.equal((await stage.read(id)).payments[0]?.note, 'late')
  assert.equal(
    await stage
      .mark(id, 'settled')
      .then(({ inv_status, exception }) => `${inv_status} ${exception}`),
    'Paid late',
  )
  assert.deepEqual(await stage.events(id), ['created', 'expired', 'updated', 'paid'])
})

test('a payment in time that is credited after expiry: Processing changes to Paid', async () => {
  const stage = await open()
  const { inv_id: id, address } = await stage.create(HUNDRED)
  stage.pass(29)
  stage.pay({ address, asset: 'USDT_ETH', amount: USDT(100) })
  await stage.settle()
  stage.pass(10)
  await stage.settle()
  assert.equal(await stage.state(id), 'Processing')
  stage.chain.bury()
  await stage.settle()
  assert.equal(await stage.state(id), 'Paid')
})

test('a payment after cancellation: Invalid late; an invoice that is being paid cannot be cancelled', async () => {
  const stage = await open()
  const [one, other] = [await stage.create(HUNDRED), await stage.create(HUNDRED)]
  assert.equal((await stage.cancel(one.inv_id)).inv_status, 'Invalid')
  assert.equal(
    (await stage.cancel(one.inv_id)).version,
    (await stage.read(one.inv_id)).version,
    'again changes nothing',
  )
  stage.pass(1)
  await stage.settle()
  stage.pay(
    { address: one.address, asset: 'USDT_ETH', amount: USDT(100) },
    { address: other.address, asset: 'USDT_ETH', amount: USDT(100) },
  )
  // Found, and not yet processed.
  await stage.scan()
  await assert.rejects(
    stage.cancel(other.inv_id),
    refused('INVOICE_FINAL', /the invoice is Processing/),
  )
  await stage.settle()
  assert.deepEqual(
    [await stage.state(one.inv_id), await stage.state(other.inv_id)],
    ['Invalid late', 'Processing'],
  )
  assert.deepEqual(await stage.events(one.inv_id), ['created', 'invalid', 'updated'])
})

test('a payment in another asset of the same address is listed and not counted, unless it was offered with a rate', async () => {
  const stage = await open()
  const strict = await stage.create(HUNDRED)
  const open3 = await stage.create({ fiat: 'USD', fiat_amount: 100, assets: ['USDT_ETH', 'ETH'] })
  const {
    body: { selected },
  } = await stage.choose(open3.inv_id, 'USDT_ETH')
  stage.pay(
    { address: strict.address, asset: 'USDC_ETH', amount: USDT(100) },
    { address: strict.address, asset: 'ETH', amount: ETH(50) },
    { address: selected?.address as string, asset: 'ETH', amount: ETH(25) },
    { address: selected?.address as string, asset: 'USDT_ETH', amount: USDT(50) },
  )
  stage.chain.bury()
  await stage.settle()
  assert.deepEqual(
    [await stage.state(strict.inv_id), await stage.state(open3.inv_id)],
    ['Pending', 'Paid'],
    'half in ETH at 2,000, half in USDT',
  )
  const { payments } = await stage.read(strict.inv_id)
  assert.deepEqual(payments.map(({ asset, counts, note }) => [asset, counts, note]).sort(), [
    ['ETH', false, 'other_asset'],
    ['USDC_ETH', false, 'other_asset'],
  ])
  assert.deepEqual(
    (await stage.read(strict.inv_id))['refundable'],
    payments.map(({ asset, amount }) => ({ asset, amount })),
  )
})

test('a payment with the wrong tag pays no invoice; the right tag pays it', async () => {
  const stage = await open('xrp')
  const { inv_id: id, address, address_tag: tag } = await stage.create({ asset: 'XRP', amount: 50 })
  const other = await stage.create({ asset: 'XRP', amount: 50 })
  assert.deepEqual([other.address === address, other.address_tag === tag], [true, false])
  const tags = { takes_tag: true, requires_tag: true }
  const { assets } = (await stage.ask<{ assets: object[] }>(readCheckout, {}, { inv_id: id })).body
  for (const offers of [assets, (await stage.read(id)).assets])
    assert.partialDeepStrictEqual(offers, [tags])
  stage.pay(
    { address, asset: 'XRP', amount: 50_000_000n, tag: '1234' },
    { address, asset: 'XRP', amount: 50_000_000n, tag: null },
  )
  stage.chain.bury()
  await stage.settle()
  assert.deepEqual([await stage.state(id), (await stage.read(id)).payments], ['Pending', []])
  stage.pay({ address, asset: 'XRP', amount: 50_000_000n, tag: tag as string })
  stage.chain.bury()
  await stage.settle()
  assert.deepEqual([await stage.state(id), await stage.state(other.inv_id)], ['Paid', 'Pending'])
})

test('its block is removed by a reorganisation: Pending again, then as before in the next block; after expiry Expired', async () => {
  const stage = await open()
  const { inv_id: id, address } = await stage.create(HUNDRED)
  const payment = {
    txid: '0xcafe',
    outcome: [{ position: 0, asset: 'USDT_ETH', address: address as string, amount: USDT(100) }],
  }
  stage.chain.mine(payment)
  await stage.settle()
  assert.equal(await stage.state(id), 'Processing')
  stage.chain.drop(1)
  stage.chain.mine()
  await stage.settle()
  assert.equal(await stage.state(id), 'Pending')
  assert.equal((await stage.read(id)).payments[0]?.status, 'reverted')
  stage.chain.mine(payment)
  await stage.settle()
  assert.equal(await stage.state(id), 'Processing')
  stage.pass(40)
  stage.chain.drop(1)
  stage.chain.mine()
  await stage.settle()
  assert.equal(await stage.state(id), 'Expired')
  stage.chain.mine(payment)
  stage.chain.bury()
  await stage.settle()
  assert.equal(await stage.state(id), 'Paid', 'it was first seen in time')
  stage.chain.drop(DEPTH + 1)
  stage.chain.mine()
  stage.chain.mine()
  stage.chain.mine()
  stage.chain.mine()
  await stage.settle()
  assert.equal(
    await stage.state(id),
    'Expired',
    'a credited payment that is taken back pays nothing',
  )
  assert.deepEqual(await stage.events(id), [
    'created',
    'processing',
    'updated',
    'processing',
    'expired',
    'paid',
    'expired',
  ])
})

test('frozen by screening: Processing while it is held, and Paid only once it is released', async () => {
  const stage = await open()
  await stage.screenDeposits({ subAccount: stage.caller.subAccountId } as never)
  stage.risks.set('0x00000000000000000000000000000000000000aa', 'SEVERE')
  const { inv_id: id, address } = await stage.create(HUNDRED)
  stage.pay({
    address,
    asset: 'USDT_ETH',
    amount: USDT(100),
    sender: '0x00000000000000000000000000000000000000aa',
  })
  stage.chain.bury()
  await stage.settle()
  assert.deepEqual(
    [await stage.state(id), (await stage.read(id)).payments[0]?.status],
    ['Processing', 'held'],
  )
  stage.pass(60)
  await stage.settle()
  assert.equal(await stage.state(id), 'Processing')
  stage.risks.clear()
  await stage.unfreeze('USDT_ETH', '0x00000000000000000000000000000000000000aa')
  stage.pass(15)
  await stage.settle()
  await stage.settle()
  assert.deepEqual(
    [await stage.state(id), (await stage.read(id)).payments[0]?.status],
    ['Paid', 'confirmed'],
  )
})

test('two concurrent invoices have different addresses; two tabs that choose concurrently share one', async () => {
  const stage = await open()
  const made = await Promise.all(Array.from({ length: 8 }, () => stage.create(HUNDRED)))
  assert.equal(new Set(made.map(({ address }) => address)).size, 8)
  assert.equal(new Set(made.map(({ inv_id }) => inv_id)).size, 8)
  const { inv_id: id } = await stage.create({ fiat: 'USD', fiat_amount: 100 })
  const tabs = await Promise.all(Array.from({ length: 6 }, () => stage.choose(id, 'USDC_ETH')))
  assert.equal(new Set(tabs.map(({ body }) => body.selected?.address)).size, 1)
  const wallets = await stage.database.query('select 1 from wallet_addresses where label = $1', [
    id,
  ])
  assert.equal(wallets.length, 1)
  await assert.rejects(
    stage.choose(id, 'BTC'),
    refused('INVALID_REQUEST', /select one of ETH, USDT_ETH, USDC_ETH/),
  )
})

test('a payer may select ten assets, and the number of addresses of an invoice is limited', async () => {
  const stage = await open()
  const { inv_id: id } = await stage.create({ fiat: 'USD', fiat_amount: 100 })
  await stage.database.query(
    `insert into invoice_offers (workspace_id, invoice_id, asset, network, position, amount, confirmations, address)
     select (select workspace_id from invoices where id = $1), $1, name, 'X', 100 + n, 1, 0, 'x' || n from unnest($2::text[]) with ordinality as a(name, n)`,
    [
      id,
      registry.assets
        .filter(({ network }) => network !== 'ETH')
        .slice(0, CHOICES_MAX - 1)
        .map(({ asset_name }) => asset_name),
    ],
  )
  await stage.choose(id, 'USDT_ETH')
  await assert.rejects(
    stage.choose(id, 'ETH'),
    refused('INVOICE_CLOSED', /10 assets were already selected/),
  )
  assert.ok(
    (await stage.choose(id, 'USDT_ETH')).body.selected,
    'what was chosen before is not refused',
  )
})

test('settings apply to new invoices, and define which sites may frame the checkout', async () => {
  const stage = await open()
  const { inv_id: before } = await stage.create(HUNDRED)
  assert.deepEqual(
    [await frameAncestors(stage.services, before), await frameAncestors(stage.services, 'inv_x')],
    [[], null],
  )
  const saved = {
    display_name: 'Hats Ltd',
    allowed_origins: ['https://shop.example', 'http://127.0.0.1:3000'],
    tolerance: 1,
    expires_in: 60,
  }
  await stage.ask(saveInvoiceSettings, saved)
  const { inv_id: id, expiry, created_at, tolerance } = await stage.create(HUNDRED)
  assert.deepEqual(
    [Date.parse(expiry as string) - Date.parse(created_at as string), tolerance],
    [60_000, '1'],
  )
  assert.equal(
    (await stage.ask<{ merchant: string }>(readCheckout, {}, { inv_id: id })).body.merchant,
    'Hats Ltd',
  )
  assert.deepEqual(await frameAncestors(stage.services, before), saved.allowed_origins)
  for (const [bad, field] of [
    [{ allowed_origins: ['https://*'] }, /must be an origin/],
    [{ allowed_origins: ['https://*.example'] }, /must be an origin/],
    [{ allowed_origins: ['https://shop.example/path'] }, /^allowed_origins.0: must be an origin/],
    [{ allowed_origins: ["https://a.example; script-src 'self'"] }, /must be an origin/],
    [{ allowed_origins: ['*'] }, /must be an origin/],
    [{ tolerance: 11 }, /^tolerance: must be at most 10 percent/],
    [{ tolerance: '0.00001' }, /^tolerance: has more than 4 decimals/],
    [
      {
        confirmations: [
          { from_usd: 5, confirmations: 1 },
          { from_usd: 5, confirmations: 2 },
        ],
      },
      /^confirmations: from_usd must increase/,
    ],
    [{ expires_in: 4 }, /^expires_in: must be an integer from 5/],
    [{ expires_in: 5.5 }, /^expires_in: must be an integer/],
  ] as const)
    await assert.rejects(stage.ask(saveInvoiceSettings, bad), refused('INVALID_REQUEST', field))
})

test('invalid invoices are refused by the wrong field, and create nothing', async () => {
  const stage = await open()
  const made = () =>
    stage.database.query('select 1 from invoices union all select 1 from wallet_addresses')
  for (const [body, code, message] of [
    [{}, 'INVALID_REQUEST', /^fiat: send fiat and fiat_amount, or asset and amount/],
    [{ fiat: 'USD' }, 'INVALID_REQUEST', /^fiat_amount: is required together with fiat/],
    [{ fiat_amount: 1 }, 'INVALID_REQUEST', /^fiat: is required/],
    [{ fiat: 'EUR', fiat_amount: 1 }, 'INVALID_REQUEST', /^fiat: must be USD/],
    [{ ...HUNDRED, asset: 'ETH' }, 'INVALID_REQUEST', /^asset: send either/],
    [{ ...HUNDRED, fiat_amount: 0 }, 'INVALID_AMOUNT', /^fiat_amount: must be greater than zero/],
    [{ ...HUNDRED, fiat_amount: 1e16 }, 'INVALID_AMOUNT', /^fiat_amount: must be at most/],
    [{ ...HUNDRED, fiat_amount: '0.0000001' }, 'INVALID_AMOUNT', /more than 6 decimals/],
    [{ ...HUNDRED, fiat_amount: -1 }, 'INVALID_REQUEST', /^fiat_amount: must not be negative/],
    [{ ...HUNDRED, assets: [] }, 'INVALID_REQUEST', /^assets: /],
    [
      { ...HUNDRED, assets: ['USDT_ETH', 'USDT_ETH'] },
      'INVALID_REQUEST',
      /^assets: contains an asset twice/,
    ],
    [{ ...HUNDRED, assets: ['USDT_BSC'] }, 'UNSUPPORTED_ASSET', /^assets: /],
    [{ ...HUNDRED, assets: [7] }, 'INVALID_REQUEST', /^assets.0: must be a string/],
    [
      { ...HUNDRED, success_url: 'javascript:alert(1)' },
      'INVALID_REQUEST',
      /^success_url: must be an http/,
    ],
    [{ ...HUNDRED, failed_url: 'https://a:b@c.example' }, 'INVALID_REQUEST', /^failed_url: /],
    [{ ...HUNDRED, payer: { mail: 'x' } }, 'INVALID_REQUEST', /^payer/],
    [{ ...HUNDRED, expires_in: 1e9 }, 'INVALID_REQUEST', /^expires_in: /],
    [{ asset: 'ETH', amount: '1e-19' }, 'INVALID_AMOUNT', /^amount: /],
    [{ asset: 'ETH', amount: 0 }, 'INVALID_AMOUNT', /^amount: must be greater/],
    [{ ...HUNDRED, memo: '\u0000' }, 'INVALID_REQUEST', /^memo: /],
    [{ ...HUNDRED, ordr_id: '7' }, 'UNKNOWN_FIELD', /did you mean order_id/],
  ] as const)
    await assert.rejects(stage.create(body), refused(code, message), JSON.stringify(body))
  assert.equal((await made()).length, 0)
})

test('a stale or unknown price: 503 that names the asset; of all wallets those with a price remain', async () => {
  const stage = await open()
  stage.stale.add('ETH')
  await assert.rejects(
    stage.create({ ...HUNDRED, assets: ['USDT_ETH', 'ETH'] }),
    refused(
      'PRICE_UNAVAILABLE',
      /^assets: there is no current price of ETH, and stale prices are not used; try again/,
    ),
  )
  const { inv_id: id, assets } = await stage.create({ fiat: 'USD', fiat_amount: 100 })
  assert.deepEqual(
    assets.map(({ asset }) => asset),
    ['USDT_ETH', 'USDC_ETH'],
  )
  for (const coin of ['USDT', 'USDC']) stage.prices.delete(coin)
  await assert.rejects(
    stage.create({ fiat: 'USD', fiat_amount: 100 }),
    refused('PRICE_UNAVAILABLE', /no current price/),
  )
  assert.equal(
    (await stage.create({ asset: 'USDT_ETH', amount: 5 })).crypto_amount,
    '5',
    'what is asked for in coin needs none',
  )
  await stage.choose(id, 'USDT_ETH')
  const { crypto_amount, address } = await stage.read(id)
  assert.equal(crypto_amount, '100', 'a rate that is locked is not asked for again')
  stage.pay({ address, asset: 'USDT_ETH', amount: USDT(100) })
  stage.chain.bury()
  await stage.settle()
  assert.equal(await stage.state(id), 'Paid')
})

test('a payment that was made while no scanner ran is in time, whenever it is found', async () => {
  const stage = await open()
  const { inv_id: id, address } = await stage.create(HUNDRED)
  await stage.settle()
  // The chain advances and the platform does not; in this time the invoice expires.
  stage.pass(20)
  stage.pay({ address, asset: 'USDT_ETH', amount: USDT(100) })
  stage.chain.bury()
  stage.pass(60)
  await stage.look()
  assert.equal(await stage.state(id), 'Expired')
  await stage.settle()
  assert.equal(await stage.state(id), 'Paid')
})

test('a process that ends at any point only delays: the next one processes what was due', async () => {
  const stage = await open()
  const { inv_id: id, address } = await stage.create({ ...HUNDRED, sequence_id: 'one' })
  for (const place of ['scan.block', 'deposit.deep', 'deposit.credited']) {
    if (place === 'scan.block') stage.pay({ address, asset: 'USDT_ETH', amount: USDT(100) })
    else stage.chain.bury()
    stage.crashAt = place
    await stage
      .settle()
      .catch((error: Error) => assert.equal(error.message, 'the process ended here'))
    stage.crashAt = null
  }
  await stage.settle()
  assert.equal(await stage.state(id), 'Paid')
  stage.crashAt = 'invoice.created'
  await stage.create({ ...HUNDRED, sequence_id: 'two' }).then(
    ({ sequence_id }) =>
      assert.equal(sequence_id, 'two', 'the answer was lost, and the invoice is there'),
    () => undefined,
  )
  const { body, headers } = await stage.ask(createInvoice, { ...HUNDRED, sequence_id: 'two' })
  assert.equal(headers['idempotent-replayed'], 'true')
  assert.equal(
    (await stage.database.query(`select 1 from invoices where sequence_id = 'two'`)).length,
    1,
  )
  assert.equal(body.inv_status, 'Pending')
})

test('a check that dies at any statement is repeated, also concurrently, and each change is reported once', async () => {
  const stage = await open()
  const { database: real } = stage.services
  const { inv_id: id, address } = await stage.create(HUNDRED)
  stage.pay({ address, asset: 'USDT_ETH', amount: USDT(100) })
  await stage.scan()
  let dead = 0
  for (let last = 1, died = true; died; last++) {
    died = false
    let statement = 0
    const orDie = <T>(ask: () => Promise<T>): Promise<T> => {
      if (++statement !== last) return ask()
      died = true
      return Promise.reject(new Error('the connection is gone'))
    }
    // Whatever the transaction did before is rolled back by the database.
    stage.services.database = {
      ...real,
      transaction: (work) =>
        real.transaction((tx) =>
          work({
            ...tx,
            query: (text, values) => orDie(() => tx.query(text, values)),
            one: (text, values) => orDie(() => tx.one(text, values)),
          }),
        ),
    }
    await stage.look()
    if (died) {
      dead++
      assert.equal(await stage.state(id), 'Pending')
      stage.pass(1 / 5)
    }
  }
  stage.services.database = real
  assert.ok(dead >= 6, `${dead} statements`)
  assert.deepEqual(
    [await stage.state(id), await stage.events(id)],
    ['Processing', ['created', 'processing']],
  )
  stage.chain.bury()
  await stage.scan()
  await stage.scan()
  await stage.step()
  await Promise.all([stage.look(), stage.look(), stage.look()])
  assert.deepEqual(
    [await stage.state(id), await stage.events(id)],
    ['Paid', ['created', 'processing', 'paid']],
  )
})

test('concurrent requests with one sequence_id make one invoice, and another payload gets a warning', async () => {
  const stage = await open()
  const asked = await Promise.all(
    Array.from({ length: 5 }, () => stage.ask(createInvoice, { ...HUNDRED, sequence_id: 's' })),
  )
  assert.equal(new Set(asked.map(({ body }) => body.inv_id)).size, 1)
  assert.equal(
    (await stage.database.query('select 1 from wallet_addresses where label is not null')).length,
    1,
    'no address is spent on a replay',
  )
  const other = await stage.ask(createInvoice, { ...HUNDRED, fiat_amount: 7, sequence_id: 's' })
  assert.match(other.headers['warning'] ?? '', /another payload/)
  assert.equal(other.body.crypto_amount, '100')
})

test('more confirmations by amount: Paid waits for them after crediting, and smaller amounts do not', async () => {
  const stage = await open()
  await stage.ask(saveInvoiceSettings, {
    confirmations: [
      { from_usd: 0, confirmations: 0 },
      { from_usd: 500.5, confirmations: DEPTH + 3 },
    ],
  })
  const [small, large] = [
    await stage.create(HUNDRED),
    await stage.create({ ...HUNDRED, fiat_amount: 1000 }),
  ]
  stage.pay(
    { address: small.address, asset: 'USDT_ETH', amount: USDT(100) },
    { address: large.address, asset: 'USDT_ETH', amount: USDT(1000) },
  )
  stage.chain.bury()
  await stage.settle()
  const [deposit] = (await stage.deposits()).filter(
    ({ destination_id }) => destination_id === large.address,
  )
  assert.equal(deposit?.state, 'CREDITED')
  assert.deepEqual(
    [await stage.state(small.inv_id), await stage.state(large.inv_id)],
    ['Paid', 'Processing'],
  )
  stage.chain.bury()
  await stage.settle()
  assert.deepEqual(
    await stage
      .read(large.inv_id)
      .then(({ inv_status, payments: [one] }) => [inv_status, one?.confirmations, one?.required]),
    ['Paid', '5', '5'],
  )
})

test('an idle platform writes nothing', async () => {
  const stage = await open()
  const { inv_id: id } = await stage.create(HUNDRED)
  await stage.settle()
  const row = () =>
    stage.database.one('select xmin::text, ctid::text from invoices where id = $1', [id])
  const before = await row()
  for (let count = 0; count < 5; count++) await stage.settle()
  assert.deepEqual(await row(), before)
  stage.pass(30)
  await stage.look()
  const expired = await row()
  for (let count = 0; count < 5; count++) await stage.look()
  assert.deepEqual([await stage.state(id), await row()], ['Expired', expired])
})

test('1,000 invoices paid in one block', async (t) => {
  const stage = await open()
  await stage.create(HUNDRED)
  // Made as the one that the API has made: 1,000 derivations of keys would prove nothing here.
  for (const statement of [
    `insert into chain_addresses (network, address, workspace_id, sub_account_id, path_index, kind)
     select network, '0xpaid' || n, workspace_id, sub_account_id, 1000 + n, kind from chain_addresses, generate_series(2, 1000) n where kind = 'deposit'`,
    `insert into invoices select (i).* from (select jsonb_populate_record(i, jsonb_build_object('id', 'inv_' || lpad(to_hex(n), 32, '0'))) i
     from invoices i, generate_series(2, 1000) n) rows`,
    `insert into invoice_offers select (o).* from (select jsonb_populate_record(o,
       jsonb_build_object('invoice_id', 'inv_' || lpad(to_hex(n), 32, '0'), 'address', '0xpaid' || n)) o
     from invoice_offers o, generate_series(2, 1000) n) rows`,
  ])
    await stage.database.query(statement)
  const made = await stage.database.query<{ address: string }>('select address from invoice_offers')
  assert.equal(new Set(made.map(({ address }) => address)).size, 1000)
  stage.pay(...made.map(({ address }) => ({ address, asset: 'USDT_ETH', amount: USDT(100) })))
  const counted = async (status: string) =>
    Number(
      (
        await stage.database.one<{ n: string }>(
          'select count(*)::text n from invoices where status = $1 and exception is null',
          [status],
        )
      )?.n,
    )
  let began = performance.now()
  await stage.scan()
  const scanned = performance.now() - began
  began = performance.now()
  await stage.look()
  const looked = performance.now() - began
  assert.equal(await counted('Processing'), 1000)
  // Crediting is the same for every deposit and not an invoice's work: all but the last are as if
  // it were done.
  await stage.database.query(
    `update transactions set state = 'CREDITED', status = 'confirmed' where kind = 'DEPOSIT' and id <> (select max(id::text)::uuid from transactions)`,
  )
  await stage.database.query('update invoices set due_at = $1', [new Date(stage.now)])
  stage.chain.bury()
  await stage.scan()
  await stage.scan()
  await stage.step()
  began = performance.now()
  await stage.look()
  const paid = performance.now() - began
  assert.equal(await counted('Paid'), 1000)
  assert.equal(
    (await stage.database.query(`select 1 from events where type = 'invoice.paid'`)).length,
    1000,
  )
  t.diagnostic(
    `scan ${scanned.toFixed()} ms, to Processing ${looked.toFixed()} ms, to Paid ${paid.toFixed()} ms`,
  )
})

test('a payer sees only their own invoice, and another tenant’s key sees none', async () => {
  const stage = await open()
  const { inv_id: id } = await stage.create(HUNDRED)
  const missing = refused('NOT_FOUND', /invoice .* does not exist/)
  for (const guess of [
    id.slice(0, -1),
    `${id}0`,
    id.toUpperCase(),
    `inv_${'0'.repeat(32)}`,
    'inv_',
    '%',
    '',
  ]) {
    await assert.rejects(stage.ask(readCheckout, {}, { inv_id: guess }), missing, guess)
    await assert.rejects(stage.choose(guess, 'USDT_ETH'), missing, guess)
  }
  const shown = JSON.stringify((await stage.ask(readCheckout, {}, { inv_id: id })).body)
  for (const secret of [
    stage.caller.subAccountId,
    stage.caller.workspaceId,
    'webhook',
    'payer',
    'transaction_id',
  ]) {
    assert.ok(!shown.includes(secret), secret)
  }
  const { caller } = stage
  stage.caller = { ...caller, workspaceId: '00000000-0000-4000-8000-000000000000' }
  await assert.rejects(stage.read(id), refused('FORBIDDEN', /another workspace/))
  stage.caller = { ...caller, subAccountId: '00000000-0000-4000-8000-000000000000' }
  await assert.rejects(stage.cancel(id), missing)
})

test('emits every invoice event type', async () => {
  const stage = await open()
  const [paid, expired, cancelled] = [
    await stage.create(HUNDRED),
    await stage.create(HUNDRED),
    await stage.create(HUNDRED),
  ]
  await stage.cancel(cancelled.inv_id)
  stage.pay({ address: paid.address, asset: 'USDT_ETH', amount: USDT(50) })
  await stage.settle()
  stage.pay({ address: paid.address, asset: 'USDT_ETH', amount: USDT(50) })
  await stage.settle()
  stage.chain.bury()
  await stage.settle()
  stage.pass(30)
  await stage.look()
  assert.deepEqual(
    await Promise.all([paid, expired, cancelled].map(({ inv_id }) => stage.state(inv_id))),
    ['Paid', 'Expired', 'Invalid'],
  )
})

testEmittedEvents(database.get, [
  'invoice.created',
  'invoice.updated',
  'invoice.processing',
  'invoice.paid',
  'invoice.expired',
  'invoice.invalid',
])
