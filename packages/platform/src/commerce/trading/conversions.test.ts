import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { test } from 'node:test'
import * as fc from '../../../../../testing/property.ts'
import { ApiError } from '../../core/errors.ts'
import type { Level, Market } from '../exchanges/venue.ts'
import { convert } from './convert.ts'
import { createConversion } from './create-conversion.ts'
import { quoteConversion } from './quote-conversion.ts'
import { readConversion } from './read-conversion.ts'
import { pauseMethod } from '../../../testing/pausable-method.ts'
import { useDatabase } from '../../../testing/deposits-support.ts'
import { TradingFixture, type Order } from '../../../testing/venues/trading-fixture.ts'

/**
 * Conversions of one coin into another at the best linked account: the calculation from an order
 * book, and orders over the real ccxt.
 */
interface Conversion {
  id: string
  status: string
  receive: string
  limit_price: string
  order_amount: string
  side: string
  market: string
  exchange_account: string
  order: Order | null
  others: { exchange_account: string; receive: string | null; reason: string | null }[]
  [field: string]: unknown
}
let current: TradingFixture | undefined
const database = useDatabase({ migrated: true, now: () => current?.now ?? Date.now() })
const open = async () => {
  await database.admin().query('truncate conversions')
  return (current = new TradingFixture(database.get())).begin()
}
const refused = (code: string, message: RegExp) => (error: unknown) =>
  error instanceof ApiError && error.code === code && (assert.match(error.message, message), true)

const ONE = 10n ** 18n
const market: Market = {
  symbol: 'BTC/USD',
  base: 'BTC',
  quote: 'USD',
  active: true,
  amountStep: ONE / 10_000n,
  priceStep: ONE / 10n,
  amountMin: ONE / 10_000n,
  amountMax: null,
  costMin: null,
  makerFee: 0n,
  takerFee: (ONE * 26n) / 10_000n,
}
const level = (price: number, amount: number): Level => ({
  price: BigInt(price) * ONE,
  amount: BigInt(Math.round(amount * 1e4)) * (ONE / 10_000n),
})

test('sets the limit at the last order book level needed, and deducts the fee from the proceeds', () => {
  const book = {
    symbol: 'BTC/USD',
    at: 0,
    bids: [level(100, 1), level(90, 2)],
    asks: [level(110, 1), level(120, 5)],
  }
  assert.deepEqual(convert(market, book, 'sell', 2n * ONE), {
    side: 'sell',
    amount: 2n * ONE,
    price: 90n * ONE,
    receive: (190n * ONE * 9974n) / 10_000n,
  })
  assert.deepEqual(convert(market, book, 'sell', ONE), {
    side: 'sell',
    amount: ONE,
    price: 100n * ONE,
    receive: (100n * ONE * 9974n) / 10_000n,
  })
  assert.match(convert(market, book, 'sell', 4n * ONE) as string, /too shallow/)
  assert.match(convert(market, { ...book, bids: [] }, 'sell', ONE) as string, /no bids/)
  assert.match(convert(market, book, 'sell', ONE / 100_000n) as string, /too small/)
  const bought = convert(market, book, 'buy', 200n * ONE)
  assert.ok(typeof bought !== 'string' && bought.price === 120n * ONE && bought.amount > ONE)
})

test('for any order book, spends at most the amount with its fee, in whole amount steps', () => {
  const levels = (rising: boolean) =>
    fc
      .array(fc.tuple(fc.integer({ min: 1, max: 500 }), fc.integer({ min: 1, max: 30_000 })), {
        minLength: 1,
        maxLength: 8,
      })
      .map((pairs) =>
        pairs
          .toSorted((a, b) => (rising ? a[0] - b[0] : b[0] - a[0]))
          .map(([price, amount]) => ({
            price: BigInt(price) * ONE,
            amount: BigInt(amount) * (ONE / 10_000n),
          })),
      )
  fc.assert(
    fc.property(
      levels(true),
      levels(false),
      fc.bigInt({ min: 1n, max: 1000n * ONE }),
      fc.constantFrom('buy' as const, 'sell' as const),
      (asks, bids, body, side) => {
        const made = convert(market, { symbol: 'BTC/USD', at: 0, bids, asks }, side, body)
        if (typeof made === 'string') return
        // Recomputes the cost independently, up to the limit price.
        let [left, cost] = [made.amount, 0n]
        for (const each of side === 'sell' ? bids : asks) {
          if (side === 'sell' ? each.price < made.price : each.price > made.price) continue
          const amount = each.amount < left ? each.amount : left
          left -= amount
          cost += (amount * each.price) / ONE
        }
        assert.equal(left, 0n, 'the book holds all of it within the limit')
        assert.equal(made.amount % market.amountStep, 0n)
        if (side === 'sell') assert.ok(made.amount <= body && made.receive <= cost)
        else
          assert.ok(
            cost + (cost * 26n) / 10_000n <= body,
            'what is bought is paid for, fee included',
          )
      },
    ),
    { numRuns: 300 },
  )
})

test('executes a quote once, as one order with the quote’s price limit', async () => {
  const fixture = await open()
  const quote = await fixture.ask<Conversion>(quoteConversion, {
    body: { from_asset: 'USD', to_asset: 'BTC', amount: '6024' },
  })
  assert.deepEqual(
    [quote.status, quote.side, quote.market, quote.limit_price, quote.order],
    ['quoted', 'buy', 'BTC/USD', '60000', null],
  )
  assert.ok(Number(quote.order_amount) > 0.0999 && Number(quote.order_amount) <= 0.1004)
  const [one, other] = await Promise.all(
    [0, 1].map(() => fixture.ask<Conversion>(createConversion, { body: { quote: quote.id } })),
  )
  assert.equal(one?.order?.id, other?.order?.id)
  await fixture.pass(2)
  const done = await fixture.ask<Conversion>(readConversion, { params: { id: quote.id } })
  assert.deepEqual(
    [done.status, done.order?.status, done.order?.['time_in_force'], fixture.kraken.adds.length],
    ['ordered', 'filled', 'IOC', 1],
  )
  const spent = Number(done.order?.cost) + Number(done.order?.fees[0]?.amount)
  assert.ok(spent <= 6024 && spent > 5990, String(spent))
})

test('a zero amount is refused with a code that the document lists for quotes and conversions', async () => {
  const fixture = await open()
  const refusal = fixture.ask<Conversion>(quoteConversion, {
    body: { from_asset: 'USD', to_asset: 'BTC', amount: '0' },
  })
  await assert.rejects(refusal, { code: 'INVALID_AMOUNT' })
  for (const { errors } of [quoteConversion, createConversion])
    assert.ok(errors?.includes('INVALID_AMOUNT'))
})

test('refuses an expired quote, and executes a quote only within its price limit', async () => {
  const fixture = await open()
  const quote = await fixture.ask<Conversion>(quoteConversion, {
    body: { from_asset: 'BTC', to_asset: 'USD', amount: '0.5' },
  })
  fixture.now += 10_001
  await assert.rejects(
    fixture.ask(createConversion, { body: { quote: quote.id } }),
    refused('QUOTE_EXPIRED', /^quote: /),
  )
  assert.equal(
    (await fixture.ask<Conversion>(readConversion, { params: { id: quote.id } })).status,
    'expired',
  )
  const next = await fixture.ask<Conversion>(quoteConversion, {
    body: { from_asset: 'BTC', to_asset: 'USD', amount: '0.5' },
  })
  fixture.kraken.bid = { price: 50_000, volume: 1000 }
  await fixture.ask(createConversion, { body: { quote: next.id } })
  await fixture.pass(4)
  const { order } = await fixture.ask<Conversion>(readConversion, { params: { id: next.id } })
  assert.deepEqual([order?.status, order?.filled], ['cancelled', '0'])
})

test('a repeated conversion with another payload returns the first one and creates nothing', async () => {
  const fixture = await open()
  const body = { from_asset: 'BTC', to_asset: 'USD', amount: '0.25', sequence_id: 'c1' }
  const first = await fixture.ask<Conversion>(createConversion, { body })
  const again = await fixture.ask<Conversion>(createConversion, {
    body: { ...body, amount: '0.5' },
  })
  assert.deepEqual([again.id, again.order?.id], [first.id, first.order?.id])
  await fixture.pass(2)
  assert.equal(fixture.kraken.adds.length, 1)
})

test('if a conversion is refused while an identical request waits, both requests are refused', async () => {
  const fixture = await open()
  const caller = await fixture.tenant('poor', 0)
  await fixture.link({ api_key: 'other' }, caller)
  await fixture.reconcile()
  const quoteBody = { from_asset: 'BTC', to_asset: 'USD', amount: '0.25' }
  const { id } = await fixture.ask<Conversion>(quoteConversion, { body: quoteBody, caller })
  for (const body of [{ ...quoteBody, sequence_id: 'c1' }, { quote: id }]) {
    const ask = () => fixture.ask<Conversion>(createConversion, { body, caller })
    const pausePoint = pauseMethod(fixture.services.exchanges, 'markets')
    const waits = ask()
    await pausePoint.reached
    const poor = refused('PREPAID_FEE_EXHAUSTED', /less than the platform fee/)
    await assert.rejects(ask(), poor)
    await fixture.database.query('select prepaid_adjust($1, $2, $3, 0)', [
      caller.workspaceId,
      randomUUID(),
      '100000000',
    ])
    pausePoint.open()
    await assert.rejects(waits, poor)
    assert.deepEqual(
      await fixture.database.query('select 1 from orders where state <> $1', ['ENDED']),
      [],
    )
    const taken = await ask()
    await fixture.pass(2)
    assert.deepEqual(await ask(), taken)
    const left = await fixture.database.one<{ balance: string }>(
      'select prepaid_balance($1)::text balance',
      [caller.workspaceId],
    )
    await fixture.database.query('select prepaid_adjust($1, $2, $3, 0)', [
      caller.workspaceId,
      randomUUID(),
      `-${left?.balance}`,
    ])
  }
})

test('an impossible conversion returns, for each account of the tenant, why it is not possible', async () => {
  const fixture = await open()
  const ask = (body: Record<string, unknown>) => fixture.ask<Conversion>(quoteConversion, { body })
  for (const [body, code, message] of [
    [
      { from_asset: 'BTC', to_asset: 'btc', amount: '1' },
      'INVALID_REQUEST',
      /^to_asset: must differ from from_asset; both are BTC/,
    ],
    [{ from_asset: 'BTC', to_asset: 'USD', amount: '0' }, 'INVALID_AMOUNT', /^amount: /],
    [
      { from_asset: 'BTC', to_asset: 'USD', amount: '11' },
      'CONVERSION_UNAVAILABLE',
      /main \(kraken\): has 10 BTC/,
    ],
    [
      { from_asset: 'BTC', to_asset: 'XYZ', amount: '1' },
      'CONVERSION_UNAVAILABLE',
      /kraken has no market of BTC and XYZ/,
    ],
    [
      { from_asset: 'BTC', to_asset: 'USD', amount: '0.00000001' },
      'CONVERSION_UNAVAILABLE',
      /too small/,
    ],
    [
      { from_asset: 'BTC', to_asset: 'USD', amount: '1', accounts: ['x'] },
      'NOT_FOUND',
      /^accounts: /,
    ],
  ] as const)
    await assert.rejects(ask(body), refused(code, message), JSON.stringify(body))
  fixture.kraken.bid = { price: 1, volume: 0 }
  // Public responses are cached for a few seconds.
  fixture.now += 5000
  await assert.rejects(
    ask({ from_asset: 'BTC', to_asset: 'USD', amount: '1' }),
    refused('CONVERSION_UNAVAILABLE', /no bids/),
  )
  fixture.kraken.bid = { price: 59_990, volume: 1000 }
  fixture.now += 5000
  const { id } = await ask({ from_asset: 'BTC', to_asset: 'USD', amount: '1' })
  await assert.rejects(
    fixture.ask(createConversion, { body: { quote: id, amount: '2' } }),
    refused('INVALID_REQUEST', /^amount: must be omitted, because the quote fixes it/),
  )
  await assert.rejects(
    fixture.ask(createConversion, { body: { from_asset: 'BTC' } }),
    refused('INVALID_REQUEST', /^to_asset: is required/),
  )
  const stranger = await fixture.tenant('two')
  await assert.rejects(
    fixture.ask(readConversion, { params: { id }, caller: stranger }),
    refused('NOT_FOUND', /conversion .* does not exist/),
  )
  await assert.rejects(
    fixture.ask(createConversion, { body: { quote: id }, caller: stranger }),
    refused('NOT_FOUND', /conversion .* does not exist/),
  )
  await assert.rejects(
    fixture.ask(quoteConversion, {
      body: { from_asset: 'BTC', to_asset: 'USD', amount: '1' },
      caller: stranger,
    }),
    refused('INVALID_REQUEST', /no exchange account is linked/),
  )
})
