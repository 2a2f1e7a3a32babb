import assert from 'node:assert/strict'
import { test } from 'node:test'
import { DEPTH, registry, useDatabase } from '../../../testing/deposits-support.ts'
import { InvoiceFixture } from '../../../testing/invoices-fixture.ts'
import { saveInvoiceSettings } from './save-settings.ts'
import { createInvoice } from './create-invoice.ts'
import { readCheckout } from './checkout-state.ts'
import { CHOICES_MAX } from './choose.ts'
import { frameAncestors } from './frame-ancestors.ts'
import { ApiError } from '../../core/errors.ts'
import { lookAtDue } from './loop.ts'
import { testEmittedEvents } from '../../../testing/event-assertions.ts'

/**
 * Tests of every way in which an invoice is paid: from the block to the ledger, the state and the
 * event.
 */
let current: InvoiceFixture | undefined
const database = useDatabase({ migrated: true, now: () => current?.now ?? Date.now() })
const open = async (family: 'evm' | 'xrp' = 'evm') =>
  (current = await new InvoiceFixture(database.get(), family).begin())
const USDT = (amount: number): bigint => BigInt(Math.round(amount * 1e6))
const ETH = (milli: number): bigint => BigInt(milli) * 10n ** 15n
const HUNDRED = { fiat: 'USD', fiat_amount: 100, assets: ['USDT_ETH'] }
const refused = (code: string, message: RegExp) => (error: unknown) =>
  error instanceof ApiError && error.code === code && (assert.match(error.message, message), true)

test('an invoice paid in two parts is partial, then Processing, and Paid once credited', async () => {
  const fixture = await open()
  const { inv_id: id, address } = await fixture.create(HUNDRED)
  assert.equal(await fixture.state(id), 'Pending')
  fixture.pay({ address, asset: 'USDT_ETH', amount: USDT(40) })
  await fixture.settle()
  assert.equal(await fixture.state(id), 'Pending partial')
  assert.deepEqual(
    await fixture.read(id).then(({ paid_amount, due_amount }) => [paid_amount, due_amount]),
    ['40', '60'],
  )
  fixture.pass(1)
  fixture.pay({ address, asset: 'USDT_ETH', amount: USDT(60) })
  await fixture.settle()
  assert.equal(await fixture.state(id), 'Processing')
  fixture.chain.bury()
  await fixture.settle()
  assert.equal(await fixture.state(id), 'Paid')
  const { payments, version } = await fixture.read(id)
  assert.deepEqual(
    payments.map(({ amount, status, counts }) => [amount, status, counts]),
    [
      ['40', 'confirmed', true],
      ['60', 'confirmed', true],
    ],
  )
  const events = await fixture.events(id)
  assert.deepEqual(events, ['created', 'updated', 'processing', ...events.slice(3, -1), 'paid'])
  assert.ok(events.slice(3, -1).every((type) => type === 'updated'))
  assert.equal(Number(version), events.length, 'each change is one event')
})

test('an invoice that another process has locked is left to it, without a further round', async () => {
  const fixture = await open()
  const [locked, free] = [await fixture.create(HUNDRED), await fixture.create(HUNDRED)]
  fixture.pass(30)
  await fixture.database.transaction(async (tx) => {
    await tx.query('select id from invoices where id = $1 for update', [locked.inv_id])
    assert.equal(await lookAtDue(fixture.services), 1, 'the other invoice is processed')
    assert.equal(await lookAtDue(fixture.services), 0, 'the loop pauses')
  })
  assert.deepEqual(await Promise.all([locked, free].map(({ inv_id }) => fixture.state(inv_id))), [
    'Pending',
    'Expired',
  ])
  await fixture.look()
  assert.equal(await fixture.state(locked.inv_id), 'Expired')
})

test('an invoice is overpaid, underpaid within tolerance, or underpaid beyond tolerance', async () => {
  const fixture = await open()
  const [overpaid, within, beyond] = [
    await fixture.create(HUNDRED),
    await fixture.create(HUNDRED),
    await fixture.create({ ...HUNDRED, tolerance: 0.5 }),
  ]
  fixture.pay(
    { address: overpaid.address, asset: 'USDT_ETH', amount: USDT(100) + 1n },
    { address: within.address, asset: 'USDT_ETH', amount: USDT(99.5) },
    { address: beyond.address, asset: 'USDT_ETH', amount: USDT(99.5) - 1n },
  )
  fixture.chain.bury()
  await fixture.settle()
  assert.deepEqual(
    await Promise.all([overpaid, within, beyond].map(({ inv_id }) => fixture.state(inv_id))),
    ['Paid over', 'Paid', 'Pending partial'],
  )
  fixture.pass(30)
  await fixture.look()
  assert.deepEqual(
    await Promise.all([overpaid, within, beyond].map(({ inv_id }) => fixture.state(inv_id))),
    ['Paid over', 'Paid', 'Expired partial'],
  )
  assert.deepEqual((await fixture.read(overpaid.inv_id))['excess'], [
    { asset: 'USDT_ETH', amount: '0.000001' },
  ])
})

test('a payment after expiry makes an invoice Expired late until it is marked as settled', async () => {
  const fixture = await open()
  const { inv_id: id, address } = await fixture.create(HUNDRED)
  await fixture.settle()
  fixture.pass(30)
  await fixture.settle()
  assert.equal(await fixture.state(id), 'Expired')
  fixture.pay({ address, asset: 'USDT_ETH', amount: USDT(100) })
  fixture.chain.bury()
  await fixture.settle()
  assert.equal(await fixture.state(id), 'Expired late')
  assert.equal((await fixture.read(id)).payments[0]?.note, 'late')
  assert.equal(
    await fixture
      .mark(id, 'settled')
      .then(({ inv_status, exception }) => `${inv_status} ${exception}`),
    'Paid late',
  )
  assert.deepEqual(await fixture.events(id), ['created', 'expired', 'updated', 'paid'])
})

test('a payment in time that is credited after expiry changes the invoice to Paid', async () => {
  const fixture = await open()
  const { inv_id: id, address } = await fixture.create(HUNDRED)
  fixture.pass(29)
  fixture.pay({ address, asset: 'USDT_ETH', amount: USDT(100) })
  await fixture.settle()
  fixture.pass(10)
  await fixture.settle()
  assert.equal(await fixture.state(id), 'Processing')
  fixture.chain.bury()
  await fixture.settle()
  assert.equal(await fixture.state(id), 'Paid')
})

test('a payment after cancellation is late, and an invoice being paid cannot be cancelled', async () => {
  const fixture = await open()
  const [one, other] = [await fixture.create(HUNDRED), await fixture.create(HUNDRED)]
  assert.equal((await fixture.cancel(one.inv_id)).inv_status, 'Invalid')
  assert.equal(
    (await fixture.cancel(one.inv_id)).version,
    (await fixture.read(one.inv_id)).version,
    'again changes nothing',
  )
  fixture.pass(1)
  await fixture.settle()
  fixture.pay(
    { address: one.address, asset: 'USDT_ETH', amount: USDT(100) },
    { address: other.address, asset: 'USDT_ETH', amount: USDT(100) },
  )
  // The payment was found and is not processed yet.
  await fixture.scan()
  await assert.rejects(
    fixture.cancel(other.inv_id),
    refused('INVOICE_FINAL', /the invoice is Processing/),
  )
  await fixture.settle()
  assert.deepEqual(
    [await fixture.state(one.inv_id), await fixture.state(other.inv_id)],
    ['Invalid late', 'Processing'],
  )
  assert.deepEqual(await fixture.events(one.inv_id), ['created', 'invalid', 'updated'])
})

test('a payment in another asset is listed, and counts only if the invoice offers that asset', async () => {
  const fixture = await open()
  const strict = await fixture.create(HUNDRED)
  const open3 = await fixture.create({ fiat: 'USD', fiat_amount: 100, assets: ['USDT_ETH', 'ETH'] })
  const {
    body: { selected },
  } = await fixture.choose(open3.inv_id, 'USDT_ETH')
  fixture.pay(
    { address: strict.address, asset: 'USDC_ETH', amount: USDT(100) },
    { address: strict.address, asset: 'ETH', amount: ETH(50) },
    { address: selected?.address as string, asset: 'ETH', amount: ETH(25) },
    { address: selected?.address as string, asset: 'USDT_ETH', amount: USDT(50) },
  )
  fixture.chain.bury()
  await fixture.settle()
  assert.deepEqual(
    [await fixture.state(strict.inv_id), await fixture.state(open3.inv_id)],
    ['Pending', 'Paid'],
    'half in ETH at 2,000, half in USDT',
  )
  const { payments } = await fixture.read(strict.inv_id)
  assert.deepEqual(payments.map(({ asset, counts, note }) => [asset, counts, note]).sort(), [
    ['ETH', false, 'other_asset'],
    ['USDC_ETH', false, 'other_asset'],
  ])
  assert.deepEqual(
    (await fixture.read(strict.inv_id))['refundable'],
    payments.map(({ asset, amount }) => ({ asset, amount })),
  )
})

test('a payment counts only with the invoice’s tag', async () => {
  const fixture = await open('xrp')
  const {
    inv_id: id,
    address,
    address_tag: tag,
  } = await fixture.create({ asset: 'XRP', amount: 50 })
  const other = await fixture.create({ asset: 'XRP', amount: 50 })
  assert.deepEqual([other.address === address, other.address_tag === tag], [true, false])
  const tags = { takes_tag: true, requires_tag: true }
  const { assets } = (await fixture.ask<{ assets: object[] }>(readCheckout, {}, { inv_id: id }))
    .body
  for (const offers of [assets, (await fixture.read(id)).assets])
    assert.partialDeepStrictEqual(offers, [tags])
  fixture.pay(
    { address, asset: 'XRP', amount: 50_000_000n, tag: '1234' },
    { address, asset: 'XRP', amount: 50_000_000n, tag: null },
  )
  fixture.chain.bury()
  await fixture.settle()
  assert.deepEqual([await fixture.state(id), (await fixture.read(id)).payments], ['Pending', []])
  fixture.pay({ address, asset: 'XRP', amount: 50_000_000n, tag: tag as string })
  fixture.chain.bury()
  await fixture.settle()
  assert.deepEqual(
    [await fixture.state(id), await fixture.state(other.inv_id)],
    ['Paid', 'Pending'],
  )
})

test("removing a payment's block returns the invoice to Pending, or Expired after expiry", async () => {
  const fixture = await open()
  const { inv_id: id, address } = await fixture.create(HUNDRED)
  const payment = {
    txid: '0xcafe',
    outcome: [{ position: 0, asset: 'USDT_ETH', address: address as string, amount: USDT(100) }],
  }
  fixture.chain.mine(payment)
  await fixture.settle()
  assert.equal(await fixture.state(id), 'Processing')
  fixture.chain.drop(1)
  fixture.chain.mine()
  await fixture.settle()
  assert.equal(await fixture.state(id), 'Pending')
  assert.equal((await fixture.read(id)).payments[0]?.status, 'reverted')
  fixture.chain.mine(payment)
  await fixture.settle()
  assert.equal(await fixture.state(id), 'Processing')
  fixture.pass(40)
  fixture.chain.drop(1)
  fixture.chain.mine()
  await fixture.settle()
  assert.equal(await fixture.state(id), 'Expired')
  fixture.chain.mine(payment)
  fixture.chain.bury()
  await fixture.settle()
  assert.equal(await fixture.state(id), 'Paid', 'it was first seen in time')
  fixture.chain.drop(DEPTH + 1)
  fixture.chain.mine()
  fixture.chain.mine()
  fixture.chain.mine()
  fixture.chain.mine()
  await fixture.settle()
  assert.equal(
    await fixture.state(id),
    'Expired',
    'a credited payment that is taken back pays nothing',
  )
  assert.deepEqual(await fixture.events(id), [
    'created',
    'processing',
    'updated',
    'processing',
    'expired',
    'paid',
    'reverted',
  ])
})

test('a payment held by screening keeps the invoice Processing until it is released', async () => {
  const fixture = await open()
  await fixture.screenDeposits({ subAccount: fixture.caller.subAccountId } as never)
  fixture.risks.set('0x00000000000000000000000000000000000000aa', 'SEVERE')
  const { inv_id: id, address } = await fixture.create(HUNDRED)
  fixture.pay({
    address,
    asset: 'USDT_ETH',
    amount: USDT(100),
    sender: '0x00000000000000000000000000000000000000aa',
  })
  fixture.chain.bury()
  await fixture.settle()
  assert.deepEqual(
    [await fixture.state(id), (await fixture.read(id)).payments[0]?.status],
    ['Processing', 'held'],
  )
  fixture.pass(60)
  await fixture.settle()
  assert.equal(await fixture.state(id), 'Processing')
  fixture.risks.clear()
  await fixture.unfreeze('USDT_ETH', '0x00000000000000000000000000000000000000aa')
  fixture.pass(15)
  await fixture.settle()
  await fixture.settle()
  assert.deepEqual(
    [await fixture.state(id), (await fixture.read(id)).payments[0]?.status],
    ['Paid', 'confirmed'],
  )
})

test('two concurrent invoices have different addresses, and two tabs of one invoice share one', async () => {
  const fixture = await open()
  const made = await Promise.all(Array.from({ length: 8 }, () => fixture.create(HUNDRED)))
  assert.equal(new Set(made.map(({ address }) => address)).size, 8)
  assert.equal(new Set(made.map(({ inv_id }) => inv_id)).size, 8)
  const { inv_id: id } = await fixture.create({ fiat: 'USD', fiat_amount: 100 })
  const tabs = await Promise.all(Array.from({ length: 6 }, () => fixture.choose(id, 'USDC_ETH')))
  assert.equal(new Set(tabs.map(({ body }) => body.selected?.address)).size, 1)
  const wallets = await fixture.database.query('select 1 from wallet_addresses where label = $1', [
    id,
  ])
  assert.equal(wallets.length, 1)
  await assert.rejects(
    fixture.choose(id, 'BTC'),
    refused('INVALID_REQUEST', /select one of ETH, USDT_ETH, USDC_ETH/),
  )
})

test('a payer may select at most ten assets of one invoice', async () => {
  const fixture = await open()
  const { inv_id: id } = await fixture.create({ fiat: 'USD', fiat_amount: 100 })
  await fixture.database.query(
    `insert into invoice_offers (workspace_id, invoice_id, asset, network, position, amount,
      confirmations, address)
     select (select workspace_id from invoices where id = $1), $1, name, 'X', 100 + n, 1, 0,
       'x' || n from unnest($2::text[]) with ordinality as a(name, n)`,
    [
      id,
      registry.assets
        .filter(({ network }) => network !== 'ETH')
        .slice(0, CHOICES_MAX - 1)
        .map(({ asset_name }) => asset_name),
    ],
  )
  await fixture.choose(id, 'USDT_ETH')
  await assert.rejects(
    fixture.choose(id, 'ETH'),
    refused('INVOICE_CLOSED', /10 assets were already selected/),
  )
  assert.ok(
    (await fixture.choose(id, 'USDT_ETH')).body.selected,
    'what was chosen before is not refused',
  )
})

test('settings apply to new invoices, and list the sites that may frame the checkout', async () => {
  const fixture = await open()
  const { inv_id: before } = await fixture.create(HUNDRED)
  assert.deepEqual(
    [
      await frameAncestors(fixture.services, before),
      await frameAncestors(fixture.services, 'inv_x'),
    ],
    [[], null],
  )
  const saved = {
    display_name: 'Hats Ltd',
    allowed_origins: ['https://shop.example', 'http://127.0.0.1:3000'],
    tolerance: 1,
    expires_in: 60,
  }
  await fixture.ask(saveInvoiceSettings, saved)
  const { inv_id: id, expiry, created_at, tolerance } = await fixture.create(HUNDRED)
  assert.deepEqual(
    [Date.parse(expiry as string) - Date.parse(created_at as string), tolerance],
    [60_000, '1'],
  )
  assert.equal(
    (await fixture.ask<{ merchant: string }>(readCheckout, {}, { inv_id: id })).body.merchant,
    'Hats Ltd',
  )
  assert.deepEqual(await frameAncestors(fixture.services, before), saved.allowed_origins)
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
    await assert.rejects(fixture.ask(saveInvoiceSettings, bad), refused('INVALID_REQUEST', field))
})

test('an invalid invoice is refused with the invalid field, and nothing is created', async () => {
  const fixture = await open()
  const made = () =>
    fixture.database.query('select 1 from invoices union all select 1 from wallet_addresses')
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
    await assert.rejects(fixture.create(body), refused(code, message), JSON.stringify(body))
  assert.equal((await made()).length, 0)
})

test('an asset without a price is refused with 503 by name; without `assets`, priced ones are offered', async () => {
  const fixture = await open()
  fixture.stale.add('ETH')
  await assert.rejects(
    fixture.create({ ...HUNDRED, assets: ['USDT_ETH', 'ETH'] }),
    refused(
      'PRICE_UNAVAILABLE',
      /^assets: there is no current price of ETH, and stale prices are not used; try again/,
    ),
  )
  const { inv_id: id, assets } = await fixture.create({ fiat: 'USD', fiat_amount: 100 })
  assert.deepEqual(
    assets.map(({ asset }) => asset),
    ['USDT_ETH', 'USDC_ETH'],
  )
  for (const coin of ['USDT', 'USDC']) fixture.prices.delete(coin)
  await assert.rejects(
    fixture.create({ fiat: 'USD', fiat_amount: 100 }),
    refused('PRICE_UNAVAILABLE', /no current price/),
  )
  assert.equal(
    (await fixture.create({ asset: 'USDT_ETH', amount: 5 })).crypto_amount,
    '5',
    'what is asked for in coin needs none',
  )
  await fixture.choose(id, 'USDT_ETH')
  const { crypto_amount, address } = await fixture.read(id)
  assert.equal(crypto_amount, '100', 'a rate that is locked is not asked for again')
  fixture.pay({ address, asset: 'USDT_ETH', amount: USDT(100) })
  fixture.chain.bury()
  await fixture.settle()
  assert.equal(await fixture.state(id), 'Paid')
})

test('a payment made while no scanner ran is in time, whenever it is found', async () => {
  const fixture = await open()
  const { inv_id: id, address } = await fixture.create(HUNDRED)
  await fixture.settle()
  // The chain advances while the platform is stopped, and the invoice expires in this time.
  fixture.pass(20)
  fixture.pay({ address, asset: 'USDT_ETH', amount: USDT(100) })
  fixture.chain.bury()
  fixture.pass(60)
  await fixture.look()
  assert.equal(await fixture.state(id), 'Expired')
  await fixture.settle()
  assert.equal(await fixture.state(id), 'Paid')
})

test('if a process ends at any point, the next one processes the due invoices', async () => {
  const fixture = await open()
  const { inv_id: id, address } = await fixture.create({ ...HUNDRED, sequence_id: 'one' })
  for (const place of ['scan.block', 'deposit.deep', 'deposit.credited']) {
    if (place === 'scan.block') fixture.pay({ address, asset: 'USDT_ETH', amount: USDT(100) })
    else fixture.chain.bury()
    fixture.crashAt = place
    await fixture
      .settle()
      .catch((error: Error) => assert.equal(error.message, 'the process ended here'))
    fixture.crashAt = null
  }
  await fixture.settle()
  assert.equal(await fixture.state(id), 'Paid')
  fixture.crashAt = 'invoice.created'
  await fixture.create({ ...HUNDRED, sequence_id: 'two' }).then(
    ({ sequence_id }) =>
      assert.equal(sequence_id, 'two', 'the answer was lost, and the invoice is there'),
    () => undefined,
  )
  const { body, headers } = await fixture.ask(createInvoice, { ...HUNDRED, sequence_id: 'two' })
  assert.equal(headers['idempotent-replayed'], 'true')
  assert.equal(
    (await fixture.database.query(`select 1 from invoices where sequence_id = 'two'`)).length,
    1,
  )
  assert.equal(body.inv_status, 'Pending')
})

test('a check that fails at any statement is repeated, and each change is reported once', async () => {
  const fixture = await open()
  const { database: real } = fixture.services
  const { inv_id: id, address } = await fixture.create(HUNDRED)
  fixture.pay({ address, asset: 'USDT_ETH', amount: USDT(100) })
  await fixture.scan()
  let dead = 0
  for (let last = 1, died = true; died; last++) {
    died = false
    let statement = 0
    const orDie = <T>(ask: () => Promise<T>): Promise<T> => {
      if (++statement !== last) return ask()
      died = true
      return Promise.reject(new Error('the connection is gone'))
    }
    // The database rolls back the earlier statements of the transaction.
    fixture.services.database = {
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
    await fixture.look()
    if (died) {
      dead++
      assert.equal(await fixture.state(id), 'Pending')
      fixture.pass(1 / 5)
    }
  }
  fixture.services.database = real
  assert.ok(dead >= 6, `${dead} statements`)
  assert.deepEqual(
    [await fixture.state(id), await fixture.events(id)],
    ['Processing', ['created', 'processing']],
  )
  fixture.chain.bury()
  await fixture.scan()
  await fixture.scan()
  await fixture.step()
  await Promise.all([fixture.look(), fixture.look(), fixture.look()])
  assert.deepEqual(
    [await fixture.state(id), await fixture.events(id)],
    ['Paid', ['created', 'processing', 'paid']],
  )
})

test('concurrent requests with one sequence_id create one invoice, and another payload warns', async () => {
  const fixture = await open()
  const response = await Promise.all(
    Array.from({ length: 5 }, () => fixture.ask(createInvoice, { ...HUNDRED, sequence_id: 's' })),
  )
  assert.equal(new Set(response.map(({ body }) => body.inv_id)).size, 1)
  assert.equal(
    (await fixture.database.query('select 1 from wallet_addresses where label is not null')).length,
    1,
    'no address is spent on a replay',
  )
  const other = await fixture.ask(createInvoice, { ...HUNDRED, fiat_amount: 7, sequence_id: 's' })
  assert.match(other.headers['warning'] ?? '', /another payload/)
  assert.equal(other.body.crypto_amount, '100')
})

test('a large payment needs more confirmations before its invoice is Paid', async () => {
  const fixture = await open()
  await fixture.ask(saveInvoiceSettings, {
    confirmations: [
      { from_usd: 0, confirmations: 0 },
      { from_usd: 500.5, confirmations: DEPTH + 3 },
    ],
  })
  const [small, large] = [
    await fixture.create(HUNDRED),
    await fixture.create({ ...HUNDRED, fiat_amount: 1000 }),
  ]
  fixture.pay(
    { address: small.address, asset: 'USDT_ETH', amount: USDT(100) },
    { address: large.address, asset: 'USDT_ETH', amount: USDT(1000) },
  )
  fixture.chain.bury()
  await fixture.settle()
  const [deposit] = (await fixture.deposits()).filter(
    ({ destination_id }) => destination_id === large.address,
  )
  assert.equal(deposit?.state, 'CREDITED')
  assert.deepEqual(
    [await fixture.state(small.inv_id), await fixture.state(large.inv_id)],
    ['Paid', 'Processing'],
  )
  fixture.chain.bury()
  await fixture.settle()
  assert.deepEqual(
    await fixture
      .read(large.inv_id)
      .then(({ inv_status, payments: [one] }) => [inv_status, one?.confirmations, one?.required]),
    ['Paid', '5', '5'],
  )
})

test('an idle platform writes nothing', async () => {
  const fixture = await open()
  const { inv_id: id } = await fixture.create(HUNDRED)
  await fixture.settle()
  const row = () =>
    fixture.database.one('select xmin::text, ctid::text from invoices where id = $1', [id])
  const before = await row()
  for (let count = 0; count < 5; count++) await fixture.settle()
  assert.deepEqual(await row(), before)
  fixture.pass(30)
  await fixture.look()
  const expired = await row()
  for (let count = 0; count < 5; count++) await fixture.look()
  assert.deepEqual([await fixture.state(id), await row()], ['Expired', expired])
})

test('all of 1,000 invoices paid in one block become Paid', async (t) => {
  const fixture = await open()
  await fixture.create(HUNDRED)
  // Creates copies of the invoice that the API created; deriving 1,000 keys would test nothing
  // here.
  for (const statement of [
    `insert into chain_addresses (network, address, workspace_id, sub_account_id, path_index, kind)
     select network, '0xpaid' || n, workspace_id, sub_account_id, 1000 + n, kind
       from chain_addresses, generate_series(2, 1000) n where kind = 'deposit'`,
    `insert into invoices select (i).*
      from (select jsonb_populate_record(i,
      jsonb_build_object('id', 'inv_' || lpad(to_hex(n), 32, '0'))) i
     from invoices i, generate_series(2, 1000) n) rows`,
    `insert into invoice_offers select (o).* from (select jsonb_populate_record(o,
       jsonb_build_object('invoice_id', 'inv_' || lpad(to_hex(n), 32, '0'), 'address',
         '0xpaid' || n)) o
     from invoice_offers o, generate_series(2, 1000) n) rows`,
  ])
    await fixture.database.query(statement)
  const made = await fixture.database.query<{ address: string }>(
    'select address from invoice_offers',
  )
  assert.equal(new Set(made.map(({ address }) => address)).size, 1000)
  fixture.pay(...made.map(({ address }) => ({ address, asset: 'USDT_ETH', amount: USDT(100) })))
  const counted = async (status: string) =>
    Number(
      (
        await fixture.database.one<{ n: string }>(
          'select count(*)::text n from invoices where status = $1 and exception is null',
          [status],
        )
      )?.n,
    )
  let began = performance.now()
  await fixture.scan()
  const scanned = performance.now() - began
  began = performance.now()
  await fixture.look()
  const looked = performance.now() - began
  assert.equal(await counted('Processing'), 1000)
  // Crediting is the same for every deposit and is not part of an invoice's work, so all deposits
  // but the last are marked as credited.
  await fixture.database.query(
    `update transactions set state = 'CREDITED', status = 'confirmed' where kind = 'DEPOSIT'
      and id <> (select max(id::text)::uuid from transactions)`,
  )
  await fixture.database.query('update invoices set due_at = $1', [new Date(fixture.now)])
  fixture.chain.bury()
  await fixture.scan()
  await fixture.scan()
  await fixture.step()
  began = performance.now()
  await fixture.look()
  const paid = performance.now() - began
  assert.equal(await counted('Paid'), 1000)
  assert.equal(
    (await fixture.database.query(`select 1 from events where type = 'invoice.paid'`)).length,
    1000,
  )
  t.diagnostic(
    `scan ${scanned.toFixed()} ms, to Processing ${looked.toFixed()} ms, to Paid ${paid.toFixed()} ms`,
  )
})

test('a payer reads only their own invoice, and another tenant’s key reads none', async () => {
  const fixture = await open()
  const { inv_id: id } = await fixture.create(HUNDRED)
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
    await assert.rejects(fixture.ask(readCheckout, {}, { inv_id: guess }), missing, guess)
    await assert.rejects(fixture.choose(guess, 'USDT_ETH'), missing, guess)
  }
  const shown = JSON.stringify((await fixture.ask(readCheckout, {}, { inv_id: id })).body)
  for (const secret of [
    fixture.caller.subAccountId,
    fixture.caller.workspaceId,
    'webhook',
    'payer',
    'transaction_id',
  ]) {
    assert.ok(!shown.includes(secret), secret)
  }
  const { caller } = fixture
  fixture.caller = { ...caller, workspaceId: '00000000-0000-4000-8000-000000000000' }
  await assert.rejects(fixture.read(id), refused('FORBIDDEN', /another workspace/))
  fixture.caller = { ...caller, subAccountId: '00000000-0000-4000-8000-000000000000' }
  await assert.rejects(fixture.cancel(id), missing)
})

test('emits every invoice event type', async () => {
  const fixture = await open()
  const [paid, expired, cancelled] = [
    await fixture.create(HUNDRED),
    await fixture.create(HUNDRED),
    await fixture.create(HUNDRED),
  ]
  await fixture.cancel(cancelled.inv_id)
  fixture.pay({ address: paid.address, asset: 'USDT_ETH', amount: USDT(50) })
  await fixture.settle()
  fixture.pay({ address: paid.address, asset: 'USDT_ETH', amount: USDT(50) })
  await fixture.settle()
  fixture.chain.bury()
  await fixture.settle()
  fixture.pass(30)
  await fixture.look()
  assert.deepEqual(
    await Promise.all([paid, expired, cancelled].map(({ inv_id }) => fixture.state(inv_id))),
    ['Paid', 'Expired', 'Invalid'],
  )
  fixture.chain.drop(DEPTH + 1)
  for (let count = 0; count < DEPTH + 2; count++) fixture.chain.mine()
  await fixture.settle()
  assert.equal(await fixture.state(paid.inv_id), 'Expired partial')
})

testEmittedEvents(database.get, [
  'invoice.created',
  'invoice.updated',
  'invoice.processing',
  'invoice.paid',
  'invoice.reverted',
  'invoice.expired',
  'invoice.invalid',
])
