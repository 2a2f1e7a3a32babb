// Findings about documents: each code with the document that causes it, and fuzzed documents.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as fc from '../../../../testing/property.ts'
import { MIXED_GROUPS, ruleList } from '../../testing/arbitraries.ts'
import { actWith, allow, documentWith, newKey, policyWith } from '../../testing/documents.ts'
import { newPasskey } from '../../testing/passkeys.ts'
import { registry } from '../../testing/registry.ts'
import { checkDocument, documentHash, readDocument } from '../document/read.ts'
import type { PolicyDocument } from '../document/shape.ts'
import { PolicyError } from '../error.ts'
import type { LintContext } from './finding.ts'
import { lint } from './lint.ts'

const simple = allow('pay', { approvals: [{ group: 'treasury', k: 1 }] })
const lintOf = (
  rules: readonly unknown[],
  fields: Partial<Record<keyof PolicyDocument, unknown>> = {},
  context: Partial<LintContext> = {},
) =>
  lint(checkDocument(documentWith(rules, fields)), {
    registry,
    enrolled: [],
    panelOrigins: [],
    ...context,
  })

/** Asserts the only finding: severity, code and path. */
function finds(
  expected: string,
  rules: readonly unknown[],
  fields: Partial<Record<keyof PolicyDocument, unknown>> = {},
  context: Partial<LintContext> = {},
): void {
  const found = lintOf(rules, fields, context)
  assert.deepEqual(
    found.map(({ severity, code, path }) => `${severity} ${code} ${path}`),
    [expected],
  )
  for (const { message } of found) assert.match(message, /^[A-Z].*\.$/)
}

test('a usual document has no finding', () => {
  assert.deepEqual(lintOf([simple]), [])
})

test('reports groups and people that the document does not define', () => {
  finds('error UNKNOWN_GROUP rules[0].approvals[0].group', [
    allow('a', { approvals: [{ group: 'x', k: 1 }] }),
  ])
  finds('error UNKNOWN_GROUP stop.group', [simple], { stop: { group: 'constructor' } })
  finds('error UNKNOWN_PERSON rules[0].match.people[0]', [
    allow('a', { match: { action: ['transfer'], assets: 'any', people: ['x'] } }),
  ])
  finds('error UNKNOWN_PERSON groups.treasury[0]', [simple], {
    groups: {
      admins: ['alice', 'bob', 'carol'],
      treasury: ['x', 'dan', 'erin'],
      compliance: ['compliance'],
    },
  })
})

test('reports keys that are not usable, and passkeys of the control panel', () => {
  const { people } = documentWith() as { people: object[] }
  const more = (key: object) => ({
    people: [...people, { id: 'zoe', name: 'Zoe', api_keys: [], keys: [key] }],
  })
  finds('error KEY people[7].keys[0].spki', [simple], more({ ...newKey('k').key, alg: 'ES256' }))
  const passkey = {
    ...newKey('k').key,
    kind: 'passkey',
    credential: 'c'.repeat(22),
    rp_id: 'custody.example',
    origins: ['https://custody.example'],
    device_bound: true,
  }
  assert.deepEqual(lintOf([simple], more(passkey)), [])
  finds('error PANEL_ORIGIN people[7].keys[0].origins', [simple], more(passkey), {
    panelOrigins: ['https://custody.example'],
  })
})

test('reports approvals that different people with a key cannot reach', () => {
  const groups = {
    admins: ['alice', 'bob', 'carol'],
    treasury: ['dan', 'erin', 'frank'],
    compliance: ['compliance'],
    same: ['dan'],
  }
  finds('error UNREACHABLE rules[0].approvals', [
    allow('a', { approvals: [{ group: 'treasury', k: 4 }] }),
  ])
  finds(
    'error UNREACHABLE rules[0].above.approvals',
    [
      {
        id: 'l',
        effect: 'limit',
        match: { action: ['stake'] },
        windows: [{ name: 'day', hours: 24, per: 'api_key', count: 1 }],
        above: {
          approvals: [
            { group: 'treasury', k: 3 },
            { group: 'same', k: 1 },
          ],
        },
      },
      simple,
    ],
    { groups },
  )
  finds('error UNREACHABLE resume.approvals', [simple], {
    resume: { approvals: [{ group: 'admins', k: 4 }] },
  })
  const { people } = documentWith() as { people: { id: string }[] }
  finds(
    'error UNREACHABLE rules[0].approvals',
    [allow('a', { approvals: [{ group: 'treasury', k: 3 }] })],
    { people: people.map((each) => (each.id === 'dan' ? { ...each, keys: [] } : each)) },
  )
})

test('reports a document that one lost key would freeze, outside of mode local', () => {
  const change = { approvals: [{ group: 'admins', k: 3 }], delay_s: 86_400, veto: 'admins' }
  finds('error CHANGE_NEEDS_ALL change.approvals', [simple], { change })
  finds('warning NEEDS_ALL change.approvals', [simple], { change, mode: 'local' })
  finds('warning NEEDS_ALL rules[0].approvals', [
    allow('a', { approvals: [{ group: 'compliance', k: 1 }] }),
  ])
  const fast = { approvals: [{ group: 'admins', k: 2 }], delay_s: 3_599, veto: 'admins' }
  finds('error DELAY_TOO_SHORT change.delay_s', [simple], { change: fast })
  assert.deepEqual(lintOf([simple], { change: fast, mode: 'local' }), [])
})

test('reports unknown assets, and amounts that a registry cannot hold', () => {
  finds('error UNKNOWN_ASSET rules[0].amount.max.DOGE', [
    { ...simple, amount: { max: { DOGE: '1' } } },
  ])
  finds('error AMOUNT rules[0].amount.max.BTC', [
    { ...simple, amount: { max: { BTC: '0.000000001' } } },
  ])
  finds('error UNKNOWN_ASSET rules[0].match.to.addresses[0].address', [
    {
      ...simple,
      match: {
        action: ['transfer'],
        assets: 'any',
        to: { addresses: [{ network: 'BTC', address: 'not-valid' }] },
      },
    },
  ])
})

test('reports rules that would restrict assets that their amounts do not name', () => {
  const deny = (match: object, amount: object) => ({ id: 'd', effect: 'deny', match, amount })
  finds('error UNNAMED_ASSET rules[1].amount.min', [simple, deny({}, { min: { BTC: '1' } })])
  finds('error UNNAMED_ASSET rules[1].amount.max', [
    simple,
    deny({ assets: ['BTC', 'XRP'] }, { max: { BTC: '1' } }),
  ])
  assert.deepEqual(lintOf([simple, deny({ assets: ['BTC'] }, { min: { BTC: '1' } })]), [])
  const limit = (match: object, max: object) => ({
    id: 'l',
    effect: 'limit',
    match,
    windows: [{ name: 'day', hours: 24, per: 'workspace', max }],
    above: 'deny',
  })
  finds('error UNNAMED_ASSET rules[1].windows[0].max', [simple, limit({}, { BTC: '1' })])
  finds('error FEE_COIN rules[1].windows[0].max', [
    simple,
    limit({ assets: ['USDC_SOL'] }, { USDC_SOL: '1' }),
  ])
  assert.deepEqual(
    lintOf([simple, limit({ assets: ['USDC_SOL'] }, { USDC_SOL: '1', SOL: '1' })]),
    [],
  )
})

test('reports a share in which no act fits', () => {
  finds('error EMPTY_SHARE rules[0].windows[0]', [
    allow('a', { windows: [{ name: 'day', hours: 24, per: 'workspace', count: 3 }] }),
  ])
  finds('error EMPTY_SHARE rules[0].windows[0]', [
    allow('a', {
      windows: [{ name: 'day', hours: 24, per: 'workspace', max: { BTC: '0.00000003' } }],
    }),
  ])
})

test('warns of rules that have no effect or more effect than expected', () => {
  finds('warning NOTHING_ALLOWED rules', [])
  finds('warning EVERYTHING_DENIED rules[1]', [simple, { id: 'd', effect: 'deny', match: {} }])
  finds('warning CONTAINED rules[0]', [
    allow('b', {
      match: { action: ['transfer'], assets: ['BTC'] },
      approvals: [{ group: 'treasury', k: 2 }],
    }),
    simple,
  ])
  finds('warning CONTAINED rules[1]', [simple, { ...simple, id: 'again' }])
  const window = { name: 'day', hours: 24, per: 'api_key', count: 1 }
  finds('warning WINDOWS_ADD_UP rules[1].windows', [
    allow('a', { windows: [window] }),
    allow('b', { windows: [window] }),
  ])
  finds(
    'warning COMBINED_UNREACHABLE rules[0]',
    [
      allow('a', { approvals: [{ group: 'treasury', k: 3 }] }),
      { id: 'r', effect: 'require', match: {}, approvals: [{ group: 'other', k: 2 }] },
    ],
    {
      groups: {
        admins: ['alice', 'bob', 'carol'],
        treasury: ['dan', 'erin', 'frank', 'alice'],
        other: ['dan', 'erin', 'frank', 'alice'],
      },
    },
  )
})

test('reports a document that does not follow the one in force, and windows that end', () => {
  const windows = [{ name: 'day', hours: 24, per: 'sub_account', count: 9 }]
  const previous = checkDocument(documentWith([{ ...simple, windows }]))
  const next = { number: 2, previous: documentHash(previous) }
  assert.deepEqual(lintOf([{ ...simple, windows }], next, { previous }), [])
  finds('warning WINDOW_GONE rules', [simple], next, { previous })
  finds(
    'warning WINDOW_GONE rules',
    [{ ...simple, windows: [{ ...windows[0], per: 'api_key' }] }],
    next,
    { previous },
  )
  const rules = [{ ...simple, windows }]
  finds('error NOT_SUCCESSOR number', rules, { ...next, number: 3 }, { previous })
  finds('error NOT_SUCCESSOR previous', rules, { ...next, previous: 'ab'.repeat(32) }, { previous })
  finds('error NOT_SUCCESSOR mode', rules, { ...next, mode: 'local' }, { previous })
  finds('error NOT_SUCCESSOR nodes', rules, { ...next, nodes: 'cd'.repeat(32) }, { previous })
})

test('warns of API keys without an owner, and of standing rules that would stop', () => {
  finds('warning KEY_WITHOUT_OWNER people', [simple], {}, { enrolled: ['api-alice', 'other'] })
  const enrolled = ['api-alice', 'other']
  const personOf = (person: string) => ({ enrolled, persons: new Map([['other', person]]) })
  assert.deepEqual(lintOf([simple], {}, personOf('dan')), [])
  finds('warning KEY_WITHOUT_OWNER people', [simple], {}, personOf('stranger'))
  const forward = actWith({
    action: 'forward',
    standing: { min_amount: 1n, daily_cap: 10n, ends_at: 2_000_000_000 },
  })
  finds('warning FORWARD_STOPS rules', [simple], {}, { forwards: [forward] })
  const allowed = allow('f', {
    match: { action: ['forward'], assets: 'any' },
    fee_max: { BTC: '0.001' },
  })
  assert.deepEqual(lintOf([simple, allowed], {}, { forwards: [forward] }), [])
  finds('warning FORWARD_STOPS rules', [simple], {}, { forwards: [{ ...forward, asset: 'DOGE' }] })
})

test('approvals of enrolments, orders and forwards have no findings', () => {
  const quorum = { approvals: [{ group: 'admins', k: 1 }] }
  assert.deepEqual(lintOf([simple], { enrolment: quorum, orders: quorum }), [])
  const forward = allow('f', {
    match: { action: ['forward'], assets: ['BTC'] },
    fee_max: { BTC: '0.001' },
    ...quorum,
  })
  assert.deepEqual(lintOf([simple, forward]), [])
})

test('warns of approvals of enrolments and orders that only passkeys could give', () => {
  const { people, groups } = documentWith() as {
    people: { id: string; keys: object[] }[]
    groups: object
  }
  const holder = (id: string) => ({
    id,
    name: id,
    api_keys: [],
    keys: [newPasskey(`p-${id}`).key],
  })
  // Dan has a passkey besides his key file.
  const dans = people.map((person) =>
    person.id === 'dan' ? { ...person, keys: [newPasskey('p-dan').key, ...person.keys] } : person,
  )
  for (const field of ['enrolment', 'orders']) {
    const fields = (...approvals: object[]) => ({
      people: [...dans, holder('zoe'), holder('yan')],
      groups: { ...groups, desk: ['dan', 'zoe', 'yan'] },
      [field]: { approvals },
    })
    const desk = (k: number) => ({ group: 'desk', k })
    const admins = { group: 'admins', k: 1 }
    assert.deepEqual(lintOf([simple], fields(desk(1))), [])
    assert.deepEqual(lintOf([simple], fields(desk(1), admins)), [])
    finds(`warning PASSKEYS_ONLY ${field}.approvals`, [simple], fields(desk(2)))
    finds(`warning PASSKEYS_ONLY ${field}.approvals`, [simple], fields(admins, desk(2)))
  }
})

test('a generated document is either reported with errors, or it compiles', () => {
  fc.assert(
    fc.property(ruleList, (rules) => {
      const document = checkDocument(documentWith(rules, { groups: MIXED_GROUPS }))
      const found = lint(document, { registry, enrolled: [], panelOrigins: [] })
      const isRefused = found.some(({ severity }) => severity === 'error')
      if (!isRefused) policyWith(rules, { groups: MIXED_GROUPS })
    }),
    { numRuns: 200 },
  )
})

test('hostile documents cause no other error than PolicyError', () => {
  const good = JSON.stringify(
    documentWith([
      allow('a', { windows: [{ name: 'd', hours: 1, per: 'workspace', count: 9 }] }),
      { id: 'd', effect: 'deny', match: { to: { own: 'workspace' } } },
    ]),
  )
  const names = ['constructor', '__proto__', 'toString', 'hasOwnProperty', '']
  const spliced = fc
    .tuple(
      fc.nat(good.length),
      fc.nat(30),
      fc.oneof(fc.string({ maxLength: 8 }), fc.constantFrom(...names)),
    )
    .map(([at, length, insert]) => good.slice(0, at) + insert + good.slice(at + length))
  /** Replaces one value anywhere in the document. */
  const replaced = fc.tuple(fc.nat(400), fc.jsonValue()).map(([target, value]) => {
    let count = 0
    return JSON.stringify(JSON.parse(good), (_key, each: unknown) =>
      count++ === target ? value : each,
    )
  })
  let accepted = 0
  fc.assert(
    fc.property(fc.oneof(spliced, replaced, fc.json(), fc.string()), (text) => {
      try {
        const document = readDocument(text)
        const found = lint(document, { registry, enrolled: [], panelOrigins: [] })
        if (!found.some(({ severity }) => severity === 'error')) accepted++
      } catch (error) {
        assert.ok(error instanceof PolicyError, String(error))
      }
    }),
    { numRuns: 1_500 },
  )
  assert.ok(accepted > 10)
})
