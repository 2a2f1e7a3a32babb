// The matching engine compared with a model that examines every order each time; the total of all
// balances must stay constant.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as fc from '../../../../testing/property.ts'
import { Engine } from './engine/engine.ts'
import { costOf, quoted, type Market, type VenueRules } from './engine/markets.ts'
import { padded, readDecimal, trimmed } from './engine/numbers.ts'
import { Refused, type Account, type Order, type Side, type OrderParams } from './engine/types.ts'

const BTC = { ticker: 'BTC', decimals: 8 }
const USD = { ticker: 'USD', decimals: 4 }
const MARKET: Market = {
  id: 'BTCUSD',
  base: BTC,
  quote: USD,
  priceDecimals: 1,
  lotDecimals: 8,
  minVolume: 1n,
  minCost: 1n,
}
const RULES: VenueRules = {
  takerBps: 40n,
  makerBps: 25n,
  markets: [MARKET],
  coins: new Map([
    ['BTC', BTC],
    ['USD', USD],
  ]),
}
const RICH = { BTC: 10n ** 12n, USD: 10n ** 14n }

/** @param price reference price of the market maker; null: there is no market maker */
function engineAt(
  price: { usd: bigint | null; ms: number },
  funds: Record<string, bigint> = RICH,
  accounts = 3,
): Engine {
  const engine = new Engine({
    rules: RULES,
    now: () => price.ms,
    name: (kind, number) => `${kind}${number}`,
    priceOf: (coin) => (coin === 'BTC' && price.usd !== null ? price.usd * 10n ** 12n : undefined),
  })
  for (let number = 1; number <= accounts; number += 1) {
    const account: Account = { id: `A${number}`, number, balances: {}, createdMs: 0 }
    for (const [coin, total] of Object.entries(funds)) account.balances[coin] = { total, held: 0n }
    engine.accounts.set(account.id, account)
  }
  return engine
}

const orderParams = (
  side: Side,
  price: bigint | null,
  volume: bigint,
  more: Partial<OrderParams> = {},
): OrderParams => ({
  side,
  price,
  volume,
  spend: null,
  timeInForce: 'GTC',
  postOnly: false,
  clientId: null,
  userref: null,
  feeIn: 'quote',
  ...more,
})
const place = (engine: Engine, account: string, wanted: OrderParams): Order =>
  engine.place(engine.accounts.get(account)!, MARKET, wanted)
const refusal = (work: () => unknown): string => {
  try {
    work()
  } catch (error) {
    if (error instanceof Refused) return error.refusal
    throw error
  }
  return 'taken'
}

/** Returns the sum of a coin over all accounts. */
function sumOf(engine: Engine, coin: string): bigint {
  const owned = [...engine.accounts.values()].reduce(
    (sum, { balances }) => sum + (balances[coin]?.total ?? 0n),
    0n,
  )
  return owned + (engine.marketMaker[coin] ?? 0n) + (engine.collected[coin] ?? 0n)
}

test('reads and writes decimals exactly, and refuses invalid or too precise ones', () => {
  assert.deepEqual(
    ['1.5', '0', '1.', '0.00000001', '1.500000000'].map((text) => readDecimal(text, 8)),
    [150_000_000n, 0n, 100_000_000n, 1n, 150_000_000n],
  )
  for (const text of ['', '.5', '-1', '1e3', '0.000000001', ' 1', '1,5'])
    assert.equal(readDecimal(text, 8), null, text)
  assert.deepEqual(
    [
      padded(150_000_000n, 8),
      trimmed(150_000_000n, 8),
      padded(7n, 0),
      trimmed(100n, 2),
      padded(-5n, 2),
    ],
    ['1.50000000', '1.5', '7', '1', '-0.05'],
  )
})

test('matches the better price first, then the older order, at the maker’s price', () => {
  const engine = engineAt({ usd: null, ms: 0 })
  const [worse, first, second] = [
    place(engine, 'A1', orderParams('sell', 600_010n, 100n)),
    place(engine, 'A1', orderParams('sell', 600_000n, 100n)),
    place(engine, 'A2', orderParams('sell', 600_000n, 100n)),
  ]
  const taker = place(engine, 'A3', orderParams('buy', 600_020n, 250n))
  assert.deepEqual([first.filled, second.filled, worse.filled], [100n, 100n, 50n])
  assert.deepEqual(
    taker.trades.map((id) => engine.trades.get(id)!.price),
    [600_000n, 600_000n, 600_010n],
  )
  assert.deepEqual([taker.status, worse.status, first.status], ['filled', 'open', 'filled'])
  assert.deepEqual(
    [...engine.trades.values()].map(({ isMaker }) => isMaker),
    [false, true, false, true, false, true],
  )
})

test('an order that matches an order of the same account cancels the newer order', () => {
  const engine = engineAt({ usd: null, ms: 0 })
  place(engine, 'A2', orderParams('sell', 599_000n, 40n))
  const own = place(engine, 'A1', orderParams('sell', 600_000n, 100n))
  const taker = place(engine, 'A1', orderParams('buy', 600_000n, 100n))
  assert.deepEqual(
    [own.filled, taker.filled, taker.status, taker.ending],
    [0n, 40n, 'cancelled', 'own-order'],
  )
})

test('IOC fills what is available, FOK all or nothing, and post-only orders never take', () => {
  const engine = engineAt({ usd: null, ms: 0 })
  place(engine, 'A1', orderParams('sell', 600_000n, 100n))
  const killed = place(engine, 'A2', orderParams('buy', 600_000n, 101n, { timeInForce: 'FOK' }))
  assert.deepEqual([killed.status, killed.ending, killed.filled], ['cancelled', 'unfilled', 0n])
  assert.equal(
    refusal(() => place(engine, 'A2', orderParams('buy', 600_000n, 10n, { postOnly: true }))),
    'post-only',
  )
  const resting = place(engine, 'A2', orderParams('buy', 599_999n, 10n, { postOnly: true }))
  assert.equal(resting.status, 'open')
  const part = place(engine, 'A3', orderParams('buy', 600_000n, 130n, { timeInForce: 'IOC' }))
  assert.deepEqual([part.status, part.ending, part.filled], ['cancelled', 'unfilled', 100n])
  assert.equal(
    place(engine, 'A3', orderParams('sell', 599_999n, 10n, { timeInForce: 'FOK' })).status,
    'filled',
  )
  // There is no counterparty left.
  assert.deepEqual(place(engine, 'A3', orderParams('buy', null, 10n)).status, 'cancelled')
})

test('holds the maximum cost of an open order and releases the unused part', () => {
  const engine = engineAt({ usd: null, ms: 0 }, { USD: 1_000_0000n, BTC: 0n })
  const order = place(engine, 'A1', orderParams('buy', 100_000n, 5_000_000n))
  // 0.05 at 10,000 is 500, and 0.4 % of it 2.
  assert.deepEqual(engine.accounts.get('A1')!.balances['USD'], {
    total: 1_000_0000n,
    held: 502_0000n,
  })
  assert.equal(
    refusal(() => place(engine, 'A1', orderParams('buy', 100_000n, 5_000_000n))),
    'funds',
  )
  assert.equal(
    refusal(() => place(engine, 'A1', orderParams('sell', 100_000n, 1n))),
    'funds',
  )
  engine.move('A2', 'BTC', 2_000_000n, 0n)
  place(engine, 'A2', orderParams('sell', 100_000n, 2_000_000n))
  // 200 paid, 0.25 % of it as a maker, and 300 with 1.20 still held.
  assert.deepEqual(engine.accounts.get('A1')!.balances['USD'], {
    total: 799_5000n,
    held: 301_2000n,
  })
  engine.cancel(order)
  assert.deepEqual([order.status, order.filled], ['cancelled', 2_000_000n])
  assert.deepEqual(engine.accounts.get('A1')!.balances['USD'], { total: 799_5000n, held: 0n })
  engine.cancel(order)
  assert.equal(engine.accounts.get('A1')!.balances['USD']!.held, 0n)
})

test('a client order id is unique among open orders only', () => {
  const engine = engineAt({ usd: null, ms: 0 })
  const first = place(engine, 'A1', orderParams('buy', 100n, 10n, { clientId: 'x' }))
  assert.equal(
    refusal(() => place(engine, 'A1', orderParams('buy', 100n, 10n, { clientId: 'x' }))),
    'client-id',
  )
  assert.equal(place(engine, 'A2', orderParams('buy', 100n, 10n, { clientId: 'x' })).status, 'open')
  engine.cancel(first)
  assert.equal(place(engine, 'A1', orderParams('buy', 100n, 10n, { clientId: 'x' })).status, 'open')
})

test('the market maker fills usual orders immediately, and moves its price for large ones', () => {
  const price = { usd: 60_000n, ms: 0 }
  const engine = engineAt(price)
  const small = place(engine, 'A1', orderParams('buy', null, 1_000_000n))
  assert.deepEqual(
    [small.status, small.trades.length, engine.trades.get(small.trades[0]!)!.price],
    ['filled', 1, 600_060n],
  )
  const large = place(engine, 'A1', orderParams('buy', null, 300_000_000n))
  assert.ok(large.status === 'filled' && large.trades.length > 3)
  const prices = large.trades.map((id) => engine.trades.get(id)!.price)
  assert.deepEqual(
    prices,
    prices.toSorted((a, b) => Number(a - b)),
  )
  assert.equal(place(engine, 'A1', orderParams('buy', null, 10n ** 11n)).status, 'cancelled')
  // The market maker's orders are filled; it places new ones a second later.
  assert.equal(engine.depth(MARKET, 'sell').length, 0)
  price.ms += 1000
  assert.equal(engine.depth(MARKET, 'sell').length, 10)
  const resting = place(engine, 'A2', orderParams('buy', 580_000n, 1_000_000n))
  assert.equal(resting.status, 'open')
  price.usd = 57_900n
  engine.refresh()
  const { price: at, isMaker } = engine.trades.get(resting.trades[0]!)!
  assert.deepEqual([resting.status, at, isMaker], ['filled', 580_000n, true])
  assert.equal(
    place(engine, 'A2', orderParams('buy', null, 0n, { volume: null, spend: 1_000_0000n })).status,
    'filled',
  )
})

test('the market maker quotes the local prices at the tick size of the market', () => {
  const priceOf = (coin: string) => ({ BTC: 60_000n * 10n ** 12n, ETH: 3_000n * 10n ** 12n })[coin]
  const cross: Market = {
    ...MARKET,
    base: { ticker: 'ETH', decimals: 8 },
    quote: BTC,
    priceDecimals: 5,
  }
  assert.deepEqual(
    [quoted(MARKET, priceOf, 100n, true), quoted(MARKET, priceOf, -100n, false)],
    [600_060n, 599_940n],
  )
  assert.deepEqual(
    [quoted(cross, priceOf, 100n, true), quoted(cross, priceOf, -100n, false)],
    [5001n, 4999n],
  )
  assert.equal(
    quoted(cross, () => undefined, 0n, true),
    null,
  )
})

interface Step {
  act: 'place' | 'cancel' | 'price'
  account: number
  wanted: OrderParams
  at: number
}
const orderArbitrary = fc
  .record({
    side: fc.constantFrom<Side>('buy', 'sell'),
    price: fc.option(fc.bigInt({ min: 90n, max: 110n }), { freq: 6 }),
    volume: fc.bigInt({ min: 1n, max: 10n ** 8n }),
    spends: fc.integer({ min: 0, max: 4 }),
    timeInForce: fc.constantFrom('GTC' as const, 'GTC' as const, 'IOC' as const, 'FOK' as const),
    postOnly: fc.integer({ min: 0, max: 5 }).map((dice) => dice === 0),
    feeIn: fc.constantFrom('base' as const, 'quote' as const),
  })
  .map(({ spends, ...each }): OrderParams => {
    const isSpending = each.price === null && spends === 0
    return {
      ...each,
      clientId: null,
      userref: null,
      volume: isSpending ? null : each.volume,
      spend: isSpending ? each.volume / 1000n + 1n : null,
      postOnly: each.postOnly && each.price !== null && each.timeInForce === 'GTC',
    }
  })
const aStep: fc.Arbitrary<Step> = fc.record({
  act: fc.constantFrom('place', 'place', 'place', 'place', 'cancel', 'price'),
  account: fc.integer({ min: 1, max: 3 }),
  wanted: orderArbitrary,
  at: fc.nat(1000),
})
const FEW = { BTC: 3n * 10n ** 8n, USD: 40n * 10n ** 4n }

test('any sequence of actions conserves money, and holds the maximum cost of open orders', () => {
  fc.assert(
    fc.property(fc.array(aStep, { maxLength: 60 }), fc.boolean(), (steps, hasHouse) => {
      const price = { usd: hasHouse ? 10n : null, ms: 0 }
      const engine = engineAt(price, FEW)
      const ids: string[] = []
      for (const { act, account, wanted, at } of steps) {
        price.ms += at
        if (act === 'place') refusal(() => ids.push(place(engine, `A${account}`, wanted).id))
        if (act === 'cancel' && ids.length > 0)
          engine.cancel(engine.orders.get(ids[at % ids.length]!)!)
        if (act === 'price' && hasHouse) price.usd = BigInt(8 + (at % 5))
        if (act === 'price') engine.refresh()
        for (const coin of ['BTC', 'USD'] as const)
          assert.equal(sumOf(engine, coin), 3n * FEW[coin])
        for (const { id, balances } of engine.accounts.values()) {
          for (const { total, held } of Object.values(balances))
            assert.ok(held >= 0n && total >= held)
          const rests = engine.openOrders(id)
          if (rests.length === 0)
            assert.ok(Object.values(balances).every(({ held }) => held === 0n))
          const sold = rests
            .filter(({ side }) => side === 'sell')
            .reduce((sum, { volume, filled }) => sum + volume! - filled, 0n)
          assert.equal(balances['BTC']!.held, sold)
        }
      }
      for (const order of engine.orders.values()) {
        const trades = order.trades.map((id) => engine.trades.get(id)!)
        assert.equal(
          trades.reduce((sum, { volume }) => sum + volume, 0n),
          order.filled,
        )
        assert.equal(
          trades.reduce((sum, { cost }) => sum + cost, 0n),
          order.cost,
        )
        if (order.price !== null)
          assert.ok(
            trades.every(({ price: at }) =>
              order.side === 'buy' ? at <= order.price! : at >= order.price!,
            ),
          )
      }
    }),
    { numRuns: 1000 },
  )
})

test('without a market maker, fills equal those of a reference model', () => {
  fc.assert(
    fc.property(fc.array(aStep, { maxLength: 50 }), (steps) => {
      const engine = engineAt({ usd: null, ms: 0 })
      const open: { id: string; account: string; side: Side; price: bigint; rest: bigint }[] = []
      for (const { act, account, wanted, at } of steps) {
        if (act === 'cancel' && open.length > 0) {
          const [gone] = open.splice(at % open.length, 1)
          engine.cancel(engine.orders.get(gone!.id)!)
        }
        if (act !== 'place' || wanted.spend !== null) continue
        const name = `A${account}`
        const fits = (other: bigint) =>
          wanted.price === null ||
          (wanted.side === 'buy' ? other <= wanted.price : other >= wanted.price)
        const model = open.map((each) => ({ ...each }))
        const expected: [string, bigint, bigint][] = []
        let [rest, isOwnMet] = [wanted.volume!, false]
        while (rest > 0n) {
          // Among equal prices the oldest order comes first; `open` has this order.
          const best = model
            .filter((each) => each.side !== wanted.side && each.rest > 0n && fits(each.price))
            .reduce<(typeof model)[number] | null>(
              (top, each) =>
                top === null ||
                (wanted.side === 'buy' ? each.price < top.price : each.price > top.price)
                  ? each
                  : top,
              null,
            )
          if (!best) break
          isOwnMet = best.account === name
          if (isOwnMet) break
          const volume = best.rest < rest ? best.rest : rest
          expected.push([best.id, best.price, volume])
          best.rest -= volume
          rest -= volume
        }
        const isRefused = wanted.postOnly && (expected.length > 0 || isOwnMet)
        const isKilled = wanted.timeInForce === 'FOK' && rest > 0n
        const existing = new Set(engine.trades.keys())
        let order: Order | undefined
        const said = refusal(() => (order = place(engine, name, wanted)))
        assert.equal(said, isRefused ? 'post-only' : 'taken')
        const makers = [...engine.trades.values()].filter(
          ({ id, isMaker }) => isMaker && !existing.has(id),
        )
        assert.deepEqual(
          makers.map(({ order: maker, price, volume }) => [maker, price, volume]),
          isRefused || isKilled ? [] : expected,
        )
        assert.ok(makers.every(({ price, volume, cost }) => cost === costOf(MARKET, price, volume)))
        if (isRefused || isKilled) continue
        for (const [id, , volume] of expected) open.find((each) => each.id === id)!.rest -= volume
        open.splice(0, open.length, ...open.filter((each) => each.rest > 0n))
        const isResting =
          rest > 0n && wanted.price !== null && wanted.timeInForce === 'GTC' && !isOwnMet
        assert.equal(order!.status, rest === 0n ? 'filled' : isResting ? 'open' : 'cancelled')
        if (isResting)
          open.push({ id: order!.id, account: name, side: wanted.side, price: wanted.price!, rest })
      }
    }),
    { numRuns: 1000 },
  )
})
