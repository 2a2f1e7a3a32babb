// Windows at three signer nodes, of which any two sign: a limit holds whatever the pairs, failures,
// retries under another rule, speed-ups and order.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as fc from '../../../../testing/property.ts'
import { actWith, allow, contextWith, policyWith } from '../../testing/documents.ts'
import { evaluate } from './evaluate.ts'
import { chargesOf } from './prepare.ts'
import { combineCharges, combineUses, type Charge, type Use } from './windows.ts'

const day = (btc: string, count: number) => [
  { name: 'day', hours: 24, per: 'sub_account', max: { BTC: btc }, count },
]
const policy = policyWith([
  allow('a', { windows: day('1', 4) }),
  allow('b', { windows: day('0.7', 3) }),
  { id: 'cap', effect: 'limit', match: {}, windows: day('1.2', 5), above: 'deny' },
])
const LIMITS: Readonly<Record<string, readonly [units: bigint, count: number]>> = {
  '["a","day","sub_account","main"]': [100_000_000n, 4],
  '["b","day","sub_account","main"]': [70_000_000n, 3],
  '["cap","day","sub_account","main"]': [120_000_000n, 5],
}

interface Attempt {
  readonly step: number
  readonly pair: readonly [number, number]
  readonly via: 'a' | 'b'
  readonly fee: bigint
  /** The lead writes the step and gives up, or both write it and sign. */
  readonly isSigned: boolean
}
const attempt: fc.Arbitrary<Attempt> = fc.record({
  step: fc.integer({ min: 1, max: 6 }),
  pair: fc.constantFrom([0, 1], [1, 0], [0, 2], [2, 0], [1, 2], [2, 1]) as fc.Arbitrary<
    [number, number]
  >,
  via: fc.constantFrom('a', 'b'),
  fee: fc.constantFrom(0n, 1_000n, 2_000_000n),
  isSigned: fc.boolean(),
})

/** A node's record: the charges of each step. */
class NodeRecord {
  readonly #charges = new Map<string, readonly Charge[]>()

  write(step: string, charges: readonly Charge[]): void {
    this.#charges.set(step, combineCharges(this.#charges.get(step) ?? [], charges))
  }

  usesOf(key: string): Use[] {
    return [...this.#charges].flatMap(([step, charges]) =>
      charges
        .filter((charge) => charge.key === key)
        .map(({ amounts }) => ({ step, age_s: 60, amounts })),
    )
  }
}

test('the sums of what was signed stay within every limit', () => {
  let refused = 0
  let full = 0
  fc.assert(
    fc.property(fc.array(attempt, { minLength: 4, maxLength: 25 }), (attempts) => {
      const records = [new NodeRecord(), new NodeRecord(), new NodeRecord()]
      /** Charges of every transaction that two nodes have signed, by sum and step. */
      const signed = new Map<string, Map<string, bigint>>()
      for (const { step: number, pair, via, fee, isSigned } of attempts) {
        const step = `s${number}`
        const act = actWith({
          step,
          amount: BigInt(number) * 10_000_000n,
          fee: { max: fee, limit: 2_000_000n },
        })
        const [lead, partner] = pair.map((node) => records[node]) as [NodeRecord, NodeRecord]
        const usesOf = ({ key, hours }: Charge) =>
          combineUses(lead.usesOf(key), partner.usesOf(key), hours)
        const { effect } = evaluate(policy, act, contextWith({ via, usesOf }))
        if (effect !== 'allow') {
          refused++
          continue
        }
        const charges = chargesOf(policy, act, via)
        lead.write(step, charges)
        if (!isSigned) continue
        partner.write(step, charges)
        for (const { key, amounts } of charges) {
          const steps = signed.get(key) ?? new Map<string, bigint>()
          const units = amounts.get('BTC') ?? 0n
          if (units > (steps.get(step) ?? -1n)) steps.set(step, units)
          signed.set(key, steps)
        }
      }
      for (const [key, steps] of signed) {
        const [units, count] = LIMITS[key] as readonly [bigint, number]
        const sum = [...steps.values()].reduce((all, each) => all + each, 0n)
        assert.ok(sum <= units, `${key}: ${sum} of ${units}`)
        assert.ok(steps.size <= count, `${key}: ${steps.size} of ${count}`)
        if (steps.size === count || sum * 10n >= units * 8n) full++
      }
    }),
    { numRuns: 1_500 },
  )
  assert.ok(refused > 100 && full > 100, `${refused} refused, ${full} windows nearly full`)
})
