import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as fc from '../../../../../testing/property.ts'
import { useDatabase } from '../../../testing/deposits-support.ts'
import { wrongEvents } from '../../../testing/event-assertions.ts'
import { TradingFixture } from '../../../testing/venues/trading-fixture.ts'

/**
 * Tests that for any behaviour of a venue and a process, each order is sent at most once, and that
 * the earlier balance plus the trades equals the final balance.
 */
let current: TradingFixture | undefined
const database = useDatabase({ migrated: true, now: () => current?.now ?? Date.now() })

const DEATHS = [
  'order.created',
  'order.sending',
  'order.answered',
  'order.unknown',
  'order.placed',
  'order.written',
  'order.ended',
  'exchange-account.reconciled',
] as const
const act = fc.oneof(
  {
    weight: 5,
    arbitrary: fc.record({
      kind: fc.constant('order' as const),
      side: fc.constantFrom('buy', 'sell'),
      lots: fc.integer({ min: 1, max: 400 }),
      price: fc.integer({ min: 590, max: 610 }),
      tif: fc.constantFrom('GTC', 'IOC', 'FOK', 'market'),
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({
      kind: fc.constant('fill' as const),
      which: fc.nat(20),
      part: fc.integer({ min: 1, max: 10 }),
    }),
  },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('cancel' as const), which: fc.nat(20) }) },
  {
    weight: 3,
    arbitrary: fc.record({
      kind: fc.constant('lose' as const),
      what: fc.constantFrom('answer' as const, 'request' as const),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({ kind: fc.constant('die' as const), at: fc.constantFrom(...DEATHS) }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant('venue' as const),
      error: fc.constantFrom(
        null,
        'EService:Unavailable',
        'EAPI:Rate limit exceeded',
        'EAPI:Invalid key',
      ),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant('hide' as const),
      trades: fc.boolean(),
      orders: fc.constantFrom(0, 5000, 40_000),
    }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('twice' as const), which: fc.nat(20) }) },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant('move' as const),
      to: fc.integer({ min: 595, max: 605 }),
    }),
  },
  {
    weight: 5,
    arbitrary: fc.record({
      kind: fc.constant('pass' as const),
      seconds: fc.integer({ min: 1, max: 20 }),
    }),
  },
)

test('in random histories no order is sent twice, and balances plus fees stay constant', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(act, { minLength: 5, maxLength: 25 }), async (acts) => {
      const fixture = (current = new TradingFixture(database.get()))
      await fixture.begin()
      const made: string[] = []
      const pick = <T>(from: readonly T[], at: number): T | undefined =>
        from.length === 0 ? undefined : from[at % from.length]
      for (const each of acts) {
        const there = [...fixture.kraken.orders.values()]
        switch (each.kind) {
          case 'order': {
            const price =
              each.tif === 'market'
                ? {}
                : { price: String(each.price * 100), time_in_force: each.tif }
            await fixture
              .create({
                type: each.tif === 'market' ? 'market' : 'limit',
                price: undefined,
                side: each.side,
                amount: (each.lots / 1000).toFixed(3),
                ...price,
                sequence_id: `s${made.length}`,
              })
              .then(({ id }) => made.push(id))
              .catch(() => undefined)
            break
          }
          case 'fill': {
            const order = pick(
              there.filter(({ status }) => status === 'open'),
              each.which,
            )
            if (order)
              fixture.kraken.fill(
                order.id,
                Math.min(
                  order.volume - order.filled,
                  Math.ceil(order.volume * 100 * each.part) / 1000,
                ),
              )
            break
          }
          case 'cancel': {
            const id = pick(made, each.which)
            if (id !== undefined) await fixture.cancel(id).catch(() => undefined)
            break
          }
          case 'lose':
            fixture.kraken.lose = each.what
            break
          case 'die':
            fixture.dieAt = each.at
            break
          case 'venue':
            fixture.kraken.error = each.error
            break
          case 'hide':
            Object.assign(fixture.kraken, { hidesTrades: each.trades, visibleAfterMs: each.orders })
            break
          case 'twice': {
            const order = pick(there, each.which)
            order?.trades.push(...order.trades)
            break
          }
          case 'move':
            Object.assign(fixture.kraken, {
              ask: { price: each.to * 100, volume: 1 },
              bid: { price: each.to * 100 - 10, volume: 1 },
            })
            break
          case 'pass':
            await fixture.pass(each.seconds)
            await fixture.reconcile().catch(() => undefined)
        }
      }
      // All faults end, and resting orders are cancelled.
      Object.assign(fixture.kraken, {
        error: null,
        lose: null,
        hidesTrades: false,
        visibleAfterMs: 0,
      })
      fixture.dieAt = null
      await fixture.pass(125)
      for (const { id } of await fixture.database.query<{ id: string }>(
        `select id from orders where state <> 'ENDED'`,
      ))
        await fixture.cancel(id)
      await fixture.pass(130)
      const rows = await fixture.database.query<{
        id: string
        state: string
        client_id: string
        status: string
        filled: string
      }>('select id, state, client_id, status, filled::text from orders')
      assert.deepEqual(
        rows.filter(({ state }) => state !== 'ENDED'),
        [],
        'every order ends',
      )
      const byClient = Map.groupBy(fixture.kraken.orders.values(), ({ clientId }) => clientId)
      for (const { client_id, status, filled } of rows) {
        const taken = byClient.get(client_id) ?? []
        assert.ok(taken.length <= 1, 'taken twice')
        assert.equal(
          Number(filled) / 1e18,
          Number((taken[0]?.filled ?? 0).toFixed(8)),
          `${status}, as the venue has it`,
        )
      }
      await fixture.reconcile()
      await fixture.reconcile()
      assert.deepEqual(
        (await fixture.account()).difference,
        [],
        'the books are what the venue holds',
      )
      const books = await fixture.books()
      assert.deepEqual(
        [
          books['prepaid_reserved USD'],
          Number(books['prepaid USD']) + Number(books['fees USD'] ?? 0),
        ],
        [undefined, 1000],
      )
      assert.deepEqual(await wrongEvents(fixture.database), [])
    }),
    { numRuns: 12 },
  )
})
