// Running sums of windows: whatever is recorded, told by the partner, in progress or judged, and
// however the clock moves, they equal the sum over all single steps.
import assert from 'node:assert/strict'
import test from 'node:test'
import { leavingAge, sumOfUses } from '@custody/policy'
import * as fc from '../../../../../testing/property.ts'
import { Spending, windowName, WINDOW_KEPT_MS, type ChargedWindow } from '../../store/spending.ts'
import { NO_OTHERS, type OtherCharges } from '../budget.ts'
import type { VerdictPolicy } from '../order.ts'
import { sumOf, usesOf } from './windows.ts'

const NOW = 1_800_000_000_000
const HOUR_MS = 3_600_000
const KEY = '["a","day","workspace"]'
const WINDOW = windowName('w', KEY)
const STEPS = 12

interface Charge {
  readonly step: number
  readonly transaction: number
  readonly units: number
  readonly asset: 'ETH' | 'BTC'
  /** Milliseconds before the clock; negative: the clock has been set back since. */
  readonly ageMs: number
}
const charge: fc.Arbitrary<Charge> = fc.record({
  step: fc.integer({ min: 1, max: STEPS }),
  transaction: fc.integer({ min: 1, max: 2 }),
  units: fc.integer({ min: 0, max: 5 }),
  asset: fc.constantFrom('ETH', 'BTC'),
  // Restored nodes add charges of their peers late, in any order.
  ageMs: fc.oneof(
    fc.constant(0),
    fc.integer({ min: -60_000, max: 60_000 }),
    fc.integer({ min: 0, max: 30 * HOUR_MS }),
    // At the end of the window.
    fc.integer({ min: 24 * HOUR_MS, max: 24 * HOUR_MS + 240_000 }),
  ),
})

type Event =
  | { kind: 'own' | 'other' | 'both'; charges: Charge[] }
  | { kind: 'time'; ms: number }
  | { kind: 'clamp' | 'drop own' | 'drop other' | 'restart' }
  | { kind: 'hours'; hours: number }
const event: fc.Arbitrary<Event> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      kind: fc.constantFrom('own', 'other', 'both'),
      charges: fc.array(charge, { minLength: 1, maxLength: 3 }),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constantFrom('own', 'other'),
      charges: fc.array(charge, { minLength: 30, maxLength: 60 }),
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({
      kind: fc.constant('time' as const),
      ms: fc.oneof(
        fc.integer({ min: 0, max: 2000 }),
        fc.integer({ min: -90_000, max: 0 }),
        fc.integer({ min: 0, max: 26 * HOUR_MS }),
        fc.constant(150 * HOUR_MS),
      ),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({ kind: fc.constantFrom('clamp', 'drop own', 'drop other', 'restart') }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant('hours' as const),
      hours: fc.constantFrom(1, 24, 168),
    }),
  },
)

/** A judgement of an act: what counts besides the two records. */
const judgement = fc.record({
  step: fc.integer({ min: 1, max: STEPS + 1 }),
  judged: fc.array(
    fc.record({ step: charge.map(({ step }) => step), transaction: fc.constantFrom(1, 2) }),
    { maxLength: 2 },
  ),
  inProgress: fc.array(charge, { maxLength: 2 }),
  ahead: fc.array(charge, { maxLength: 2 }),
})

const amountsOf = ({ asset, units }: Charge): ReadonlyMap<string, bigint> =>
  new Map([
    [asset, BigInt(units)],
    ['FEE', 1n],
  ])

/** Two records and a clock. */
class Records {
  own = new Spending()
  other = new Spending()
  clockMs = NOW
  hours = 24
  #height = 0

  /** Returns a charge as a record has it; each record has objects of its own. */
  charged(each: Charge): ChargedWindow {
    return {
      window: WINDOW,
      step: `s${each.step}`,
      transaction: `t${each.transaction}`,
      at: this.clockMs - each.ageMs,
      amounts: amountsOf(each),
    }
  }

  apply(event: Event): void {
    switch (event.kind) {
      case 'own':
      case 'other':
      case 'both':
        for (const each of event.charges)
          for (const side of event.kind === 'both' ? (['own', 'other'] as const) : [event.kind])
            this[side].add({ height: ++this.#height, charges: [], windows: [this.charged(each)] })
        break
      case 'time':
        this.clockMs += event.ms
        break
      case 'hours':
        this.hours = event.hours
        break
      case 'clamp':
        this.own.clamp(this.clockMs)
        break
      case 'drop own':
        this.#drop(this.own)
        break
      case 'drop other':
        this.#drop(this.other)
        break
      case 'restart':
        // The partner's record is read again.
        this.other = new Spending()
    }
  }

  /** Charges are only dropped when there are many. */
  #drop(side: Spending): void {
    const at = this.clockMs - WINDOW_KEPT_MS - 1
    for (let many = side.steps.length; many < 2_100; many++) {
      const old = { window: 'another', step: 'old', transaction: 'old', at, amounts: new Map() }
      side.add({ height: ++this.#height, charges: [], windows: [old] })
    }
    side.drop(this.clockMs)
  }
}

/** Returns the number of steps in the window, by running sums and by single steps. */
function counts({ own, other, clockMs, hours }: Records): [running: number, single: number] {
  const others = { ...NO_OTHERS, recorded: other }
  const all = { own, other: others, ahead: [], workspace: 'w', clockMs }
  const sum = { key: KEY, hours }
  return [sumOf(all, sum, 'new').count, sumOfUses(usesOf(all, sum), 'new', hours).count]
}

test('a charge that the partner tells after it has dropped others is counted', () => {
  const records = new Records()
  const many = (from: number): Charge[] =>
    Array.from({ length: 20 }, (_, at) => ({
      step: from + at,
      transaction: 1,
      units: 1,
      asset: 'ETH',
      ageMs: 0,
    }))
  records.apply({ kind: 'other', charges: many(100) })
  records.apply({ kind: 'time', ms: 200 * HOUR_MS })
  records.apply({ kind: 'own', charges: many(200) })
  assert.deepEqual(counts(records), [20, 20])
  records.apply({ kind: 'drop other' })
  records.apply({ kind: 'other', charges: many(300) })
  assert.deepEqual(counts(records), [40, 40])
})

test('a running sum always equals the sum of all single steps', () => {
  const reached = { steps: 0, own: 0, left: 0, frees: 0 }
  fc.assert(
    fc.property(
      fc.array(charge, { minLength: 32, maxLength: 60 }),
      fc.array(fc.tuple(event, judgement), { minLength: 5, maxLength: 30 }),
      (first, events) => {
        const records = new Records()
        records.apply({ kind: 'own', charges: first })
        for (const [each, { step, judged, inProgress, ahead }] of events) {
          records.apply(each)
          const other: OtherCharges = {
            ...NO_OTHERS,
            recorded: records.other,
            judged: judged.map((one) => ({
              step: `s${one.step}`,
              transaction: `t${one.transaction}`,
            })),
            inProgress: (window) =>
              window === WINDOW ? inProgress.map((one) => records.charged(one)) : [],
          }
          const all = {
            own: records.own,
            other,
            ahead: ahead.map((one) => ({
              step: `s${one.step}`,
              policy: {
                charges: [{ key: KEY, hours: 24, amounts: amountsOf(one) }],
              } as unknown as VerdictPolicy,
            })),
            workspace: 'w',
            clockMs: records.clockMs,
          }
          const sum = { key: KEY, hours: records.hours }
          const expected = sumOfUses(usesOf(all, sum), `s${step}`, records.hours)
          const { used, count, own, leavingAge: ageOf } = sumOf(all, sum, `s${step}`)
          const others = usesOf(all, sum).filter((use) => use.step !== `s${step}`)
          for (const asset of [null, 'ETH', 'BTC', 'FEE'])
            for (const excess of [1n, 2n, 3n, 5n, 8n, 12n, 20n]) {
              if (ageOf === undefined) continue
              const age = leavingAge(others, asset, excess)
              assert.equal(ageOf(asset, excess), age)
              if (age !== null) reached.frees++
            }
          const units = (amounts: ReadonlyMap<string, bigint>) =>
            [...amounts].filter(([, each]) => each !== 0n).sort()
          assert.deepEqual(
            [count, units(used), own && units(own)],
            [expected.count, units(expected.used), expected.own && units(expected.own)],
          )
          if (count > STEPS / 2) reached.steps++
          if (own !== null) reached.own++
          if (count < STEPS / 4) reached.left++
        }
      },
    ),
    { numRuns: 400 },
  )
  assert.ok(
    Object.values(reached).every((times) => times > 50),
    JSON.stringify(reached),
  )
})
