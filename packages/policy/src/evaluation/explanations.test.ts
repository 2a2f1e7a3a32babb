// Texts that tell people why a rule does not fit, and errors of acts and documents.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Act } from '../act.ts'
import {
  actWith,
  allow,
  approvalsOf,
  contextWith,
  documentWith,
  NOW,
  policyWith,
} from '../../testing/documents.ts'
import { registry } from '../../testing/registry.ts'
import { checkDocument } from '../document/read.ts'
import { compile } from './compile.ts'
import { evaluate } from './evaluate.ts'

const MATCH = { action: ['transfer'], assets: 'any' }
/** Returns why the only rule does not fit. */
const whyOf = (rule: object, act: Partial<Act> = {}): string | undefined =>
  evaluate(policyWith([allow('a', rule)]), actWith(act), contextWith()).nearest?.why
const whyNotMatched = (match: object, act: Partial<Act> = {}) =>
  whyOf({ match: { ...MATCH, ...match } }, act)

test('states which list of the rule does not contain the value', () => {
  assert.equal(whyNotMatched({ action: ['refund'] }), 'action: transfer is not one of refund')
  assert.equal(whyNotMatched({ assets: ['ETH', 'XRP'] }), 'assets: BTC is not one of ETH, XRP')
  assert.equal(whyNotMatched({ networks: ['ETH'] }), 'networks: BTC is not one of ETH')
  assert.equal(whyNotMatched({ people: ['bob'] }), 'people: alice is not one of bob')
  assert.equal(
    whyNotMatched({ people: ['bob'] }, { api_key: 'unlisted' }),
    'people: the API key has no owner',
  )
  assert.equal(whyNotMatched({ sub_accounts: ['x'] }), 'sub_accounts: main is not included')
  assert.equal(
    whyNotMatched({ sub_accounts_not: { prefix: 'ma' } }),
    'sub_accounts_not: main is excluded',
  )
})

test('lists up to five values, and the number of more', () => {
  const keys = ['k1', 'k2', 'k3', 'k4', 'k5']
  assert.equal(
    whyNotMatched({ api_keys: keys }),
    'api_keys: api-alice is not one of k1, k2, k3, k4, k5',
  )
  assert.equal(
    whyNotMatched({ api_keys: [...keys, 'k6'] }),
    'api_keys: api-alice is not one of the 6 listed',
  )
})

test('states whether the address or its tag is not listed', () => {
  const xrp = (tag: string | null) => ({
    asset: 'XRP',
    network: 'XRP',
    to: { address: 'rPayee', tag, own: null },
  })
  const addresses = [{ network: 'XRP', address: 'rPayee', tag: '7' }]
  const listed = { to: { addresses } }
  assert.equal(whyNotMatched(listed), 'to: bc1qpayee is not listed')
  assert.equal(
    whyNotMatched({ to: { addresses, own: 'workspace' } }),
    'to: bc1qpayee is not listed, and not an own address',
  )
  assert.equal(whyNotMatched(listed, xrp('8')), 'to: the tag 8 is not listed')
  assert.equal(whyNotMatched(listed, xrp(null)), 'to: the tag (none) is not listed')
})

test('an address can be listed with several tags, and with any tag', () => {
  const xrp = (tag: string | null) => ({
    asset: 'XRP',
    network: 'XRP',
    to: { address: 'rPayee', tag, own: null },
  })
  const entry = { network: 'XRP', address: 'rPayee' }
  const fits = (addresses: object[], tag: string | null) =>
    whyNotMatched({ to: { addresses } }, xrp(tag)) === undefined
  const two = [
    { ...entry, tag: '7' },
    { ...entry, tag: '8' },
  ]
  assert.deepEqual(
    ['7', '8', '9', null].map((tag) => fits(two, tag)),
    [true, true, false, false],
  )
  const any = { ...entry, any_tag: true }
  for (const addresses of [
    [any, ...two],
    [...two, any],
  ])
    assert.deepEqual(
      ['7', '9', null].map((tag) => fits(addresses, tag)),
      [true, true, true],
    )
})

test('states amounts and fees in the unit of their asset', () => {
  assert.equal(whyOf({ amount: { min: { BTC: '0.5' } } }), 'amount: 0.1 BTC is below 0.5')
  assert.equal(whyOf({ amount: { max: { BTC: '0.05' } } }), 'amount: 0.1 BTC is above 0.05')
  assert.equal(whyOf({ amount: { min: { ETH: '1' } } }), 'amount: min does not name BTC')
  assert.equal(whyOf({ fee_max: { ETH: '1' } }), 'fee_max: does not name BTC')
  const usdt = {
    asset: 'USDT_ETH',
    network: 'ETH',
    amount: 1_500_000n,
    fee: { max: 2n * 10n ** 15n, limit: 10n ** 18n },
  }
  assert.equal(
    whyOf({ amount: { max: { USDT_ETH: '1' } }, fee_max: { ETH: '0.001' } }, usdt),
    'amount: 1.5 USDT_ETH is above 1; fee_max: 0.002 ETH is above 0.001',
  )
  // A fee of exactly the maximum fits.
  assert.equal(whyOf({ fee_max: { ETH: '0.002' } }, usdt), undefined)
})

test('states why quorums cannot be reached', () => {
  const approvals = [
    { group: 'admins', k: 3 },
    { group: 'treasury', k: 1 },
  ]
  assert.equal(
    whyOf({ approvals }),
    'approvals: 3 of admins and 1 of treasury cannot be reached by distinct people other than the requester',
  )
  assert.equal(
    whyOf({ approvals }, { api_key: 'unlisted' }),
    'approvals: the API key has no owner, so the approval of its owner cannot be excluded; enrol a key with --person, or list it in people[].api_keys of the policy document',
  )
  assert.equal(whyOf({ approvals: [{ group: 'admins', k: 2 }] }), undefined)
})

test('a person without a key cannot approve, and the owner must be known if one rule excludes them', () => {
  const { people } = policyWith([]).document
  const without = people.map((each) => (each.id === 'bob' ? { ...each, keys: [] } : each))
  const two = [allow('a', { approvals: [{ group: 'admins', k: 2 }] })]
  const why = (rules: unknown[], fields: object, act: Partial<Act> = {}) =>
    evaluate(policyWith(rules, fields), actWith(act), contextWith()).nearest?.why
  assert.equal(why(two, {}), undefined)
  assert.equal(
    why(two, { people: without }),
    'approvals: 2 of admins cannot be reached by distinct people other than the requester',
  )
  const mixed = [
    allow('a', { approvals: [{ group: 'admins', k: 1 }], initiator: true }),
    { id: 'r', effect: 'require', match: {}, approvals: [{ group: 'treasury', k: 1 }] },
  ]
  assert.equal(
    why(mixed, {}, { api_key: 'unlisted' }),
    'approvals: the API key has no owner, so the approval of its owner cannot be excluded; enrol a key with --person, or list it in people[].api_keys of the policy document',
  )
})

test('names as the nearest rule the first by ID of those with the fewest conditions that do not hold', () => {
  const match = { ...MATCH, networks: ['ETH'] }
  const nearest = (...rules: unknown[]) =>
    evaluate(policyWith(rules), actWith(), contextWith()).nearest?.rule
  const [a, b, c] = [
    allow('a', { match: { ...match, sub_accounts: ['x'] } }),
    allow('b', { match }),
    allow('c', { match }),
  ]
  assert.equal(nearest(a, b, c), 'b')
  assert.equal(nearest(c, b, a), 'b')
  assert.equal(nearest(a), 'a')
})

test('states what contradicts itself in an act', () => {
  const policy = policyWith([allow('a')])
  const standing = { min_amount: 1n, daily_cap: 1n, ends_at: 2 }
  for (const [act, path, message] of [
    [{ workspace: 'other' }, 'workspace', 'must be acme'],
    [{ network: 'ETH' }, 'network', 'must be BTC'],
    [{ amount: -1n }, 'amount', 'must not be negative'],
    [{ fee: { max: -1n, limit: 1n } }, 'fee.max', 'must not be negative'],
    [{ fee: { max: 2n, limit: 1n } }, 'fee.max', 'must not be above fee.limit'],
    [{ action: 'forward' }, 'standing', 'must be present for a forward, and null otherwise'],
    [{ standing }, 'standing', 'must be present for a forward, and null otherwise'],
    [{ action: 'stake' }, 'resource', 'must be present for a stake, and null otherwise'],
    [{ resource: 'ENERGY' }, 'resource', 'must be present for a stake, and null otherwise'],
    [
      { to: { address: 'not canonical', tag: null, own: null } },
      'to.address',
      'must be a canonical address of the network',
    ],
    [{ asset: 'DOGE' }, 'asset', 'DOGE is not an asset of the registry'],
  ] as [Partial<Act>, string, string][])
    assert.throws(() => evaluate(policy, actWith(act), contextWith()), {
      code: path === 'asset' ? 'UNKNOWN_ASSET' : 'ACT',
      path,
      message: `${path}: ${message}`,
    })
  // Zero is allowed, and a fee that is exactly the limit.
  const least = { amount: 0n, fee: { max: 0n, limit: 0n } }
  assert.equal(evaluate(policy, actWith(least), contextWith()).effect, 'allow')
})

test('states which name a document does not define', () => {
  const deny = (match: object) => [{ id: 'd', effect: 'deny', match }]
  const to = (address: object) => deny({ to: { addresses: [address] } })
  const at = 'rules[0].match.to.addresses[0]'
  const lowerCase = {
    ...registry,
    canonicalAddress: (_network: string, address: string) => address.toLowerCase(),
  }
  for (const [rules, path, message, names = registry] of [
    [
      deny({ assets: ['DOGE'] }),
      'rules[0].match.assets[0]',
      'DOGE is not an asset of the registry',
    ],
    [
      deny({ networks: ['BTC', 'DOGE'] }),
      'rules[0].match.networks[1]',
      'DOGE is not a network of the registry',
    ],
    [
      to({ network: 'DOGE', address: 'x' }),
      `${at}.network`,
      'DOGE is not a network of the registry',
    ],
    [
      to({ network: 'BTC', address: 'not-valid' }),
      `${at}.address`,
      'is not a valid address of BTC',
    ],
    [
      to({ network: 'ETH', address: '0xAB' }),
      `${at}.address`,
      'must be in its canonical form, 0xab',
      lowerCase,
    ],
    [
      [allow('a', { approvals: [{ group: 'x', k: 1 }] })],
      'rules[0].approvals[0].group',
      'x is not a group of the document',
    ],
    [deny({ people: ['x'] }), 'rules[0].match.people[0]', 'x is not a person of the document'],
    [
      [allow('a', { amount: { min: { DOGE: '1' } } })],
      'rules[0].amount.min.DOGE',
      'DOGE is not an asset of the registry',
    ],
    [
      [allow('a', { fee_max: { DOGE: '1' } })],
      'rules[0].fee_max.DOGE',
      'DOGE is not an asset of the registry',
    ],
    [
      [
        allow('a', {
          windows: [{ name: 'day', hours: 24, per: 'sub_account', max: { DOGE: '1' } }],
        }),
      ],
      'rules[0].windows[0].max.DOGE',
      'DOGE is not an asset of the registry',
    ],
  ] as [unknown[], string, string, typeof registry?][])
    assert.throws(() => compile(checkDocument(documentWith(rules)), names), {
      path,
      message: `${path}: ${message}`,
    })
})

test('each group that a document names must be one of its groups', () => {
  const unknown = { approvals: [{ group: 'x', k: 1 }] }
  const change = documentWith()['change'] as object
  const window = { name: 'day', hours: 24, per: 'sub_account', count: 1 }
  for (const [rules, fields, path] of [
    [[], { change: { ...change, veto: 'x' } }, 'change.veto'],
    [[], { change: { ...change, ...unknown } }, 'change.approvals[0].group'],
    [[], { stop: { group: 'x' } }, 'stop.group'],
    [[], { resume: unknown }, 'resume.approvals[0].group'],
    [[], { enrolment: unknown }, 'enrolment.approvals[0].group'],
    [[], { orders: unknown }, 'orders.approvals[0].group'],
    [[{ id: 'r', effect: 'require', match: {}, ...unknown }], {}, 'rules[0].approvals[0].group'],
    [
      [{ id: 'l', effect: 'limit', match: {}, windows: [window], above: unknown }],
      {},
      'rules[0].above.approvals[0].group',
    ],
    [[], { groups: { ...(documentWith()['groups'] as object), x: ['stranger'] } }, 'groups.x[0]'],
  ] as [unknown[], object, string][])
    assert.throws(() => policyWith(rules, fields), { code: 'UNKNOWN_GROUP', path })
})

test('a rule that lists addresses does not fit an own address that is not listed', () => {
  const addresses = [{ network: 'BTC', address: 'bc1qpayee' }]
  for (const own of ['sub_account', 'workspace'] as const)
    assert.equal(
      whyNotMatched({ to: { addresses } }, { to: { address: 'bc1qown', tag: null, own } }),
      'to: bc1qown is not listed',
    )
})

test('a full limit states each of its windows, and what it does', () => {
  const windows = ['day', 'week'].map((name) => ({ name, hours: 24, per: 'api_key', count: 1 }))
  const limit = { id: 'cap', effect: 'limit', match: {}, windows, above: 'deny' }
  const uses = [{ step: 'other', age_s: 60, amounts: new Map([['BTC', 1n]]) }]
  const { effect, tried } = evaluate(
    policyWith([allow('a'), limit]),
    actWith(),
    contextWith({ usesOf: () => uses }),
  )
  const full = (name: string) => `windows.${name}: 1 of 1 acts are used, and 1 more do not fit`
  assert.equal(effect, 'deny')
  assert.deepEqual(tried[0], {
    rule: 'cap',
    effect: 'limit',
    fits: true,
    why: `${full('day')}; ${full('week')}; denies the act`,
  })
})

test('of rules that miss equally many approvals, the one that needs the fewest is chosen', () => {
  const policy = policyWith([
    allow('a', { approvals: [{ group: 'admins', k: 2 }] }),
    allow('b', { approvals: [{ group: 'treasury', k: 1 }] }),
    allow('c', { approvals: [{ group: 'treasury', k: 2 }] }),
  ])
  const approvals = approvalsOf('bob', 'carol', 'dan', 'erin')
  const { effect, via } = evaluate(policy, actWith(), contextWith({ approvals }))
  assert.deepEqual([effect, via], ['allow', 'b'])
})

test('an approval of a transfer counts until six days after its request', () => {
  const policy = policyWith([
    allow('a', { approvals: [{ group: 'treasury', k: 1 }], approval_s: 518_400 }),
  ])
  const effect = (age: number) =>
    evaluate(
      policy,
      actWith({ issued_at: NOW - age }),
      contextWith({ approvals: approvalsOf('dan') }),
    ).effect
  assert.deepEqual([effect(518_399), effect(518_400)], ['allow', 'approve'])
})

test('the nearest rule is stated only of an act that no rule denies and no allow fits', () => {
  const narrow = allow('b', { amount: { max: { BTC: '0.01' } } })
  const nearest = (rules: unknown[], via?: string) =>
    evaluate(policyWith(rules), actWith(), contextWith(via === undefined ? {} : { via })).nearest
  assert.equal(nearest([allow('a'), narrow]), null)
  assert.equal(nearest([narrow, { id: 'd', effect: 'deny', match: { assets: ['BTC'] } }]), null)
  // A named rule does not fit, and another one does.
  assert.deepEqual(nearest([allow('a'), narrow], 'b'), {
    rule: 'b',
    why: 'amount: 0.1 BTC is above 0.01',
  })
})
