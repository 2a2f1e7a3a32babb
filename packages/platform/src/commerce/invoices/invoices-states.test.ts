import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import * as fc from '../../../../../testing/property.ts'
import {
  evaluate,
  partOf,
  PAYMENT_STATUSES,
  shareOf,
  type Payment,
  type PaymentStatus,
  type Terms,
} from './evaluate.ts'
import { amountFor, microOf, stepOf, valueOfFiat } from './quote.ts'
import { depthFor } from './settings.ts'
import { tableRows } from '../../../testing/documents.ts'

/**
 * Tests of the pure functions of invoices: each row of the states in docs/invoices.md, and amounts.
 */
const DOCUMENT = readFileSync(new URL('../../../../../docs/invoices.md', import.meta.url), 'utf8')
const MINUTE = 60_000
const AGREED: Terms = {
  offers: new Map([
    ['A', 1000n],
    ['B', 500n],
  ]),
  tolerance: 5000,
  expiresAt: 30 * MINUTE,
  cancelledAt: null,
  marked: null,
}

const rows = tableRows(DOCUMENT.slice(DOCUMENT.indexOf('## States')))
  .slice(1)
  .map((cells) => {
    const [what = '', payments = '', merchant = '', minute = '', status = '', exception = ''] =
      cells
    return {
      what,
      payments,
      merchant,
      minute: Number(minute),
      status,
      exception: exception === '' ? null : exception,
    }
  })

function paymentsIn(cell: string): Payment[] {
  return cell === ''
    ? []
    : cell.split(', ').map((text) => {
        const [, amount, asset, at, status] =
          /^`(\d+) ([A-C]) @(\d+) (seen|detected|confirmed|held|reverted|dropped)`$/.exec(text) ??
          assert.fail(`${text} is no payment`)
        return {
          amount: BigInt(amount as string),
          asset: asset as string,
          status: status as PaymentStatus,
          seenAt: Number(at) * MINUTE,
        }
      })
}

function termsIn(cell: string): Terms {
  if (cell === '') return AGREED
  const [, word, at] =
    /^(settled|invalid|cancelled) @(\d+)$/.exec(cell) ?? assert.fail(`${cell} is no decision`)
  return word === 'cancelled'
    ? { ...AGREED, cancelledAt: Number(at) * MINUTE }
    : { ...AGREED, marked: word as 'settled' | 'invalid' }
}

test('each row of the state table in docs/invoices.md is implemented', () => {
  assert.ok(rows.length > 30, 'the table was found')
  for (const { what, payments, merchant, minute, status, exception } of rows) {
    assert.deepEqual(
      evaluate(termsIn(merchant), paymentsIn(payments), minute * MINUTE),
      { status, exception },
      `${what}: ${payments}`,
    )
  }
  const seen = new Set(rows.map(({ status, exception }) => `${status} ${exception ?? ''}`))
  for (const state of [
    'Pending ',
    'Pending partial',
    'Processing ',
    'Processing over',
    'Paid ',
    'Paid over',
    'Paid late',
    'Paid partial',
    'Expired ',
    'Expired partial',
    'Expired late',
    'Invalid ',
    'Invalid partial',
    'Invalid late',
  ])
    assert.ok(seen.has(state), state)
})

const payment = fc.record({
  asset: fc.constantFrom('A', 'B', 'C'),
  amount: fc.bigInt({ min: 1n, max: 2000n }),
  seenAt: fc.integer({ min: 0, max: 60 }).map((minute) => minute * MINUTE),
  status: fc.constantFrom(...PAYMENT_STATUSES),
})
const payments = fc.array(payment, { maxLength: 6 })
const minute = fc.integer({ min: 0, max: 90 }).map((value) => value * MINUTE)

test('for any sequence of events, an invoice is Paid only when everything is confirmed', () => {
  fc.assert(
    fc.property(payments, minute, minute, (all, now, later) => {
      const state = evaluate(AGREED, all, now)
      assert.deepEqual(evaluate(AGREED, all.toReversed(), now), state)
      const credited = all.filter(
        ({ asset, status, seenAt }) =>
          asset !== 'C' && status === 'confirmed' && seenAt < AGREED.expiresAt,
      )
      // Sums in units of half a thousandth of the total, calculated by hand: the total is 1000 A or
      // 500 B.
      const parts = credited.reduce(
        (sum, { asset, amount }) => sum + amount * (asset === 'A' ? 1n : 2n),
        0n,
      )
      assert.equal(state.status === 'Paid', parts >= 995n)
      if (
        now <= later &&
        (state.status === 'Paid' || state.status === 'Processing' || state.status === 'Expired')
      ) {
        assert.deepEqual(
          evaluate(AGREED, all, later),
          state,
          'what has ended or is paid is not changed by time',
        )
      }
      assert.deepEqual(
        evaluate(
          AGREED,
          all.filter(
            ({ status, asset }) => !['reverted', 'dropped'].includes(status) && asset !== 'C',
          ),
          now,
        ),
        state,
      )
    }),
    { numRuns: 300 },
  )
})

test('paid and due amounts of an offer equal its total, and paying the due amount completes it', () => {
  const offer = fc.bigInt({ min: 1n, max: 10n ** 20n })
  fc.assert(
    fc.property(offer, offer, fc.bigInt({ min: 0n, max: 10n ** 20n }), (a, b, paid) => {
      const offers = new Map([
        ['A', a],
        ['B', b],
      ])
      const came: Payment[] =
        paid === 0n ? [] : [{ asset: 'A', amount: paid, status: 'confirmed', seenAt: 0 }]
      const { paid: part, due } = partOf(b, shareOf(offers, came))
      assert.ok(part + due >= b && part + due <= (part > b ? part : b) + 1n)
      const { status } = evaluate(
        { ...AGREED, offers, tolerance: 0 },
        [
          ...came,
          ...(due > 0n
            ? [{ asset: 'B', amount: due, status: 'confirmed' as const, seenAt: 1 }]
            : []),
        ],
        2,
      )
      assert.equal(status, 'Paid')
      if (due > 1n)
        assert.notEqual(
          evaluate(
            { ...AGREED, offers, tolerance: 0 },
            [...came, { asset: 'B', amount: due - 1n, status: 'confirmed', seenAt: 1 }],
            2,
          ).status,
          'Paid',
        )
    }),
    { numRuns: 300 },
  )
})

test('an amount is worth at least the requested value, and at most 0.01 % more', () => {
  const micro = fc.bigInt({ min: 1n, max: 10n ** 15n })
  const price = fc.bigInt({ min: 1n, max: 10n ** 18n })
  fc.assert(
    fc.property(micro, price, fc.constantFrom(6, 7, 8, 9, 18), (fiat, rate, decimals) => {
      const value = valueOfFiat(fiat)
      assert.equal(microOf(value), fiat)
      const amount = amountFor(value, rate, decimals)
      // Compares amount / 10^decimals × rate / 10^12 with fiat / 10^6 in integers.
      const worth = (coins: bigint) => coins * rate
      const owed = fiat * 10n ** BigInt(12 - 6 + decimals)
      assert.ok(worth(amount) >= owed)
      const step = stepOf(amount)
      assert.equal(amount % step, 0n)
      // Rounding up may have increased the amount to the next power of ten, for which the previous
      // step was a tenth.
      const least = [step, step / 10n].some((each) => each > 0n && worth(amount - each) < owed)
      assert.ok(least, 'one step less would be too little')
      const exact = (owed + rate - 1n) / rate
      assert.ok((amount - exact) * 10_000n <= exact)
    }),
    { numRuns: 500 },
  )
  assert.equal(
    amountFor(valueOfFiat(100_000_000n), 3000n * 10n ** 12n, 18),
    33_334n * 10n ** 12n,
    '100 USD at 3,000: 0.033334 ETH, not 18 digits',
  )
  assert.equal(amountFor(valueOfFiat(30_000_000n), 60_000n * 10n ** 12n, 8), 50_000n)
})

test('confirmations follow the highest threshold reached, or the largest for an unknown value', () => {
  const depths = [
    { fromUsd: 100n, confirmations: 2 },
    { fromUsd: 1000n, confirmations: 6 },
    { fromUsd: 5000n, confirmations: 4 },
  ]
  assert.deepEqual(
    [99n, 100n, 999n, 1000n, 5000n, null].map((micro) => depthFor(depths, micro)),
    [0, 2, 2, 6, 4, 6],
  )
  assert.equal(depthFor([], null), 0)
})
