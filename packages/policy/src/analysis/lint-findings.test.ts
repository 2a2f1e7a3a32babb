// Findings in detail: where they begin and end, their sentences, and their order.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { actWith, allow, documentWith, newKey } from '../../testing/documents.ts'
import { registry } from '../../testing/registry.ts'
import { checkDocument, documentHash } from '../document/read.ts'
import type { PolicyDocument } from '../document/shape.ts'
import type { Finding, LintContext } from './finding.ts'
import { lint } from './lint.ts'

type Fields = Partial<Record<keyof PolicyDocument, unknown>>
const simple = allow('pay', { approvals: [{ group: 'treasury', k: 1 }] })
const groups = documentWith()['groups'] as Record<string, string[]>
const people = documentWith()['people'] as { id: string }[]
const lintOf = (
  rules: readonly unknown[],
  fields: Fields = {},
  context: Partial<LintContext> = {},
): Finding[] =>
  lint(checkDocument(documentWith(rules, fields)), {
    registry,
    enrolled: [],
    panelOrigins: [],
    ...context,
  })
const findings = (...args: Parameters<typeof lintOf>): string[] =>
  lintOf(...args).map(({ code, path }) => `${code} ${path}`)
const messages = (...args: Parameters<typeof lintOf>): string[] =>
  lintOf(...args).map(({ message }) => message)

test('a rule that restricts names each of its assets in its amounts', () => {
  const deny = (match: object, amount: object) => ({ id: 'd', effect: 'deny', match, amount })
  const hint =
    "whatever its amount. List the rule's assets in match.assets, and name each of them here."
  assert.deepEqual(messages([simple, deny({ assets: 'any' }, { min: { BTC: '1' } })]), [
    `The rule would restrict an asset that it does not name ${hint}`,
  ])
  assert.deepEqual(messages([simple, deny({ assets: ['BTC', 'XRP'] }, { min: { BTC: '1' } })]), [
    `The rule would restrict XRP ${hint}`,
  ])
})

test('a window that names an unknown asset is reported once', () => {
  const windows = [{ name: 'day', hours: 24, per: 'sub_account', max: { DOGE: '1' } }]
  assert.deepEqual(findings([allow('a', { windows })]), [
    'UNKNOWN_ASSET rules[0].windows[0].max.DOGE',
  ])
})

test('a share is empty if one of its limits is rounded down to zero', () => {
  const of = (window: object) => [
    allow('a', { windows: [{ name: 'day', hours: 24, per: 'workspace', ...window }] }),
  ]
  const empty = ['EMPTY_SHARE rules[0].windows[0]']
  assert.deepEqual(findings(of({ count: 3 })), empty)
  assert.deepEqual(findings(of({ count: 4 })), [])
  assert.deepEqual(findings(of({ count: 4, max: { BTC: '0.00000003' } })), empty)
  assert.deepEqual(findings(of({ max: { BTC: '0.00000003', ETH: '1' } })), empty)
  assert.deepEqual(findings(of({ max: { BTC: '0.00000004', ETH: '1' } })), [])
  // A maximum of zero forbids the asset on purpose.
  assert.deepEqual(findings(of({ max: { BTC: '0' } })), [])
})

test('a key that cannot be used is named with the reason', () => {
  const key = { ...newKey('k').key, alg: 'ES256' }
  const zoe = { id: 'zoe', name: 'Zoe', api_keys: [], keys: [key] }
  assert.deepEqual(messages([simple], { people: [...people, zoe] }), [
    'The public key is refused: people[7].keys[0].spki: is a key for Ed25519, not for ES256.',
  ])
})

test('a passkey is one of the control panel if one of its origins is', () => {
  const passkey = {
    ...newKey('k').key,
    kind: 'passkey',
    credential: 'c'.repeat(22),
    rp_id: 'custody.example',
    origins: ['https://approve.custody.example', 'https://custody.example'],
    device_bound: true,
  }
  const zoe = { id: 'zoe', name: 'Zoe', api_keys: [], keys: [passkey] }
  const panelOrigins = ['https://custody.example']
  assert.deepEqual(findings([simple], { people: [...people, zoe] }, { panelOrigins }), [
    'PANEL_ORIGIN people[7].keys[0].origins',
  ])
})

test('every quorum and every group of which one person is enough must survive the loss of one key', () => {
  const change = { approvals: [{ group: 'admins', k: 2 }], delay_s: 86_400, veto: 'admins' }
  const needsAll = (fields: Fields, rules: readonly unknown[] = [simple]) =>
    findings(rules, fields).filter((each) => each.startsWith('NEEDS_ALL'))
  const all = { approvals: [{ group: 'treasury', k: 3 }] }
  assert.deepEqual(needsAll({ change: { ...change, veto: 'compliance' } }), [
    'NEEDS_ALL change.veto',
  ])
  assert.deepEqual(needsAll({ stop: { group: 'compliance' } }), ['NEEDS_ALL stop.group'])
  assert.deepEqual(needsAll({ resume: all }), ['NEEDS_ALL resume.approvals'])
  assert.deepEqual(needsAll({ enrolment: all }), ['NEEDS_ALL enrolment.approvals'])
  assert.deepEqual(needsAll({ orders: all }), ['NEEDS_ALL orders.approvals'])
  // One indispensable person among several is enough.
  const mixed = [
    { group: 'admins', k: 1 },
    { group: 'compliance', k: 1 },
  ]
  assert.deepEqual(needsAll({}, [allow('a', { approvals: mixed })]), [
    'NEEDS_ALL rules[0].approvals',
  ])
})

test('a delay of one hour is long enough', () => {
  const change = { approvals: [{ group: 'admins', k: 2 }], veto: 'admins' }
  assert.deepEqual(findings([simple], { change: { ...change, delay_s: 3_600 } }), [])
  assert.deepEqual(messages([simple], { change: { ...change, delay_s: 3_599 } }), [
    'Outside of mode local, a change must wait at least 3600 seconds, so that it can be vetoed.',
  ])
})

test('windows add up only with windows of another rule', () => {
  const window = { name: 'day', hours: 24, per: 'api_key', count: 1 }
  const withWindow = (id: string, fields: object = {}) =>
    allow(id, { windows: [window], ...fields })
  assert.deepEqual(findings([simple, withWindow('b')]), [])
  const elsewhere = { match: { action: ['refund'], assets: 'any' } }
  assert.deepEqual(findings([withWindow('a'), withWindow('b', elsewhere)]), [])
  assert.deepEqual(messages([withWindow('a'), withWindow('b')]), [
    'Acts that fit both a and b may use the windows of both. A limit rule caps them together.',
  ])
  const limit = (match: object) => ({
    id: 'cap',
    effect: 'limit',
    match,
    windows: [{ ...window, count: 2 }],
    above: 'deny',
  })
  assert.deepEqual(findings([withWindow('a'), withWindow('b'), limit({})]), [])
  assert.deepEqual(findings([withWindow('a'), withWindow('b'), limit({ people: ['bob'] })]), [
    'WINDOWS_ADD_UP rules[1].windows',
  ])
})

test('approvals that several rules add together are reported with the names of these rules', () => {
  const four = ['dan', 'erin', 'frank', 'alice']
  const fields = { groups: { ...groups, treasury: four, other: four } }
  const three = allow('a', { approvals: [{ group: 'treasury', k: 3 }] })
  const two = { approvals: [{ group: 'other', k: 2 }] }
  const limit = {
    id: 'cap',
    effect: 'limit',
    match: {},
    windows: [{ name: 'day', hours: 24, per: 'api_key', count: 1 }],
    above: two,
  }
  const required = { id: 'r', effect: 'require', match: {}, ...two }
  const sentence = (names: string) =>
    `An act that also matches ${names} is denied, because all approvals together cannot be reached.`
  assert.deepEqual(messages([three, limit], fields), [sentence('cap')])
  assert.deepEqual(messages([three, limit, required], fields), [sentence('cap, r')])
  assert.deepEqual(findings([three, { ...limit, above: 'deny' }], fields), [])
})

test('a successor states which number it must have and which window ends', () => {
  const windows = [{ name: 'day', hours: 24, per: 'sub_account', count: 9 }]
  const previous = checkDocument(documentWith([{ ...simple, windows }]))
  const next = { number: 2, previous: documentHash(previous) }
  const of = (rules: readonly unknown[], fields: Fields = {}) =>
    messages(rules, { ...next, ...fields }, { previous })
  assert.deepEqual(of([{ ...simple, windows }], { number: 4 }), ['The number must be 2.'])
  const gone =
    'The window day of the rule pay ends. What it has counted is not transferred to another window.'
  assert.deepEqual(of([{ ...simple, windows: [{ ...windows[0], name: 'daily' }] }]), [gone])
  // Other checks follow a warning, and errors are listed first.
  assert.deepEqual(of([]), [gone, 'No rule allows anything, so every act is denied.'])
  const unreachable = { approvals: [{ group: 'admins', k: 4 }] }
  assert.deepEqual(findings([simple], { ...next, resume: unreachable }, { previous }), [
    'UNREACHABLE resume.approvals',
    'WINDOW_GONE rules',
  ])
})

test('names each enrolled API key without an owner', () => {
  assert.deepEqual(
    messages([simple], {}, { enrolled: ['api-alice', 'robot'] }).map((each) => each.split('.')[0]),
    ['No person lists the API key robot, and its enrolment names none'],
  )
})

test('a standing rule that would stop is reported with the reason', () => {
  const forward = actWith({
    id: 'f1',
    action: 'forward',
    standing: { min_amount: 1n, daily_cap: 10n, ends_at: 2_000_000_000 },
  })
  const match = { action: ['forward'], assets: 'any' }
  const windows = [{ name: 'day', hours: 24, per: 'sub_account', count: 9 }]
  const why = (rules: readonly unknown[], act = forward) =>
    lintOf(rules, {}, { forwards: [act] }).flatMap(({ code, message }) =>
      code === 'FORWARD_STOPS' ? [message] : [],
    )
  assert.deepEqual(why([allow('f', { match, windows })]), [])
  assert.deepEqual(why([allow('f', { match, approvals: [{ group: 'treasury', k: 1 }] })]), [
    'The standing rule f1 would stop: it needs approvals.',
  ])
  const deny = { id: 'd', effect: 'deny', match: { assets: ['BTC'] } }
  assert.deepEqual(why([allow('f', { match }), deny]), [
    'The standing rule f1 would stop: a rule denies it.',
  ])
  assert.deepEqual(why([simple]), [
    'The standing rule f1 would stop: action: forward is not one of transfer.',
  ])
  assert.deepEqual(why([allow('f', { match })], { ...forward, asset: 'DOGE' }), [
    'The standing rule f1 would stop: asset: DOGE is not an asset of the registry.',
  ])
})

test('warns of an allow that limits neither fees nor the number of acts', () => {
  const warned = (rules: readonly unknown[], fields: Fields = {}) =>
    findings(rules, fields).filter((each) => each.startsWith('FEES'))
  const unlimited = ['FEES_UNLIMITED rules[0]']
  const of = (assets: unknown, ...windows: object[]) =>
    allow('a', {
      match: { action: ['transfer'], assets },
      ...(windows.length === 0
        ? {}
        : {
            windows: windows.map((each, at) => ({
              name: `w${at}`,
              hours: 24,
              per: 'api_key',
              ...each,
            })),
          }),
    })
  assert.deepEqual(warned([of('any')]), unlimited)
  assert.deepEqual(warned([of(['USDT_ETH'])]), unlimited)
  assert.deepEqual(warned([{ ...of('any'), fee_max: { ETH: '0.01' } }]), [])
  assert.deepEqual(warned([of('any', { count: 5 })]), [])
  assert.deepEqual(warned([of(['USDT_ETH'], { max: { USDT_ETH: '5' } })]), unlimited)
  assert.deepEqual(warned([of(['USDT_ETH'], { max: { USDT_ETH: '5', ETH: '1' } })]), [])
  assert.deepEqual(warned([of('any', { max: { BTC: '5', USDT_ETH: '5' } })]), unlimited)
  assert.deepEqual(warned([of('any', { max: { BTC: '5', USDT_ETH: '5', ETH: '1' } })]), [])
  // People approve the fee of each transfer, and only the first one of a forwarding rule.
  const approvals = [{ group: 'treasury', k: 1 }]
  assert.deepEqual(warned([allow('a', { approvals })]), [])
  const forward = { action: ['forward'], assets: ['BTC'] }
  assert.deepEqual(warned([allow('a', { match: forward, approvals })]), unlimited)
  // A limit that matches every act of the rule limits its fees too.
  const limit = (match: object, window: object) => ({
    id: 'l',
    effect: 'limit',
    match,
    windows: [{ name: 'day', hours: 24, per: 'api_key', ...window }],
    above: 'deny',
  })
  assert.deepEqual(warned([of('any'), limit({}, { count: 5 })]), [])
  assert.deepEqual(warned([of('any'), limit({ assets: ['ETH'] }, { count: 5 })]), unlimited)
})

test('warns of a document in which fees that a gas tank pays count in no window', () => {
  const window = { name: 'day', hours: 24, per: 'api_key', max: { USDT_ETH: '5', ETH: '1' } }
  const rules = [allow('a', { windows: [window] })]
  const fees = { fees: 'wallet' }
  assert.deepEqual(findings(rules), [])
  assert.deepEqual(findings(rules, fees), ['FEES_UNLIMITED rules[0]', 'FEES_OF_WALLET_ONLY fees'])
})

test('warns of a rule that restricts one tag of an account', () => {
  const deny = (entry: object) => ({
    id: 'd',
    effect: 'deny',
    match: { to: { addresses: [{ network: 'XRP', address: 'rB', ...entry }] } },
  })
  assert.deepEqual(findings([simple, deny({ tag: '5' })]), [
    'ONE_TAG rules[1].match.to.addresses[0].tag',
  ])
  assert.deepEqual(findings([simple, deny({})]), [])
})

test('states which checks are left out, because the caller does not know what they need', () => {
  const passkey = {
    ...newKey('k').key,
    kind: 'passkey',
    credential: 'c'.repeat(22),
    rp_id: 'custody.example',
    origins: ['https://approve.custody.example'],
    device_bound: true,
  }
  const zoe = { id: 'zoe', name: 'Zoe', api_keys: [], keys: [passkey] }
  const unknown = { enrolled: null, panelOrigins: null }
  assert.deepEqual(
    messages([simple], { people: [...people, zoe] }, unknown).map((each) => each.split(',')[0]),
    [
      'It is not known here under which origins people open the control panel',
      'It is not known here which API keys are enrolled',
    ],
  )
  // Without a passkey there is no origin to check.
  assert.deepEqual(findings([simple], {}, unknown), ['NOT_CHECKED people'])
})

test('windows of rules with different payees do not add up', () => {
  const employee = (id: string, address: string, more: object = {}) =>
    allow(id, {
      match: {
        action: ['transfer'],
        assets: ['ETH'],
        to: { addresses: [{ network: 'ETH', address, ...more }] },
      },
      windows: [{ name: 'week', hours: 168, per: 'sub_account', max: { ETH: '2' } }],
    })
  assert.deepEqual(findings([employee('a', '0xA'), employee('b', '0xB')]), [])
  const sum = ['WINDOWS_ADD_UP rules[1].windows']
  assert.deepEqual(findings([employee('a', '0xA'), employee('b', '0xA')]), sum)
  const xrp = (id: string, more: object) =>
    allow(id, {
      match: {
        action: ['transfer'],
        assets: ['XRP'],
        to: { addresses: [{ network: 'XRP', address: 'rB', ...more }] },
      },
      windows: [{ name: 'week', hours: 168, per: 'sub_account', max: { XRP: '2' } }],
    })
  assert.deepEqual(findings([xrp('a', { tag: '1' }), xrp('b', { tag: '2' })]), [])
  assert.deepEqual(findings([xrp('a', { tag: '1' }), xrp('b', { any_tag: true })]), sum)
  // An own address may be any address.
  const own = allow('own', {
    match: { action: ['transfer'], assets: ['ETH'], to: { own: 'workspace' } },
    windows: [{ name: 'week', hours: 168, per: 'sub_account', count: 2 }],
  })
  assert.deepEqual(findings([employee('a', '0xA'), own]), sum)
})

test('warns of refunds that need fewer approvals than transfers of the same assets', () => {
  const count = { windows: [{ name: 'day', hours: 24, per: 'sub_account', count: 5 }] }
  const refund = (fields: object = {}) =>
    allow('back', { match: { action: ['refund'], assets: ['BTC'] }, ...count, ...fields })
  const two = { approvals: [{ group: 'treasury', k: 2 }] }
  const transfers = allow('pay', { match: { action: ['transfer'], assets: 'any' }, ...two })
  const warned = (rules: readonly unknown[]) =>
    findings(rules).filter((each) => each.startsWith('EASY_REFUND'))
  assert.deepEqual(warned([transfers, refund()]), ['EASY_REFUND rules[1]'])
  assert.deepEqual(warned([transfers, refund(two)]), [])
  const other = { ...transfers, match: { action: ['transfer'], assets: ['ETH'] } }
  assert.deepEqual(warned([other, refund()]), [])
  // The same rule allows transfers as easily.
  const both = { match: { action: ['transfer', 'refund'], assets: ['BTC'] } }
  assert.deepEqual(warned([transfers, refund(both)]), [])
})

test('reports names that could look like others, and tags that no payment has', () => {
  const [first, ...others] = documentWith().people as Record<string, unknown>[]
  const named = (name: string) => ({ people: [{ ...first, name }, ...others] })
  const spelled = (match: object, fields: object = {}) =>
    lint(
      checkDocument(
        documentWith(
          [allow('a', { match: { action: ['transfer'], assets: 'any', ...match } })],
          fields,
        ),
      ),
      { registry, enrolled: null, panelOrigins: null },
    )
      .filter(({ code }) => code === 'DECEPTIVE_NAME' || code === 'TAG')
      .map(({ severity, path, message }) => [severity, path, message])
  const at = (path: string) => [
    [
      'error',
      path,
      'The name contains control characters, invisible characters or characters that change the direction of text.',
    ],
  ]
  for (const text of ['Ali\u202ece', 'a\u200bb', 'a\u2028b', 'a\u{e0041}', '\ufeffa']) {
    assert.deepEqual(spelled({}, named(text)), at('people[0].name'))
    assert.deepEqual(spelled({ sub_accounts: ['x', text] }), at('rules[0].match.sub_accounts[1]'))
    assert.deepEqual(
      spelled({ sub_accounts_not: { prefix: text } }),
      at('rules[0].match.sub_accounts_not.prefix'),
    )
  }
  for (const text of ['Zoë 日本', 'cust/1 (EU)', 'Иван'])
    assert.deepEqual(spelled({ sub_accounts: [text] }, named(text)), [])
  const tagged = (network: string, address: string, tag: string) =>
    spelled({ to: { addresses: [{ network, address, tag }] } }).map(([, , message]) => message)
  const canonical = 'The tag must be in its canonical form, "5".'
  assert.deepEqual(tagged('XRP', 'rB', '5'), [])
  assert.deepEqual(tagged('XRP', 'rB', '05'), [canonical])
  assert.deepEqual(tagged('XRP', 'rB', ' 5'), [canonical])
  assert.deepEqual(tagged('XRP', 'rB', 'five'), ['The field is not a valid tag of XRP.'])
  assert.deepEqual(tagged('BTC', 'bc1q', '5'), ['The field is not a valid tag of BTC.'])
})
