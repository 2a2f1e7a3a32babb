// Drafts of policy documents, checked with the linter and with a simulation of the history.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { loadRegistry, policyRegistry } from '@custody/chains'
import {
  canonicalText,
  checkDocument,
  compile,
  documentHash,
  lint,
  PolicyError,
  simulate,
  type Act,
  type PastAct,
  type PolicyDocument,
  type Rule,
} from '@custody/policy'
import * as fc from '../../../../../../testing/property.ts'
import { newKey } from '../../../../../policy/testing/documents.ts'
import { draftDocument, toFillIn, type DraftParts } from './draft.ts'

/** What is known around a document. */
const SURROUNDINGS = { panelOrigins: [], enrolled: [] }

const registry = policyRegistry(loadRegistry('mainnet'))
const START = 1_800_000_000
const KEY = '7c9e6679-7425-40de-944b-e07fc1f90ae7'
const ADDRESSES = {
  ETH: '0x70997970C51812dc3A010C7d01b50e0d17dc79C8',
  USDT_ETH: '0x70997970C51812dc3A010C7d01b50e0d17dc79C8',
  BTC: 'bc1qar0srrr7xfkvy5l643lydnw9re59gtzzwf5mdq',
}

const partsOf = (fields: Partial<DraftParts> = {}): DraftParts => ({
  registry,
  place: { mode: 'mainnet', workspace: 'acme', nodes: 'ab'.repeat(32) },
  previous: null,
  acts: [],
  forwards: [],
  apiKeys: [KEY],
  assets: ['BTC', 'ETH', 'USDT_ETH'],
  ...fields,
})
const actOf = (
  asset: keyof typeof ADDRESSES,
  amount: bigint,
  at_s: number,
  id: string,
): PastAct => ({
  at_s,
  act: {
    id,
    subject: '0'.repeat(64),
    step: id,
    action: 'transfer',
    workspace: 'acme',
    sub_account: 'main',
    api_key: KEY,
    asset,
    network: asset === 'BTC' ? 'BTC' : 'ETH',
    amount,
    to: { address: ADDRESSES[asset], tag: null, own: null },
    fee: { max: 21_000n, limit: 10n ** 17n },
    issued_at: at_s,
    standing: null,
    resource: null,
  },
})
/** Puts real keys in place of the texts that must be replaced. */
const filled = (document: PolicyDocument): PolicyDocument =>
  checkDocument({
    ...document,
    people: document.people.map((person) => ({
      ...person,
      keys: person.keys.map(({ id }) => newKey(id).key),
    })),
  })
const errorsOf = (document: PolicyDocument) =>
  lint(document, { registry, ...SURROUNDINGS }).filter(({ severity }) => severity === 'error')

test('a first draft is refused until the public keys are filled in', () => {
  const draft = draftDocument(partsOf())
  assert.equal(toFillIn(draft).length, 3)
  assert.throws(
    () => checkDocument(draft),
    (error) => error instanceof PolicyError && error.message.startsWith('people[0].keys[0].spki'),
  )
  assert.deepEqual(toFillIn(filled(draft)), [])
  assert.deepEqual(errorsOf(filled(draft)), [])
})

test('without a history, small payments need no approvals within a day, and larger ones need two', () => {
  const document = filled(draftDocument(partsOf()))
  const policy = compile(document, registry)
  const ether = 10n ** 17n
  const acts = [
    actOf('ETH', 20n * ether, START, 'large'),
    ...[1, 2, 3, 4, 5].map((at) => actOf('ETH', 2n * ether, START + at, `small-${at}`)),
    actOf('ETH', 2n * ether, START + 6, 'sixth'),
  ]
  const { newly_denied, newly_approval } = simulate(policy, null, acts)
  assert.deepEqual([newly_denied, newly_approval], [[], ['large', 'sixth']])
  assert.deepEqual(
    [document.change.approvals, document.change.delay_s],
    [[{ group: 'admins', k: 2 }], 3600],
  )
  assert.deepEqual(document.people.at(-1)?.api_keys, [KEY])
})

test('a draft allows every transfer of the history without approvals', async () => {
  const asset = fc.constantFrom('ETH' as const, 'USDT_ETH' as const, 'BTC' as const)
  const transfer = fc.tuple(
    asset,
    fc.bigInt({ min: 1n, max: 10n ** 20n }),
    fc.integer({ min: 0, max: 90 * 86_400 }),
  )
  await fc.assert(
    fc.asyncProperty(fc.array(transfer, { minLength: 1, maxLength: 40 }), async (history) => {
      const acts = history.map(([name, amount, at], id) =>
        actOf(name, amount, START + at, String(id)),
      )
      const document = filled(draftDocument(partsOf({ acts })))
      assert.deepEqual(errorsOf(document), [])
      const { same } = simulate(compile(document, registry), null, acts)
      assert.equal(same, acts.length)
    }),
  )
})

test('a draft for a workspace with a policy follows its document and keeps its people', () => {
  const document = filled(draftDocument(partsOf()))
  const hash = documentHash(document)
  const next = draftDocument(
    partsOf({
      previous: { document, hash },
      acts: [actOf('ETH', 123_456_789n, START, 'a')],
    }),
  )
  assert.deepEqual([next.number, next.previous, next.people], [2, hash, document.people])
  assert.deepEqual(toFillIn(next), [])
  const findings = lint(checkDocument(next), { registry, previous: document, ...SURROUNDINGS })
  assert.deepEqual(
    findings.filter(({ severity }) => severity === 'error'),
    [],
  )
  assert.match(canonicalText(next), /"ETH":"0.00000000013"/)
})

test('the next draft keeps who approves large payments, and the rules that restrict', () => {
  const first = filled(draftDocument(partsOf()))
  const deny: Rule = { id: 'never', effect: 'deny', match: { assets: ['BTC'], to: 'any' } }
  const document = { ...first, rules: [...first.rules, deny] }
  const next = draftDocument(
    partsOf({ previous: { document, hash: documentHash(document) }, assets: ['ETH'] }),
  )
  assert.deepEqual(
    next.rules.map((rule) => [rule.id, rule.effect, 'approvals' in rule ? rule.approvals : null]),
    [
      ['usual', 'allow', null],
      ['large', 'allow', [{ group: 'treasury', k: 2 }]],
      ['never', 'deny', null],
    ],
  )
})

test('a workspace with many API keys has several machines that own them', () => {
  const apiKeys = Array.from({ length: 101 }, (_, at) => `key-${at}`)
  const document = filled(draftDocument(partsOf({ apiKeys })))
  assert.deepEqual(
    document.people.slice(3).map(({ id, api_keys }) => [id, api_keys.length]),
    [
      ['backend', 50],
      ['backend-2', 50],
      ['backend-3', 1],
    ],
  )
})

test('a draft allows the standing rules that exist, and nothing else that forwards', () => {
  const rule = (asset: keyof typeof ADDRESSES, tag: string | null, daily_cap: bigint): Act => ({
    ...actOf(asset, 5n, START, 'rule').act,
    action: 'forward',
    to: { address: ADDRESSES[asset], tag, own: null },
    standing: { min_amount: 5n, daily_cap, ends_at: START + 86_400 },
  })
  const forwards = [rule('ETH', null, 10n ** 18n), rule('BTC', null, 7n), rule('BTC', null, 9n)]
  const document = filled(draftDocument(partsOf({ forwards })))
  assert.deepEqual(errorsOf(document), [])
  const stops = (acts: readonly Act[]) =>
    lint(document, { registry, forwards: acts, ...SURROUNDINGS }).filter(
      ({ code }) => code === 'FORWARD_STOPS',
    ).length
  assert.equal(stops(forwards), 0)
  assert.equal(stops([{ ...forwards[1]!, amount: 9n }]), 0)
  assert.equal(stops([{ ...forwards[1]!, amount: 10n }]), 1)
  assert.equal(stops([rule('USDT_ETH', null, 10n)]), 1)
  assert.equal(draftDocument(partsOf({ assets: [] })).rules.length, 0)
  assert.deepEqual(
    draftDocument(partsOf({ assets: [], forwards })).rules.map(({ id }) => id),
    ['forwards'],
  )
})
