// Policy documents: what is accepted, and what is refused with the name of the field.
import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { test } from 'node:test'
import { allow, documentWith, keyOf, newKey } from '../../testing/documents.ts'
import { PolicyError, type PolicyErrorCode } from '../error.ts'
import { LIMITS } from '../limits.ts'
import { canonicalText, checkDocument, documentHash, readDocument } from './read.ts'

type Fields = Record<string, unknown>

function refuses(document: unknown, code: PolicyErrorCode, path: string, message?: RegExp): void {
  assert.throws(
    () => readDocument(JSON.stringify(document)),
    (error) => {
      assert.ok(error instanceof PolicyError, String(error))
      assert.deepEqual([error.code, error.path], [code, path], error.message)
      if (message !== undefined) assert.match(error.message, message)
      return true
    },
  )
}
const withRule = (fields: object) => documentWith([{ ...allow('pay'), ...fields }])

test('reads a document, and its hash is that of the domain and the canonical text', () => {
  const value = documentWith([allow('pay', { amount: { max: { BTC: '0.50' } } })])
  const document = readDocument(JSON.stringify(value, null, 2))
  assert.deepEqual(document, value)
  const text = canonicalText(document)
  assert.ok(text.startsWith('{"change":{"approvals":[{"group":"admins","k":2}],"delay_s":86400'))
  assert.equal(
    documentHash(document),
    createHash('sha256').update(`custody/policy/v1\n${text}`).digest('hex'),
  )
  const reordered = Object.fromEntries(Object.entries(value).reverse())
  assert.equal(documentHash(checkDocument(reordered)), documentHash(document))
})

test('refuses unknown fields at every depth, and names them', () => {
  refuses(documentWith([], { extra: 1 } as object), 'SHAPE', 'extra', /is not a field/)
  refuses(withRule({ priority: 1 }), 'SHAPE', 'rules[0].priority')
  refuses(
    withRule({ match: { action: ['transfer'], assets: 'any', ip: '::1' } }),
    'SHAPE',
    'rules[0].match.ip',
  )
  refuses(withRule({ amount: { max: { BTC: '1' }, avg: '1' } }), 'SHAPE', 'rules[0].amount.avg')
  refuses(
    documentWith([], {
      change: { approvals: [{ group: 'admins', k: 1, n: 2 }], delay_s: 1, veto: 'a' },
    }),
    'SHAPE',
    'change.approvals[0].n',
  )
})

test('refuses fields of later versions with the field and the reason', () => {
  const cases: [object, string, RegExp][] = [
    [documentWith([], { valuation: { usd: {} } } as object), 'valuation', /USD/],
    [documentWith([], { book: {} } as object), 'book', /address book/],
    [documentWith([], { panel_approvals: true } as object), 'panel_approvals', /panel/],
    [withRule({ when: {} }), 'rules[0].when', /time of day/],
    [withRule({ call: [] }), 'rules[0].call', /contract calls/],
    [withRule({ fee_rate_max: '1' }), 'rules[0].fee_rate_max', /fee_max/],
    [withRule({ amount: { usd_max: '1' } }), 'rules[0].amount.usd_max', /USD/],
    [withRule({ amount: { total: '1' } }), 'rules[0].amount.total', /batches/],
    [withRule({ match: { usd_from: '1' } }), 'rules[0].match.usd_from', /USD/],
    [withRule({ match: { to: { book: ['a'] } } }), 'rules[0].match.to.book', /address book/],
    [withRule({ match: { to: { book_not: ['a'] } } }), 'rules[0].match.to.book_not', /address/],
    [
      withRule({ windows: [{ name: 'month', hours: 744, per: 'sub_account', count: 1 }] }),
      'rules[0].windows[0].hours',
      /more than 168 hours/,
    ],
    [
      withRule({ windows: [{ name: 'day', hours: 24, per: 'sub_account', usd: '1' }] }),
      'rules[0].windows[0].usd',
      /USD/,
    ],
    ...(['batch', 'call', 'allowance', 'message', 'drain', 'tank-stake', 'unstake'] as const).map(
      (action): [object, string, RegExp] => [
        withRule({ match: { action: ['transfer', action], assets: 'any' } }),
        'rules[0].match.action[1]',
        new RegExp(`${action}: `),
      ],
    ),
  ]
  for (const [document, path, message] of cases) refuses(document, 'UNSUPPORTED', path, message)
  const rsa = { id: 'x', name: 'X', api_keys: [], keys: [{ ...keyOf('alice').key, alg: 'RS256' }] }
  refuses(documentWith([], { people: [rsa] }), 'UNSUPPORTED', 'people[0].keys[0].alg', /RSA/)
})

test('requires an allow to name its actions and assets, and no other rule', () => {
  refuses(withRule({ match: { action: ['transfer'] } }), 'SHAPE', 'rules[0].match.assets')
  refuses(withRule({ match: { assets: 'any' } }), 'SHAPE', 'rules[0].match.action')
  for (const rule of [
    { id: 'd', effect: 'deny', match: {} },
    { id: 'r', effect: 'require', match: {}, approvals: [{ group: 'admins', k: 1 }] },
    {
      id: 'l',
      effect: 'limit',
      match: {},
      windows: [{ name: 'day', hours: 24, per: 'workspace', count: 9 }],
      above: 'deny',
    },
  ])
    checkDocument(documentWith([rule]))
})

test('refuses values outside their bounds', () => {
  const person = (id: string, keys: unknown[] = []) => ({ id, name: id, api_keys: [], keys })
  const many = (count: number) => Array.from({ length: count }, (_, at) => `p${at}`)
  const cases: [object, string][] = [
    [documentWith(many(LIMITS.rules + 1).map((id) => allow(id))), 'rules'],
    [documentWith([], { people: many(LIMITS.people + 1).map((id) => person(id)) }), 'people'],
    [
      documentWith([], {
        people: [
          person(
            'x',
            many(LIMITS.keysOfPerson + 1).map((id) => newKey(id).key),
          ),
        ],
      }),
      'people[0].keys',
    ],
    [
      documentWith([], { groups: Object.fromEntries(many(51).map((id) => [id, ['alice']])) }),
      'groups',
    ],
    [withRule({ approvals: many(9).map((group) => ({ group, k: 1 })) }), 'rules[0].approvals'],
    [withRule({ approvals: [{ group: 'admins', k: 9 }] }), 'rules[0].approvals[0].k'],
    [
      withRule({ approvals: ['a', 'b', 'c'].map((group) => ({ group, k: 3 })) }),
      'rules[0].approvals',
    ],
    [
      withRule({
        approvals: [
          { group: 'a', k: 1 },
          { group: 'a', k: 1 },
        ],
      }),
      'rules[0].approvals',
    ],
    [withRule({ approval_s: 600 }), 'rules[0]'],
    [withRule({ approvals: [{ group: 'a', k: 1 }], approval_s: 518_401 }), 'rules[0].approval_s'],
    [withRule({ amount: {} }), 'rules[0].amount'],
    [withRule({ amount: { max: {} } }), 'rules[0].amount.max'],
    ...['1e3', '-1', '.5', '1.', '01', ' 1', '1,0', ''].map((text): [object, string] => [
      withRule({ amount: { max: { BTC: text } } }),
      'rules[0].amount.max.BTC',
    ]),
    [withRule({ amount: { max: { BTC: 1 } } }), 'rules[0].amount.max.BTC'],
    ...['BTC to bc1q', 'BTC\u202e', ''].map((asset): [object, string] => [
      withRule({ amount: { max: { [asset]: '1' } } }),
      `rules[0].amount.max.${asset}`,
    ]),
    [
      withRule({
        match: {
          action: ['transfer'],
          assets: 'any',
          to: { addresses: [{ network: 'BTC', address: 'bc1q and bc1p' }] },
        },
      }),
      'rules[0].match.to.addresses[0].address',
    ],
    [withRule({ id: 'Pay' }), 'rules[0].id'],
    [withRule({ windows: [] }), 'rules[0].windows'],
    [
      withRule({ windows: [{ name: 'day', hours: 24, per: 'sub_account' }] }),
      'rules[0].windows[0]',
    ],
    [
      withRule({ windows: [{ name: 'day', hours: 24, per: 'api_key', count: 1, share: '0.5' }] }),
      'rules[0].windows[0]',
    ],
    ...['0', '0.0', '1.0', '1.5', '0.12345'].map((share): [object, string] => [
      withRule({ windows: [{ name: 'day', hours: 24, per: 'workspace', count: 1, share }] }),
      'rules[0].windows[0].share',
    ]),
    [documentWith([], { previous: '1'.repeat(64) }), 'previous'],
    [documentWith([], { number: 2 }), 'previous'],
    [documentWith([], { mode: 'test' }), 'mode'],
    [documentWith([], { v: 2 }), 'v'],
    [documentWith([], { nodes: 'AB'.repeat(32) }), 'nodes'],
  ]
  for (const [document, path] of cases) refuses(document, 'SHAPE', path)
})

test('refuses IDs, API keys, public keys and credentials that occur twice', () => {
  const [alice, bob] = [newKey('k1').key, newKey('k1').key]
  const passkey = (credential: string) => ({
    ...newKey('p').key,
    kind: 'passkey',
    credential,
    rp_id: 'localhost',
    origins: ['http://localhost:24873'],
    device_bound: true,
  })
  const people = (a: Fields, b: Fields) =>
    documentWith([], {
      people: [
        { id: 'a', name: 'A', api_keys: [], keys: [alice], ...a },
        { id: 'b', name: 'B', api_keys: [], keys: [bob], ...b },
      ],
    })
  checkDocument(people({}, {}))
  refuses(people({}, { id: 'a' }), 'SHAPE', 'people[1].id')
  refuses(people({ api_keys: ['x'] }, { api_keys: ['x'] }), 'SHAPE', 'people[1].api_keys[0]')
  refuses(people({}, { keys: [alice] }), 'SHAPE', 'people[1].keys[0].spki')
  refuses(people({ keys: [alice, { ...bob }] }, { keys: [] }), 'SHAPE', 'people[0].keys[1].id')
  const shared = 'c'.repeat(22)
  refuses(
    people({ keys: [passkey(shared)] }, { keys: [passkey(shared)] }),
    'SHAPE',
    'people[1].keys[0].credential',
  )
  refuses(documentWith([allow('x'), allow('x')]), 'SHAPE', 'rules[1].id')
})

test('allows at most 12 windows in all limit rules together', () => {
  const limit = (id: string, count: number) => ({
    id,
    effect: 'limit',
    match: {},
    windows: Array.from({ length: count }, (_, at) => ({
      name: `w${at}`,
      hours: 1,
      per: 'api_key',
      count: 1,
    })),
    above: 'deny',
  })
  const limits = ['a', 'b', 'c'].map((id) => limit(id, 4))
  checkDocument(documentWith(limits))
  refuses(documentWith([...limits, limit('d', 1)]), 'SHAPE', 'rules', /at most 12 windows/)
})

test('refuses text that is too large, not strict JSON, or has numbers that are no integers', () => {
  const refusesText = (text: string, message: RegExp) =>
    assert.throws(
      () => readDocument(text),
      (error) =>
        error instanceof PolicyError && error.code === 'FORMAT' && message.test(error.message),
    )
  refusesText(`"${'x'.repeat(LIMITS.documentBytes)}"`, /larger than 262144 bytes/)
  refusesText(`"${'é'.repeat(LIMITS.documentBytes / 2)}"`, /larger than 262144 bytes/)
  refusesText('{"v":1,"v":1}', /appears twice/)
  refusesText('{"__proto__":{}}', /not allowed/)
  refusesText('{"v":1', /not valid JSON/)
  refusesText('['.repeat(40), /nested deeper/)
  for (const number of ['1.0', '1e0', '-1', '9007199254740993'])
    refusesText(`{"number":${number}}`, /^number: must be an integer/)
})
