// Properties of the evaluation on generated documents and acts.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as fc from '../../../../testing/property.ts'
import {
  act,
  allowRule,
  approvalList,
  denyRule,
  limitRule,
  MIXED_GROUPS,
  requireRule,
  ruleList,
  suspended,
  useList,
} from '../../testing/arbitraries.ts'
import { contextWith, policyWith } from '../../testing/documents.ts'
import { naiveEffect } from '../../testing/naive.ts'
import type { Rule } from '../document/rules.ts'
import { evaluate, type Evaluation, type EvaluationContext } from './evaluate.ts'

const RUNS = 2_000
const RANK = { deny: 0, approve: 1, allow: 2 }
const rank = ({ effect }: Evaluation): number => RANK[effect]
const policyOf = (rules: readonly Rule[], fields: object = {}) =>
  policyWith(rules, { groups: MIXED_GROUPS, ...fields })

/** Contexts in which each sum has uses of its own. */
const context: fc.Arbitrary<EvaluationContext> = fc
  .record({
    approvals: approvalList,
    suspended,
    uses: fc.array(useList, { minLength: 3, maxLength: 3 }),
  })
  .map(({ uses, ...rest }) =>
    contextWith({ ...rest, usesOf: ({ key }) => uses[key.length % uses.length] ?? [] }),
  )
const cases = fc.record({ rules: ruleList, act, context })

test('a second, naive evaluator agrees', () => {
  const seen = { deny: 0, approve: 0, allow: 0 }
  fc.assert(
    fc.property(cases, fc.constantFrom({}, { fees: 'wallet' }), ({ rules, act, context }, fees) => {
      const policy = policyOf(rules, fees)
      const { effect } = evaluate(policy, act, context)
      assert.equal(effect, naiveEffect(policy.document, act, context))
      seen[effect]++
    }),
    { numRuns: 2 * RUNS },
  )
  for (const [effect, count] of Object.entries(seen))
    assert.ok(count > RUNS / 100, `only ${count} of the examples have the effect ${effect}`)
})

test('the order of the rules has no influence on any part of the result', () => {
  const shuffled = cases.chain((each) =>
    fc
      .shuffledSubarray(each.rules, { minLength: each.rules.length })
      .map((order) => ({ ...each, order })),
  )
  fc.assert(
    fc.property(shuffled, ({ rules, order, act, context }) =>
      assert.deepEqual(
        evaluate(policyOf(order), act, context),
        evaluate(policyOf(rules), act, context),
      ),
    ),
    { numRuns: RUNS },
  )
})

/** Evaluates with and without one more rule. */
function ranks(each: {
  rules: readonly Rule[]
  added: Rule
  act: Parameters<typeof evaluate>[1]
  context: EvaluationContext
}): [without: number, withRule: number] {
  const rules = each.rules.filter(({ id }) => id !== each.added.id)
  const of = (list: readonly Rule[]) => rank(evaluate(policyOf(list), each.act, each.context))
  return [of(rules), of([...rules, each.added])]
}

test('adding an allow never narrows', () => {
  let widened = 0
  fc.assert(
    fc.property(cases, allowRule, (each, added) => {
      const [before, after] = ranks({ ...each, added })
      assert.ok(after >= before)
      if (after > before) widened++
    }),
    { numRuns: RUNS },
  )
  assert.ok(widened > 0)
})

test('adding a deny, a limit or a require never widens', () => {
  let narrowed = 0
  fc.assert(
    fc.property(cases, fc.oneof(denyRule, limitRule, requireRule), (each, added) => {
      const [before, after] = ranks({ ...each, added })
      assert.ok(after <= before)
      if (after < before) narrowed++
    }),
    { numRuns: RUNS },
  )
  assert.ok(narrowed > 0)
})

test('further approvals never narrow, and further uses or suspensions never widen', () => {
  fc.assert(
    fc.property(cases, approvalList, useList, suspended, (each, approvals, uses, keys) => {
      const { rules, act, context } = each
      const policy = policyOf(rules)
      const before = rank(evaluate(policy, act, context))
      const more = { ...context, approvals: [...context.approvals, ...approvals] }
      assert.ok(rank(evaluate(policy, act, more)) >= before)
      const used: EvaluationContext = {
        ...context,
        usesOf: (charge) => [...context.usesOf(charge), ...uses],
      }
      assert.ok(rank(evaluate(policy, act, used)) <= before)
      const fewer = { ...context, suspended: new Set([...context.suspended, ...keys]) }
      assert.ok(rank(evaluate(policy, act, fewer)) <= before)
    }),
    { numRuns: RUNS },
  )
})

test('naming the rule that was chosen gives the same result, and no rule passes a denied act', () => {
  fc.assert(
    fc.property(cases, ({ rules, act, context }) => {
      const policy = policyOf(rules)
      const free = evaluate(policy, act, context)
      for (const { id } of policy.rules.allow) {
        const named = evaluate(policy, act, { ...context, via: id })
        assert.ok(rank(named) <= rank(free))
        if (id === free.via) assert.deepEqual(named, free)
        const fits = free.tried.some(
          (each) => each.rule === id && each.effect === 'allow' && each.fits,
        )
        if (!fits) assert.equal(named.effect, 'deny')
      }
    }),
    { numRuns: RUNS },
  )
})
