// Differences of documents: what is reported, and that every stated tendency is true.
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
  useList,
} from '../../testing/arbitraries.ts'
import { allow, contextWith, documentWith, newKey, policyWith } from '../../testing/documents.ts'
import { checkDocument } from '../document/read.ts'
import type { Rule } from '../document/rules.ts'
import type { PolicyDocument } from '../document/shape.ts'
import { evaluate, type EvaluationContext } from '../evaluation/evaluate.ts'
import { allowIncludes } from './containment.ts'
import { diff } from './diff.ts'

type Fields = Partial<Record<keyof PolicyDocument, unknown>>
const differences = (
  before: readonly unknown[],
  after: readonly unknown[],
  fields: Fields = {},
  old: Fields = {},
) => diff(checkDocument(documentWith(before, old)), checkDocument(documentWith(after, fields)))
const briefly = (list: ReturnType<typeof diff>): string[] =>
  list.map(({ path, change, tendency }) => `${path} ${change} ${tendency}`)

test('two equal documents have no difference, whatever the order of their rules', () => {
  assert.deepEqual(differences([allow('a'), allow('b')], [allow('b'), allow('a')]), [])
})

test('reports added, removed and changed rules with their tendency and sentence', () => {
  const deny = { id: 'no', effect: 'deny', match: {} }
  const list = differences(
    [allow('a', { amount: { max: { BTC: '1' } } }), allow('gone')],
    [allow('a', { amount: { max: { BTC: '2' } } }), deny],
  )
  assert.deepEqual(briefly(list), [
    'rules.a changed widens',
    'rules.gone removed narrows',
    'rules.no added narrows',
  ])
  assert.equal(
    list[0]?.sentence,
    'Rule a: Allow transfers of every asset, of at most 2 BTC. Before: Allow transfers of every asset, of at most 1 BTC.',
  )
})

test('tells the tendency of each part of a rule', () => {
  const tendency = (before: object, after: object) =>
    differences([allow('a', before)], [allow('a', after)])[0]?.tendency
  const one = { amount: { max: { BTC: '1' } } }
  assert.equal(tendency(one, { amount: { max: { BTC: '0.5' } } }), 'narrows')
  assert.equal(tendency(one, { amount: { max: { BTC: '0.5', XRP: '1' } } }), 'unknown')
  assert.equal(tendency(one, { amount: { max: { BTC: '1.00' } } }), 'same')
  assert.equal(tendency({}, { fee_max: { BTC: '1' } }), 'narrows')
  const quorum = (k: number, more = {}) => ({ approvals: [{ group: 'treasury', k }], ...more })
  assert.equal(tendency(quorum(1), quorum(2)), 'narrows')
  assert.equal(tendency(quorum(1), {}), 'widens')
  assert.equal(tendency(quorum(1), quorum(1, { initiator: true })), 'widens')
  assert.equal(tendency(quorum(1), quorum(1, { approval_s: 60 })), 'narrows')
  const not = (sub_accounts_not: unknown) => ({
    match: { action: ['transfer'], assets: 'any', sub_accounts_not },
  })
  assert.equal(tendency(not(['a', 'b']), not(['a'])), 'widens')
  assert.equal(tendency(not({ prefix: 'a' }), not(['ab', 'ac'])), 'widens')
  assert.equal(tendency(not(['a']), not(['b'])), 'unknown')
  const to = (fields: object) => ({
    match: {
      action: ['transfer'],
      assets: 'any',
      to: { addresses: [{ network: 'XRP', address: 'rA', ...fields }] },
    },
  })
  assert.equal(tendency(to({ tag: '1' }), to({ any_tag: true })), 'widens')
  assert.equal(tendency(to({}), to({ any_tag: true })), 'widens')
  assert.equal(tendency(to({ any_tag: true }), to({ tag: '1' })), 'narrows')
  assert.equal(tendency(to({ tag: '1' }), to({ tag: '2' })), 'unknown')
  const window = (fields: object) => ({
    windows: [{ name: 'd', hours: 24, per: 'api_key', count: 5, ...fields }],
  })
  assert.equal(tendency(window({}), window({ count: 6 })), 'widens')
  assert.equal(tendency(window({}), window({ hours: 12 })), 'widens')
  assert.equal(tendency(window({}), window({ per: 'sub_account' })), 'unknown')
  assert.equal(tendency(window({}), window({ max: { BTC: '1' } })), 'narrows')
  // In the coin that is named in addition, fees count that did not count before.
  const max = (amounts: object) => window({ max: amounts })
  assert.equal(tendency(max({ USDT_ETH: '5' }), max({ USDT_ETH: '6' })), 'widens')
  assert.equal(tendency(max({ USDT_ETH: '5' }), max({ USDT_ETH: '6', ETH: '1' })), 'unknown')
})

test('reports people, keys, groups, quorums and the delay', () => {
  const { people } = documentWith() as { people: { id: string; keys: object[] }[] }
  const next = people.map((each) =>
    each.id === 'dan'
      ? { ...each, keys: [...each.keys, newKey('k2').key], api_keys: ['other'] }
      : each.id === 'erin'
        ? { ...each, name: 'Erin E.' }
        : each,
  )
  const list = differences([], [], {
    people: [...next, { id: 'zoe', name: 'Zoe', api_keys: [], keys: [newKey('k').key] }],
    groups: {
      admins: ['alice', 'bob', 'carol', 'zoe'],
      treasury: ['dan', 'erin', 'frank', 'zoe'],
      compliance: ['compliance'],
    },
    change: { approvals: [{ group: 'admins', k: 1 }], delay_s: 3_600, veto: 'treasury' },
    enrolment: { approvals: [{ group: 'admins', k: 1 }] },
    fees: 'wallet',
  })
  assert.deepEqual(briefly(list), [
    'change.delay_s changed widens',
    'fees changed widens',
    'change.veto changed unknown',
    'change.approvals changed widens',
    'enrolment.approvals added narrows',
    'groups.admins changed unknown',
    'groups.treasury changed unknown',
    'people.dan.keys.k2 added widens',
    'people.dan.api_keys changed unknown',
    'people.erin.name changed same',
    'people.zoe added unknown',
  ])
  for (const { sentence } of list) assert.match(sentence, /\.$/)
})

const RANK = { deny: 0, approve: 1, allow: 2 }
const context: fc.Arbitrary<EvaluationContext> = fc
  .record({ approvals: approvalList, uses: fc.array(useList, { minLength: 3, maxLength: 3 }) })
  .map(({ uses, approvals }) =>
    contextWith({ approvals, usesOf: ({ key }) => uses[key.length % uses.length] ?? [] }),
  )

/** Changes one or two parts of a rule, so that one version often includes the other. */
const changed = fc.oneof(allowRule, allowRule, denyRule, requireRule, limitRule).chain((rule) =>
  fc
    .tuple(
      fc.oneof(
        ...({ allow: [allowRule], deny: [denyRule], require: [requireRule], limit: [limitRule] }[
          rule.effect
        ] as fc.Arbitrary<Rule>[]),
      ),
      fc.subarray(['match', 'amount', 'fee_max', 'windows', 'approvals', 'initiator', 'above'], {
        minLength: 1,
        maxLength: 2,
      }),
      fc.subarray(['networks', 'api_keys', 'people', 'sub_accounts', 'to', 'assets']),
    )
    .map(([other, fields, removed]): [Rule, Rule] => {
      const next: Record<string, unknown> = { ...rule }
      for (const field of fields) next[field] = (other as Record<string, unknown>)[field]
      if (fields.includes('match')) {
        next.match = { ...rule.match }
        for (const field of removed)
          if (field !== 'assets' || rule.effect !== 'allow')
            delete (next.match as Record<string, unknown>)[field]
      }
      if (next.approvals === undefined && rule.effect === 'allow') {
        delete next.approval_s
        delete next.initiator
      }
      return [rule, JSON.parse(JSON.stringify(next)) as Rule]
    }),
)

test('a stated tendency holds for generated acts', () => {
  const seen: Record<string, number> = {}
  const acts = fc.array(fc.tuple(act, context), { minLength: 15, maxLength: 15 })
  fc.assert(
    fc.property(changed, ruleList, acts, ([before, after], others, cases) => {
      const rest = others.filter(({ id }) => id !== before.id)
      const policies = [before, after].map((rule) => {
        const rules = JSON.parse(JSON.stringify([rule, ...rest])) as Rule[]
        return policyWith(rules, { groups: MIXED_GROUPS })
      })
      const [old, next] = policies as [(typeof policies)[0], (typeof policies)[0]]
      if (old === undefined || next === undefined) return
      const tendency = diff(old.document, next.document)[0]?.tendency ?? 'same'
      for (const [each, conditions] of cases) {
        const [was, is] = [old, next].map(
          (policy) => RANK[evaluate(policy, each, conditions).effect],
        ) as [number, number]
        const label = `${tendency}: ${JSON.stringify([before, after])}`
        if (tendency === 'widens' || tendency === 'same') assert.ok(is >= was, label)
        if (tendency === 'narrows' || tendency === 'same') assert.ok(is <= was, label)
        if (is !== was) seen[tendency] = (seen[tendency] ?? 0) + 1
      }
    }),
    { numRuns: 1_500 },
  )
  for (const tendency of ['widens', 'narrows'])
    assert.ok((seen[tendency] ?? 0) > 10, `${tendency}: ${JSON.stringify(seen)}`)
})

test('removing a rule that another one contains changes no result', () => {
  let contained = 0
  const wider = fc
    .tuple(allowRule, fc.subarray(['networks', 'api_keys', 'people', 'to']))
    .map(([rule, removed]) => {
      const outer = JSON.parse(JSON.stringify({ ...rule, id: `${rule.id}x` })) as Rule
      for (const field of removed) delete (outer.match as Record<string, unknown>)[field]
      if ('windows' in outer) delete outer.windows
      return [rule, outer] as const
    })
  fc.assert(
    fc.property(wider, ruleList, act, context, ([inner, outer], others, each, conditions) => {
      if (inner.effect !== 'allow' || outer.effect !== 'allow') return
      if (!allowIncludes(outer, inner, 'two rules')) return
      contained++
      const rest = others.filter(({ id }) => id !== inner.id && id !== outer.id)
      const effectOf = (rules: Rule[]) =>
        evaluate(policyWith(rules, { groups: MIXED_GROUPS }), each, conditions).effect
      assert.equal(effectOf([outer, ...rest]), effectOf([inner, outer, ...rest]))
    }),
    { numRuns: 1_000 },
  )
  assert.ok(contained > 300, String(contained))
})
