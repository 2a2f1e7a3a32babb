// Evaluation of acts: the meaning of each effect and each condition, and the explanations.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  actWith,
  allow,
  approvalsOf,
  contextWith,
  documentWith,
  newKey,
  NOW,
  policyWith,
} from '../../testing/documents.ts'
import { PolicyError } from '../error.ts'
import { evaluate } from './evaluate.ts'
import type { Act, Ownership } from '../act.ts'

const effectOf = (rules: readonly unknown[], act: Partial<Act> = {}) =>
  evaluate(policyWith(rules), actWith(act), contextWith()).effect

/** Asserts which acts the conditions of an allow and a deny match. */
function assertMatches(match: object, cases: readonly [Partial<Act>, boolean, boolean?][]): void {
  for (const [act, fits, denies = fits] of cases) {
    const label = `${JSON.stringify(match)} ${JSON.stringify({ ...act, amount: undefined })}`
    assert.equal(
      effectOf([allow('a', { match: { action: ['transfer'], assets: 'any', ...match } })], act),
      fits ? 'allow' : 'deny',
      `allow ${label}`,
    )
    assert.equal(
      effectOf([allow('a'), { id: 'd', effect: 'deny', match }], act),
      denies ? 'deny' : 'allow',
      `deny ${label}`,
    )
  }
}

test('denies what no allow fits, and allows what one allow fits', () => {
  const none = evaluate(policyWith([]), actWith(), contextWith())
  assert.deepEqual(none, {
    effect: 'deny',
    via: null,
    needs: [],
    approvedBy: [],
    tried: [],
    nearest: null,
    fitsAbove: false,
    windows: [],
  })
  const one = evaluate(policyWith([allow('a')]), actWith(), contextWith())
  assert.equal(one.effect, 'allow')
  assert.equal(one.via, 'a')
  assert.deepEqual(one.tried, [{ rule: 'a', effect: 'allow', fits: true, why: null }])
})

test('a matching deny denies the act whatever else allows it', () => {
  const result = evaluate(
    policyWith([allow('a'), { id: 'no', effect: 'deny', match: { assets: ['BTC'] } }]),
    actWith(),
    contextWith(),
  )
  assert.equal(result.effect, 'deny')
  assert.equal(result.nearest, null)
  assert.deepEqual(result.tried[0], {
    rule: 'no',
    effect: 'deny',
    fits: true,
    why: 'denies the act',
  })
})

test('matches actions, networks, API keys, people and assets by their lists', () => {
  assert.equal(effectOf([allow('a')], { action: 'refund' }), 'deny')
  assertMatches({ networks: ['BTC'] }, [[{}, true]])
  assertMatches({ networks: ['ETH'] }, [[{}, false]])
  assertMatches({ api_keys: ['api-alice'] }, [
    [{}, true],
    [{ api_key: 'api-bob' }, false],
  ])
  assertMatches({ people: ['alice'] }, [
    [{}, true],
    [{ api_key: 'api-bob' }, false],
    // Whose request it is cannot be decided, so only an allow does not match it.
    [{ api_key: 'unlisted' }, false, true],
  ])
  assertMatches({ assets: ['ETH', 'BTC'] }, [
    [{}, true],
    [{ asset: 'XRP', network: 'XRP' }, false],
  ])
})

test('matches sub-accounts by list or prefix, and excludes by list or prefix', () => {
  assertMatches({ sub_accounts: ['main'] }, [
    [{}, true],
    [{ sub_account: 'main2' }, false],
  ])
  assertMatches({ sub_accounts: { prefix: 'cust-' } }, [
    [{ sub_account: 'cust-1' }, true],
    [{ sub_account: 'acust-1' }, false],
  ])
  assertMatches({ sub_accounts_not: ['main'] }, [
    [{}, false],
    [{ sub_account: 'x' }, true],
  ])
  assertMatches({ sub_accounts_not: { prefix: 'cust-' } }, [
    [{ sub_account: 'cust-1' }, false],
    [{}, true],
  ])
})

test('matches destinations by address and tag', () => {
  const xrp = (tag: string | null, address = 'rPayee') => ({
    asset: 'XRP',
    network: 'XRP',
    to: { address, tag, own: null },
  })
  assertMatches({ to: { addresses: [{ network: 'XRP', address: 'rPayee', tag: '7' }] } }, [
    [xrp('7'), true],
    [xrp('8'), false],
    [xrp(null), false],
    [xrp('7', 'rOther'), false],
    [{ to: { address: 'rPayee', tag: '7', own: null } }, false],
  ])
  // Without a tag: an allow matches only payments without tag, a deny matches every tag.
  assertMatches({ to: { addresses: [{ network: 'XRP', address: 'rPayee' }] } }, [
    [xrp(null), true],
    [xrp('8'), false, true],
  ])
  assertMatches({ to: { addresses: [{ network: 'XRP', address: 'rPayee', any_tag: true }] } }, [
    [xrp(null), true],
    [xrp('8'), true],
  ])
  assertMatches({ to: 'any' }, [[xrp('8'), true]])
})

test('a deny by address matches all addresses of the payment key, an allow only the address', () => {
  const ada = (address: string) => ({
    asset: 'ADA',
    network: 'ADA',
    to: { address, tag: null, own: null },
  })
  assertMatches({ to: { addresses: [{ network: 'ADA', address: 'baseKey1' }] } }, [
    [ada('baseKey1'), true],
    [ada('entKey1'), false, true],
    [ada('entKey2'), false],
  ])
})

test('an address that contains its tag is the account with that tag', () => {
  const pay = (address: string, tag: string | null) => ({
    asset: 'XLM',
    network: 'XLM',
    to: { address, tag, own: null },
  })
  const to = (fields: object) => ({
    to: { addresses: [{ network: 'XLM', address: 'GB', ...fields }] },
  })
  assertMatches(to({ tag: '7' }), [
    [pay('M7xGB', null), true],
    [pay('M8xGB', null), false],
    [pay('GB', '7'), true],
    [pay('M7xGC', null), false],
  ])
  assertMatches(to({}), [
    [pay('GB', null), true],
    [pay('M7xGB', null), false, true],
  ])
  assertMatches(to({ any_tag: true }), [[pay('M7xGB', null), true]])
  // The tag may be that of a customer, so an own account with a tag must be listed in an allow.
  assertMatches({ to: { own: 'workspace' } }, [
    [{ ...pay('M7xGB', null), to: { address: 'M7xGB', tag: null, own: 'workspace' } }, false, true],
  ])
})

test('compile refuses addresses that contain their tag', () => {
  const why = (network: string, address: string, tag?: string) => {
    try {
      policyWith([
        allow('a', {
          match: {
            action: ['transfer'],
            assets: 'any',
            to: { addresses: [{ network, address, ...(tag === undefined ? {} : { tag }) }] },
          },
        }),
      ])
      return null
    } catch (error) {
      assert.ok(error instanceof PolicyError)
      return error.message.replace('rules[0].match.to.addresses[0].', '')
    }
  }
  assert.equal(why('XRP', 'rB', '5'), null)
  // A document of an earlier version may contain such a tag, which matches no payment.
  assert.equal(why('XRP', 'rB', '05'), null)
  assert.equal(
    why('XLM', 'M7xGB'),
    'address: contains a tag: write the classic address GB, with tag "7"',
  )
})

test('matches own addresses; in an allow an address with a tag is never own', () => {
  const to = (own: Ownership, tag: string | null = null) => ({
    to: { address: 'bc1qown', tag, own },
  })
  assertMatches({ to: { own: 'sub_account' } }, [
    [to('sub_account'), true],
    [to('workspace'), false],
    [to(null), false],
    [to('sub_account', '1'), false, true],
  ])
  assertMatches({ to: { own: 'workspace' } }, [
    [to('sub_account'), true],
    [to('workspace'), true],
    [to(null), false],
    [to('workspace', '1'), false, true],
  ])
})

test('a destination that may be an own address matches every rule except an allow', () => {
  for (const own of ['sub_account', 'workspace'])
    assertMatches({ to: { own } }, [
      [{ to: { address: 'bc1qown', tag: null, own: 'unknown' } }, false, true],
      [{ to: { address: 'bc1qown', tag: '1', own: 'unknown' } }, false, true],
    ])
  // A listed address is listed whether it is an own one or not.
  const listed = { addresses: [{ network: 'BTC', address: 'bc1qown' }], own: 'workspace' }
  assertMatches({ to: listed }, [[{ to: { address: 'bc1qown', tag: null, own: 'unknown' } }, true]])
})

test('compares amounts exactly, bounds included, and an unnamed asset does not fit', () => {
  const range = allow('a', { amount: { min: { ETH: '0.000000000000000001' }, max: { ETH: '10' } } })
  const eth = (amount: bigint) => ({ asset: 'ETH', network: 'ETH', amount })
  const ether = 10n ** 18n
  for (const [amount, effect] of [
    [0n, 'deny'],
    [1n, 'allow'],
    [10n * ether, 'allow'],
    [10n * ether + 1n, 'deny'],
    [2n ** 200n, 'deny'],
  ] as const)
    assert.equal(effectOf([range], eth(amount)), effect, String(amount))
  assert.equal(effectOf([range]), 'deny')
  // Rules that restrict apply to assets that their amounts do not name.
  const deny = { id: 'd', effect: 'deny', match: {}, amount: { min: { ETH: '5' } } }
  assert.equal(effectOf([allow('a'), deny], eth(5n * ether - 1n)), 'allow')
  assert.equal(effectOf([allow('a'), deny], eth(5n * ether)), 'deny')
  assert.equal(effectOf([allow('a'), deny]), 'deny')
})

test('states whether only the minimum of an allow is in the way of a denied act', () => {
  const least = (fields: object = {}) =>
    allow('large', { amount: { min: { BTC: '1' }, max: { BTC: '9' } }, ...fields })
  const fitsAbove = (rules: unknown[], act: object = {}) =>
    evaluate(policyWith(rules), actWith({ amount: 70_000_000n, ...act }), contextWith()).fitsAbove
  assert.equal(fitsAbove([least()]), true)
  assert.equal(
    fitsAbove([allow('other', { match: { action: ['transfer'], assets: ['ETH'] } }), least()]),
    true,
  )
  // The act is allowed, or has the minimum, or is above the maximum.
  assert.equal(fitsAbove([allow('any'), least()]), false)
  assert.equal(fitsAbove([least()], { amount: 100_000_000n }), false)
  assert.equal(fitsAbove([least()], { amount: 1_000_000_000n }), false)
  // Something else is in the way too.
  assert.equal(fitsAbove([least({ match: { action: ['refund'], assets: 'any' } })]), false)
  assert.equal(fitsAbove([least({ fee_max: { BTC: '0.000005' } })]), false)
  assert.equal(fitsAbove([allow('eth', { amount: { min: { ETH: '1' } } })]), false)
  assert.equal(fitsAbove([least(), { id: 'no', effect: 'deny', match: {} }]), false)
  assert.equal(fitsAbove([]), false)
})

test('explains each rule, and names the nearest with everything that does not hold', () => {
  const { tried, nearest } = evaluate(
    policyWith([
      allow('small', { amount: { max: { BTC: '0.5' } }, fee_max: { BTC: '0.00001' } }),
      allow('main-only', {
        match: { action: ['refund'], assets: ['ETH'], sub_accounts: ['other'] },
      }),
      allow('eth', { amount: { max: { ETH: '1' } } }),
    ]),
    actWith({ amount: 70_000_000n }),
    contextWith(),
  )
  assert.deepEqual(
    tried.map(({ rule, fits, why }) => [rule, fits, why]),
    [
      ['eth', false, 'amount: max does not name BTC'],
      ['main-only', false, 'action: transfer is not one of refund'],
      ['small', false, 'amount: 0.7 BTC is above 0.5'],
    ],
  )
  assert.deepEqual(nearest, { rule: 'eth', why: 'amount: max does not name BTC' })
  const fee = evaluate(
    policyWith([allow('small', { fee_max: { BTC: '0.000005' } })]),
    actWith(),
    contextWith(),
  )
  assert.deepEqual(fee.nearest, {
    rule: 'small',
    why: 'fee_max: 0.00001 BTC is above 0.000005',
  })
})

test('needs approvals, counts those that are there, and then allows', () => {
  const policy = policyWith([
    allow('big', {
      approvals: [
        { group: 'treasury', k: 2 },
        { group: 'admins', k: 1 },
      ],
    }),
  ])
  const resultOf = (...names: string[]) =>
    evaluate(policy, actWith(), contextWith({ approvals: approvalsOf(...names) }))
  const waiting = resultOf('dan')
  assert.equal(waiting.effect, 'approve')
  assert.equal(waiting.via, 'big')
  assert.deepEqual(waiting.needs, [
    { group: 'admins', k: 1, have: 0 },
    { group: 'treasury', k: 2, have: 1 },
  ])
  assert.equal(resultOf('dan', 'erin', 'bob').effect, 'allow')
  // Alice owns the API key that requests the act.
  assert.equal(resultOf('dan', 'erin', 'alice').effect, 'approve')
  assert.equal(resultOf('dan', 'dan', 'bob').effect, 'approve')
})

test('chooses the rule that misses the fewest approvals, then needs the fewest, then by ID', () => {
  const policy = policyWith([
    allow('a', { approvals: [{ group: 'treasury', k: 1 }] }),
    allow('b', { approvals: [{ group: 'admins', k: 2 }] }),
    allow('c', { approvals: [{ group: 'compliance', k: 1 }] }),
  ])
  const chosen = (...names: string[]) => {
    const { effect, via } = evaluate(
      policy,
      actWith(),
      contextWith({ approvals: approvalsOf(...names) }),
    )
    return `${effect} ${via}`
  }
  assert.equal(chosen(), 'approve a')
  assert.equal(chosen('bob', 'carol'), 'allow b')
  assert.equal(chosen('compliance'), 'allow c')
  assert.equal(chosen('bob', 'carol', 'compliance', 'dan'), 'allow a')
})

test('a require adds its approvals to every way; a group that both name needs the larger k', () => {
  const policy = policyWith([
    allow('a', { approvals: [{ group: 'treasury', k: 1 }] }),
    allow('b', { approvals: [{ group: 'admins', k: 1 }] }),
    {
      id: 'travel',
      effect: 'require',
      match: {},
      approvals: [
        { group: 'compliance', k: 1 },
        { group: 'treasury', k: 2 },
      ],
    },
  ])
  const result = evaluate(policy, actWith(), contextWith())
  assert.equal(result.via, 'a')
  assert.deepEqual(result.needs, [
    { group: 'compliance', k: 1, have: 0 },
    { group: 'treasury', k: 2, have: 0 },
  ])
  assert.deepEqual(result.tried[0], {
    rule: 'travel',
    effect: 'require',
    fits: true,
    why: 'adds 1 of compliance and 2 of treasury',
  })
})

test('an API key without an owner fits no rule with approvals, unless the rule counts initiators', () => {
  const rule = { approvals: [{ group: 'treasury', k: 1 }] }
  const act = { api_key: 'unlisted' }
  const denied = evaluate(policyWith([allow('a', rule)]), actWith(act), contextWith())
  assert.equal(denied.effect, 'deny')
  assert.match(denied.nearest?.why ?? '', /no owner/)
  assert.equal(effectOf([allow('a', { ...rule, initiator: true })], act), 'approve')
  const required = { id: 'r', effect: 'require', match: {}, ...rule }
  assert.equal(effectOf([allow('a'), required], act), 'deny')
})

test('the person of an enrolment owns a key that the document lists for no person', () => {
  const rules = [allow('a', { approvals: [{ group: 'treasury', k: 2 }] })]
  const judge = (act: Partial<Act>, ...by: string[]) =>
    evaluate(policyWith(rules), actWith(act), contextWith({ approvals: approvalsOf(...by) }))
  const bound = { api_key: 'unlisted', person: 'dan' }
  assert.equal(judge(bound, 'erin', 'frank').effect, 'allow')
  const own = judge(bound, 'dan', 'erin')
  assert.deepEqual([own.effect, own.approvedBy], ['approve', ['erin']])
  const toPeople = (people: string[]) => [
    allow('p', { match: { action: ['transfer'], assets: 'any', people } }),
  ]
  assert.equal(effectOf(toPeople(['dan']), bound), 'allow')
  assert.equal(effectOf(toPeople(['alice']), bound), 'deny')
})

test('the document takes precedence over the person of an enrolment', () => {
  const rules = [allow('a', { approvals: [{ group: 'admins', k: 2 }] })]
  const { effect, approvedBy } = evaluate(
    policyWith(rules),
    actWith({ api_key: 'api-alice', person: 'dan' }),
    contextWith({ approvals: approvalsOf('alice', 'bob') }),
  )
  assert.deepEqual([effect, approvedBy], ['approve', ['bob']])
})

test('a person of an enrolment who is not in the document owns no key', () => {
  const rules = [allow('a', { approvals: [{ group: 'treasury', k: 1 }] })]
  for (const person of ['stranger', 'constructor', '', undefined])
    assert.equal(effectOf(rules, { api_key: 'unlisted', person }), 'deny', String(person))
})

test('a rule whose approvals can never be reached does not fit', () => {
  const rules = [allow('a', { approvals: [{ group: 'admins', k: 3 }] })]
  assert.equal(effectOf(rules, { api_key: 'api-dan' }), 'approve')
  const own = evaluate(policyWith(rules), actWith(), contextWith())
  assert.equal(own.effect, 'deny')
  assert.match(own.nearest?.why ?? '', /3 of admins cannot be reached/)
})

test('a rule does not fit if all approvals together are more than an order carries', () => {
  const names = ['alice', 'bob', 'carol', 'dan', 'erin', 'frank', 'compliance']
  const more = ['gina', 'hugo', 'ida'].map((id) => ({
    id,
    name: id,
    api_keys: [],
    keys: [newKey('k1').key],
  }))
  const { people } = documentWith() as { people: object[] }
  const policyOf = (k: number) =>
    policyWith(
      [
        allow('a', { approvals: [{ group: 'first', k: 4 }] }),
        { id: 'r', effect: 'require', match: {}, approvals: [{ group: 'second', k }] },
      ],
      {
        people: [...people, ...more],
        groups: {
          admins: ['alice', 'bob', 'carol'],
          first: names,
          second: [...names, ...more.map(({ id }) => id)],
        },
      },
    )
  assert.equal(evaluate(policyOf(4), actWith(), contextWith()).effect, 'approve')
  const denied = evaluate(policyOf(5), actWith(), contextWith())
  assert.equal(denied.effect, 'deny')
  assert.match(denied.nearest?.why ?? '', /9 are needed, and an order carries at most 8/)
})

test('a forward passes by the recorded approvals of its standing rule until a key is suspended', () => {
  const policy = policyWith([
    allow('f', {
      match: { action: ['forward'], assets: 'any' },
      approvals: [{ group: 'treasury', k: 1 }],
    }),
  ])
  const forward = actWith({
    action: 'forward',
    issued_at: NOW - 30 * 86_400,
    standing: { min_amount: 1n, daily_cap: 100_000_000n, ends_at: NOW + 86_400 },
  })
  const [approval] = approvalsOf('dan') as [ReturnType<typeof approvalsOf>[0]]
  const effect = (fields: object) => evaluate(policy, forward, contextWith(fields)).effect
  const recorded = [{ ...approval, recorded_at: approval.at }]
  const late = { now_s: approval.expires }
  assert.equal(effect({ approvals: recorded, ...late }), 'allow')
  assert.equal(effect({ approvals: [approval], ...late }), 'approve')
  assert.equal(effect({ approvals: recorded, suspended: new Set(['dan/k1']) }), 'approve')
})

test('above a limit, recorded approvals of a standing rule count until they are as old as its window', () => {
  const limit = (hours: number, k: number) => ({
    id: `cap-${hours}`,
    effect: 'limit',
    match: { action: ['forward'] },
    windows: [{ name: 'day', hours, per: 'sub_account', count: 1 }],
    above: { approvals: [{ group: 'treasury', k }] },
  })
  const forward = actWith({
    action: 'forward',
    standing: { min_amount: 1n, daily_cap: 100_000_000n, ends_at: NOW + 9_000_000 },
  })
  const way = allow('f', {
    match: { action: ['forward'], assets: 'any' },
    approvals: [{ group: 'treasury', k: 1 }],
  })
  const used = [{ step: 'other', age_s: 5, amounts: new Map<string, bigint>() }]
  const effect = (rules: readonly unknown[], age_s: number, uses = used) =>
    evaluate(
      policyWith([way, ...rules]),
      forward,
      contextWith({
        approvals: approvalsOf('dan').map((each) => ({
          ...each,
          at: NOW - age_s,
          expires: NOW - age_s + 600,
          recorded_at: NOW - age_s,
        })),
        usesOf: () => uses,
      }),
    ).effect
  assert.equal(effect([limit(24, 1)], 86_399), 'allow')
  assert.equal(effect([limit(24, 1)], 86_400), 'approve')
  // The limit has room, so only the rule's own approvals count.
  assert.equal(effect([limit(24, 1)], 86_400, []), 'allow')
  // The shortest window of all limits that are exceeded decides.
  assert.equal(effect([limit(24, 1), limit(1, 1)], 3_600), 'approve')
  assert.equal(effect([limit(24, 1), limit(1, 1)], 3_599), 'allow')
})

test('a named rule is checked; another one that fits does not replace it', () => {
  const policy = policyWith([allow('a'), allow('b', { approvals: [{ group: 'admins', k: 1 }] })])
  const effectVia = (via: string) => {
    const { effect, via: used } = evaluate(policy, actWith(), contextWith({ via }))
    return [effect, used]
  }
  assert.deepEqual(effectVia('a'), ['allow', 'a'])
  assert.deepEqual(effectVia('b'), ['approve', 'b'])
  assert.deepEqual(effectVia('c'), ['deny', null])
  const narrow = policyWith([allow('a'), allow('b', { amount: { max: { BTC: '0.01' } } })])
  assert.equal(evaluate(narrow, actWith(), contextWith({ via: 'b' })).effect, 'deny')
})

test('refuses an act that contradicts itself, with the field', () => {
  const policy = policyWith([allow('a')])
  for (const [act, path] of [
    [{ workspace: 'other' }, 'workspace'],
    [{ network: 'ETH' }, 'network'],
    [{ amount: -1n }, 'amount'],
    [{ fee: { max: 2n, limit: 1n } }, 'fee.max'],
    [{ action: 'forward' }, 'standing'],
    [{ action: 'stake' }, 'resource'],
    [{ to: { address: 'not canonical', tag: null, own: null } }, 'to.address'],
    [{ asset: 'DOGE' }, 'asset'],
    [{ asset: 'constructor' }, 'asset'],
  ] as [Partial<Act>, string][])
    assert.throws(
      () => evaluate(policy, actWith(act), contextWith()),
      (error) => error instanceof PolicyError && error.path === path,
      path,
    )
})

test('compile refuses unknown assets, groups and people, and amounts with too many decimals', () => {
  for (const [rules, path] of [
    [[allow('a', { amount: { max: { DOGE: '1' } } })], 'rules[0].amount.max.DOGE'],
    [[allow('a', { amount: { max: { BTC: '0.000000001' } } })], 'rules[0].amount.max.BTC'],
    [[allow('a', { approvals: [{ group: 'x', k: 1 }] })], 'rules[0].approvals[0].group'],
    [[allow('a', { approvals: [{ group: 'constructor', k: 1 }] })], 'rules[0].approvals[0].group'],
    [
      [allow('a', { match: { action: ['transfer'], assets: 'any', people: ['x'] } })],
      'rules[0].match.people[0]',
    ],
    [[{ id: 'd', effect: 'deny', match: { assets: ['DOGE'] } }], 'rules[0].match.assets[0]'],
    [[{ id: 'd', effect: 'deny', match: { networks: ['DOGE'] } }], 'rules[0].match.networks[0]'],
    ...[
      [{ network: 'DOGE', address: 'x' }, 'network'],
      [{ network: 'BTC', address: 'not-valid' }, 'address'],
    ].map(
      ([address, field]) =>
        [
          [{ id: 'd', effect: 'deny', match: { to: { addresses: [address] } } }],
          `rules[0].match.to.addresses[0].${field as string}`,
        ] as const,
    ),
  ] as const)
    assert.throws(
      () => policyWith(rules),
      (error) => error instanceof PolicyError && error.path === path,
      path,
    )
})
