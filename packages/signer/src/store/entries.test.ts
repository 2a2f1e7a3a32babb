import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { after, test } from 'node:test'
import * as fc from '../../../../testing/property.ts'
import { Backups } from '../keys/backup.ts'
import { RecordError } from './entries/error.ts'
import { BODIES, entryOf, type Kind, type NewEntry } from './entries/index.ts'
import { CHARGES_MAX, VOID_KEYS_MAX } from './entries/values.ts'
import { importable, takenFrom } from './imported.ts'
import { Store } from './index.ts'
import { RecordStore } from './record.ts'

const folder = mkdtempSync(join(tmpdir(), 'signer-entries-'))
after(() => {
  rmSync(folder, { recursive: true, force: true })
})

const proof = {
  header: {
    protocol: 'custody/peer' as const,
    version: 1 as const,
    call: '/peer/ping',
    request: '0a'.repeat(16),
    response: true,
    status: 200,
    session: '',
    round: 0,
    from: 2,
    to: 1,
    key: '',
    path: '',
    digest: '',
    participants: [],
    height: 4,
    head: 'ab'.repeat(32),
    generation: 0,
    boot: 'cd'.repeat(16),
  },
  payload_hash: 'ab'.repeat(32),
  signature: 'ef'.repeat(64),
}
const peer_head = { node: 2, height: 4, hash: 'ab'.repeat(32), generation: 0, proof }
const signatures = [1, 2, 3].map((node) => ({ node, signature: 'ab'.repeat(64) }))
const certified = {
  curve: 'secp256k1' as const,
  key_id: 's-1',
  public_key: '02ab',
  chain_code: 'cd',
  mode: 'local',
  epoch: 0,
  signatures,
}
const seen = {
  api_key: 'k',
  nonce: 'n',
  intent: 'i',
  content: 'c',
  transaction_id: 't',
  iat: 1,
  exp: 26,
  timely: true,
}
const session = 'ab'.repeat(32)
const decoded = {
  network: 'TRX',
  asset: 'TRX',
  payments: [{ address: 'a', amount: '1', tag: null }],
  change: { address: 'b', amount: '2', assets: { unit: '3' } },
  from: ['b'],
  fee_max: '1',
  fee_rate: '1.5',
  consumes: ['b:1'],
  fee_constant: '5',
  valid_until: 9,
  nonce: '0',
  gas_limit: null,
  max_fee_per_gas: null,
  vsize: 140.25,
  action: { kind: 'delegate' as const, resource: 'ENERGY' as const, amount: '7', receiver: 'c' },
}
const policy = {
  number: 1,
  hash: 'ab'.repeat(32),
  via: 'payouts',
  charges: [{ key: '["payouts","day","workspace"]', hours: 24, amounts: { TRX: '1' } }],
}
const step = {
  step: '["pay","i"]',
  purpose: 'pay',
  workspace: 'w',
  key_id: 's-1',
  intent: 'i',
  content: 'c',
  transaction_id: 't',
  unsigned_hash: 'h',
  unsigned: {
    network: 'TRX',
    bytes: '02ab',
    inputs: [{ path: [1, 195, 0] }],
    change: { output: 1, path: [1, 0, 7] },
  },
  decoded,
  consumes: ['b:1'],
  account: '["TRX","b"]',
  nonce: '0',
  rule: null,
  fuelled: { kind: 'fuel' as const, address: 'a', amount: '1', network: 'TRX' },
  charges: [{ budget: 'x', amount: '1' }],
  sessions: [session],
  partner: 2,
  peer_head,
}
const rule = {
  rule: 'r',
  api_key: 'k',
  nonce: 'n',
  content: 'c',
  workspace: 'w',
  sub_account: 1,
  asset: 'ETH',
  destination: 'd',
  tag: null,
  min_amount: '1',
  daily_cap: '2',
  expires_at: 9,
}

const resetWords = [1, 2, 3].map((node) => ({
  node,
  workspace: 'acme',
  number: 2,
  hash: 'ab'.repeat(32),
  given_at: 8,
  signature: 'cd'.repeat(64),
}))

/** Entries about policies with the effects that they had when they were judged. */
function withEffects(): NewEntry[] {
  const hash = 'ab'.repeat(32)
  const by = { now_s: 12, in_force: 'cd'.repeat(32) }
  const first = { workspace: 'acme', document: '{}', possessions: [], at_s: 11 }
  const statement = { workspace: 'acme', signed: '{}', at_s: 11 }
  const approved = { workspace: 'acme', approvals: ['{}'], at_s: 11, node: 2, by_both: true }
  const approval = { by: 'dan', key: 'k1', at: 10, expires: 20, spki: 'MCow', hash }
  const statements = [
    { type: 'veto', hash, by: 'bob', outcome: 'ended', approved_by: ['alice'], at_s: 11 },
    { type: 'stop', hash, sub_account: null, by: 'bob', at: 10 },
    { type: 'suspend', hash, by: 'bob', target: { person: 'dan', key: 'k1' }, ends_at_s: 99 },
    { type: 'revoke', spki: 'MCow' },
  ] satisfies object[]
  return [
    { kind: 'policy-typed', body: { ...first, effect: { ...by, in_force: null, hash } } },
    { kind: 'policy-begun', body: { ...first, effect: { ...by, in_force: null, hash } } },
    {
      kind: 'policy-change',
      body: {
        ...first,
        approvals: ['{}'],
        witnesses: null,
        effect: {
          ...by,
          type: 'pending',
          hash,
          seen_at_s: 11,
          acts_at_s: 50,
          approved_for_s: 50,
          approved_by: ['alice', 'bob'],
          vetoed_by: null,
          confirmed_by: [1],
        },
      },
    },
    ...statements.map(
      (effect) =>
        ({
          kind: 'policy-statement',
          body: { ...statement, effect: { ...by, ...effect } },
        }) as NewEntry,
    ),
    {
      kind: 'policy-resumed',
      body: {
        workspace: 'acme',
        stop: '{}',
        approvals: ['{}'],
        at_s: 11,
        effect: { ...by, type: 'resume', stop: hash, sub_account: 'main', at: 10 },
      },
    },
    {
      kind: 'policy-confirmed',
      body: {
        workspace: 'acme',
        hash,
        at_s: 11,
        node: 2,
        effect: { ...by, type: 'confirm', hash, node: 2 },
      },
    },
    {
      kind: 'policy-approved',
      body: {
        ...approved,
        effect: {
          ...by,
          type: 'standing',
          name: 'forward 1',
          policy: hash,
          subject: hash,
          facts: '{}',
          approvals: [{ ...approval, recorded_at: 11 }],
        },
      },
    },
    {
      kind: 'policy-approved',
      body: {
        ...approved,
        effect: {
          ...by,
          type: 'enrolment',
          api_key: 'key-1',
          number: 1,
          policy: hash,
          facts: '{}',
        },
      },
    },
    {
      kind: 'policy-followed',
      body: { workspace: 'acme', at_s: 11, chain: [hash], effect: { ...by, kept: 1 } },
    },
    {
      kind: 'policy-reset-typed',
      body: { ...first, effect: { ...by, hash, number: 2, previous: hash } },
    },
    {
      kind: 'policy-reset-complete',
      body: { workspace: 'acme', hash, at_s: 11, words: resetWords, effect: by },
    },
    { kind: 'policy-reset-withdrawn', body: { workspace: 'acme', hash, at_s: 11, effect: by } },
    {
      kind: 'policy-reset-begun',
      body: { ...first, words: resetWords, is_known: false, effect: { ...by, hash } },
    },
  ]
}

/** One entry of each kind, and of each shape of a kind. */
const SAMPLES: readonly NewEntry[] = [
  {
    kind: 'policy-typed',
    body: { workspace: 'acme', document: '{}', possessions: ['{}'], at_s: 1 },
  },
  { kind: 'policy-begun', body: { workspace: 'acme', document: '{}', possessions: [], at_s: 1 } },
  {
    kind: 'policy-change',
    body: {
      workspace: 'acme',
      document: '{}',
      possessions: [],
      approvals: ['{}', '[]'],
      at_s: 2,
      witnesses: [1, 2],
    },
  },
  { kind: 'policy-statement', body: { workspace: 'acme', signed: '{}', at_s: 3 } },
  { kind: 'policy-resumed', body: { workspace: 'acme', stop: '{}', approvals: ['{}'], at_s: 4 } },
  {
    kind: 'policy-confirmed',
    body: { workspace: 'acme', hash: 'ab'.repeat(32), at_s: 5, node: 2 },
  },
  {
    kind: 'policy-approved',
    body: { workspace: 'acme', approvals: ['{}', '{}'], at_s: 5, node: 2, by_both: false },
  },
  {
    kind: 'policy-followed',
    body: { workspace: 'acme', at_s: 6, chain: ['ab'.repeat(32), 'cd'.repeat(32)] },
  },
  {
    kind: 'policy-reset-typed',
    body: { workspace: 'acme', document: '{}', possessions: ['{}'], at_s: 8 },
  },
  {
    kind: 'policy-reset-complete',
    body: { workspace: 'acme', hash: 'ab'.repeat(32), at_s: 9, words: resetWords },
  },
  {
    kind: 'policy-reset-withdrawn',
    body: { workspace: 'acme', hash: 'ab'.repeat(32), at_s: 10 },
  },
  {
    kind: 'policy-reset-begun',
    body: {
      workspace: 'acme',
      document: '{}',
      possessions: ['{}'],
      words: resetWords,
      at_s: 11,
      is_known: false,
    },
  },
  {
    kind: 'policy-uninstalled',
    body: { workspace: 'acme', at_s: 7, removed: ['ab'.repeat(32)] },
  },
  {
    kind: 'policy-known',
    body: { workspace: 'acme', first: 'ab'.repeat(32), number: 7, hash: 'cd'.repeat(32) },
  },
  {
    kind: 'policy-known',
    body: {
      workspace: 'beta',
      first: 'ab'.repeat(32),
      number: 2,
      hash: 'cd'.repeat(32),
      chain: ['ab'.repeat(32), 'cd'.repeat(32)],
    },
  },
  ...withEffects(),
  { kind: 'registry', body: { frozen: { 'network:ETH': '["local"]' } } },
  {
    kind: 'enrol',
    body: {
      api_key: 'k',
      public_key_pem: 'pem',
      role: 'full',
      workspace: 'w',
      sub_account: 1,
      sub_account_name: 'main',
    },
  },
  {
    kind: 'enrol',
    body: {
      api_key: 'k',
      public_key_pem: 'pem',
      role: 'full',
      workspace: 'w',
      sub_account: 1,
      sub_account_name: 'main',
      approval_policy: 2,
    },
  },
  { kind: 'revoke', body: { api_key: 'k' } },
  { kind: 'sub-account', body: { workspace: 'w', name: 'main', index: 1 } },
  {
    kind: 'address-mark',
    body: { workspace: 'w', network: 'BTC', sub_account: 1, below: 200 },
  },
  {
    kind: 'sub-account-set',
    body: { workspace: 'w', name: 'main', index: 1, certificates: signatures },
  },
  {
    kind: 'drain',
    body: { order: 'o', workspace: 'w', network: 'ETH', to_address: 'a', expires_at: 9 },
  },
  {
    kind: 'tank-stake',
    body: {
      order: 'o',
      workspace: 'w',
      network: 'TRX',
      action: 'release',
      resource: null,
      amount: '0',
      expires_at: 9,
    },
  },
  { kind: 'key', body: certified },
  { kind: 'key', body: { ...certified, session } },
  { kind: 'allocate', body: { workspace: 'w', curve: 'secp256k1', key_id: 's-1', epoch: 0 } },
  {
    kind: 'certificates',
    body: { workspace: 'w', curve: 'secp256k1', key_id: 's-1', certificates: signatures },
  },
  { kind: 'seen', body: seen },
  { kind: 'rule', body: rule },
  { kind: 'step', body: step },
  { kind: 'step', body: { ...step, policy } },
  { kind: 'charged', body: { step: step.step, unsigned_hash: 'h', workspace: 'w', policy } },
  { kind: 'session', body: { step_height: 13, sessions: [session], partner: 2, peer_head: null } },
  { kind: 'session', body: { kind: 'keygen', key_id: 's-1', sessions: [session] } },
  { kind: 'session', body: { kind: 'keygen-test', key_id: 's-1', sessions: [session] } },
  {
    kind: 'signed',
    body: {
      step_height: 13,
      signatures: [{ signature: 'ab'.repeat(64), recovery_id: null }],
      hash: '0x1',
      raw: '02',
    },
  },
  { kind: 'nonce', body: { account: '["ETH","a"]', nonce: '12', from: 3 } },
  { kind: 'orders-authorised', body: {} },
  { kind: 'withdrawn', body: { hashes: ['ab', 'cd'], until: 1_894_708_800_000 } },
  { kind: 'void', body: { keys: ['i'], transaction_id: null, signed_hashes: [] } },
  { kind: 'ban', body: { node: 2, reason: 'drill' } },
  { kind: 'ban', body: { node: 2, reason: 'drill', identity: session } },
  { kind: 'ban', body: { node: 2, reason: 'drill', identity: session, cause: 'operator', at: 7 } },
  {
    kind: 'ban-told',
    body: {
      node: 2,
      identity: session,
      by: 3,
      at: 7,
      reason: 'drill',
      cause: 'cheat',
      signature: 'ab'.repeat(64),
    },
  },
  { kind: 'head', body: peer_head },
  { kind: 'prepared', body: { ...certified, epoch: 1, session } },
  { kind: 'tested', body: { key_id: 's-1', epoch: 1, session, partner: 2 } },
  { kind: 'refreshed', body: { key_id: 's-1', epoch: 1, session } },
  { kind: 'forgotten', body: { key_id: 's-1', epoch: 0 } },
  { kind: 'abandoned', body: { key_id: 's-1', epoch: 1, session } },
  { kind: 'reverted', body: { key_id: 's-1', epoch: 1, session } },
  { kind: 'backup', body: { keys: 1, made_at: 9 } },
  { kind: 'restoring', body: { made_at: 9 } },
  { kind: 'recovering', body: { made_at: 9 } },
  {
    kind: 'recover',
    body: {
      order: 'r',
      workspace: 'w',
      network: 'XRP',
      to_address: 'a',
      tag: '7',
      fee_max: '100',
      expires_at: 9,
    },
  },
  { kind: 'imported', body: { at: 7, kind: 'revoke', body: { api_key: 'old' }, from: 2 } },
  { kind: 'imported', body: { at: 7, kind: 'void', body: { keys: ['x'] }, from: 3 } },
  { kind: 'restored', body: { generation: 1, not_before: 9 } },
  { kind: 'policy-heard', body: { node: 2 } },
  { kind: 'policy-unproven', body: { node: 3, generation: 0, height: 9 } },
  { kind: 'policy-accepted', body: { workspace: 'w', hash: '0'.repeat(64), late: 0 } },
  { kind: 'clock', body: { from: 9, to: 5 } },
]
/**
 * Fields that are absent in records of earlier versions, or in the encoding of the kind in a
 * backup.
 */
const ABSENT: Partial<Record<Kind, readonly string[]>> = {
  ban: ['identity', 'cause', 'at'],
  enrol: ['sub_account_name'],
  head: ['proof'],
  key: ['session'],
  refreshed: ['session'],
  signed: ['raw'],
  step: ['rule', 'fuelled', 'charges', 'charge', 'policy'],
}
const plain = (value: unknown): unknown => JSON.parse(JSON.stringify(value))
const read = (kind: string, body: unknown) =>
  entryOf({ height: 12, at: 1, kind, body: JSON.stringify(body) })

test('stores and reads every kind of record entry byte for byte', () => {
  assert.deepEqual(
    [...new Set(SAMPLES.map(({ kind }) => kind))].sort(),
    Object.keys(BODIES).sort(),
    'a kind without a sample',
  )
  const path = join(folder, 'all.sqlite')
  const store = new Store(path, () => 5)
  for (const { kind, body } of SAMPLES) store.append(kind, body)
  const { head } = store.record
  const rows = store.record.page(1, 100)
  assert.deepEqual(
    rows.map(({ kind, body }) => ({ kind, body })),
    SAMPLES.map(({ kind, body }) => ({ kind, body: JSON.stringify(body) })),
  )
  for (const [at, { kind, body }] of SAMPLES.entries())
    assert.deepEqual(store.record.read(at + 1), { height: at + 1, at: 5, kind, body: plain(body) })
  store.close()
  const again = new Store(path, () => 5)
  assert.equal(again.record.head, head)
  assert.ok(again.state.voids.has('x') && again.state.revoked.has('old'))
  again.close()
})

test('reads record entries of earlier versions', () => {
  const without = (body: object, names: readonly string[]) =>
    Object.fromEntries(Object.entries(body).filter(([name]) => !names.includes(name)))
  for (const { kind, body } of SAMPLES)
    for (const name of ABSENT[kind] ?? []) read(kind, without(body, [name]))
  const { charges: _charges, fuelled: _fuelled, rule: _rule, ...early } = step
  read('step', { ...early, charge: null })
  read('step', { ...early, peer_head: { node: 2, height: 4, hash: 'ab', generation: 0 } })
  read('step', { ...early, charge: { budget: 'b', amount: '1' } })
  read('enrol', {
    api_key: 'k',
    public_key_pem: 'pem',
    role: 'full',
    workspace: 'w',
    sub_account: 1,
    sub_account_name: null,
  })
})

/** Returns the paths to every object within a body whose fields have fixed names. */
function objectsIn(
  value: unknown,
  at: readonly (string | number)[] = [],
): (readonly (string | number)[])[] {
  if (Array.isArray(value)) return value.flatMap((each, index) => objectsIn(each, [...at, index]))
  if (
    typeof value !== 'object' ||
    value === null ||
    ['frozen', 'assets', 'amounts'].includes(String(at.at(-1)))
  )
    return []
  return [at, ...Object.entries(value).flatMap(([name, each]) => objectsIn(each, [...at, name]))]
}
const inside = (value: unknown, path: readonly (string | number)[]): Record<string, unknown> =>
  path.reduce((each, name) => (each as Record<string | number, unknown>)[name], value) as Record<
    string,
    unknown
  >

test('property: refuses to read or write an entry with an extra, missing or mistyped field', () => {
  const store = new Store(join(folder, 'property.sqlite'), () => 5)
  const optional = new Set([
    'sub_account_name',
    'approval_policy',
    'proof',
    'raw',
    'charges',
    'charge',
    'fuelled',
    'rule',
    'change',
    'assets',
    'fee_constant',
    'valid_until',
    'action',
    'chain',
    'effect',
  ])
  const sample = fc
    .constantFrom(...SAMPLES)
    .chain((entry) =>
      fc.record({ entry: fc.constant(entry), at: fc.constantFrom(...objectsIn(entry.body)) }),
    )
  fc.assert(
    fc.property(
      sample,
      fc.nat(),
      fc.constantFrom('more', 'less', 'other'),
      ({ entry, at }, pick, change) => {
        const body = plain(entry.body)
        const object = inside(body, at)
        const name = Object.keys(object)[pick % Object.keys(object).length]
        // Skipped: an object without fields has none to leave out.
        if (change !== 'more' && name === undefined) return
        // Skipped: without such a field the entry is another valid shape, and so is other content
        // of a map.
        if (change === 'less' && (optional.has(name!) || ABSENT[entry.kind]?.includes(name!)))
          return
        if (change === 'more') object['unheard_of'] = 1
        else if (change === 'less') delete object[name!]
        else object[name!] = typeof object[name!] === 'object' ? true : { other: true }
        assert.throws(
          () => read(entry.kind, body),
          (error: Error) =>
            error instanceof RecordError &&
            /entry 12 of the kind "[a-z-]+" does not match/.test(error.message),
        )
        assert.throws(() => store.append(entry.kind, body as never), RecordError)
        assert.throws(() => {
          store.appendSoon(entry.kind, body as never)
        }, RecordError)
      },
    ),
    { numRuns: 500, seed: 11 },
  )
  assert.equal(store.record.height, 0)
  store.close()
})

/** Inserts a row at its place in the chain, with content that `append` would never write. */
function forge(path: string, kind: string, body: string): void {
  const store = new Store(path, () => 5)
  const { height, head } = store.record
  store.close()
  const database = new DatabaseSync(path)
  const insert = database.prepare(
    'INSERT INTO record (height, at, kind, body, hash) VALUES (?, 5, ?, ?, ?)',
  )
  insert.run(height + 1, kind, body, RecordStore.hashOf(height + 1, 5, kind, body, head))
  database.close()
}

test('a node with an unreadable record entry does not start, and names the entry', () => {
  const cases = [
    ['pledge', '{}', /entry 2 has the kind "pledge", which this version does not know/],
    ['toString', '{}', /entry 2 has the kind "toString"/],
    [
      'void',
      '{"keys":["i"]}',
      /The record's entry 2 of the kind "void" does not match the format of its kind: transaction_id/,
    ],
    [
      'void',
      '{"keys":["i"],"transaction_id":null,"signed_hashes":[],"unless":1}',
      /The record's entry 2 of the kind "void" does not match the format of its kind: .*unless/,
    ],
    ['revoke', 'nonsense', /entry 2 of the kind "revoke" is not JSON/],
    [
      'imported',
      '{"at":1,"kind":"revoke","body":{"api_key":"k","more":1},"from":2}',
      /entry 2 of the kind "imported" does not match the format of its kind: body: is not accepted for a revoke/,
    ],
    [
      'imported',
      '{"at":1,"kind":"signed","body":{},"from":2}',
      /The record's entry 2 of the kind "imported" does not match the format of its kind: kind/,
    ],
  ] as const
  for (const [at, [kind, body, message]] of cases.entries()) {
    const path = join(folder, `bad-${at}.sqlite`)
    const store = new Store(path, () => 5)
    store.append('revoke', { api_key: 'k' })
    store.close()
    forge(path, kind, body)
    assert.throws(
      () => new Store(path, () => 5),
      (error: Error) => error instanceof RecordError && message.test(error.message),
    )
  }
})

test('a restore imports entries that bind every node, and fails on an unreadable entry', () => {
  const row = (kind: string, body: unknown) => ({
    height: 7,
    at: 3,
    kind,
    body: JSON.stringify(body),
    hash: '',
  })
  const taken = SAMPLES.flatMap(({ kind, body }) => (takenFrom(2, row(kind, body)) ? [kind] : []))
  assert.deepEqual([...new Set(taken)].sort(), [
    'allocate',
    'charged',
    'imported',
    'nonce',
    'revoke',
    'rule',
    'seen',
    'session',
    'step',
    'sub-account',
    'void',
  ])
  assert.deepEqual(
    takenFrom(2, row('void', { keys: ['i'], transaction_id: 't', signed_hashes: ['h'] })),
    { at: 3, kind: 'void', body: { keys: ['i'] }, from: 2 },
  )
  // An entry that a peer had imported itself: it keeps its own time.
  assert.deepEqual(
    takenFrom(3, row('imported', { at: 1, kind: 'void', body: { keys: ['i'] }, from: 2 })),
    { at: 1, kind: 'void', body: { keys: ['i'] }, from: 3 },
  )
  for (const { kind, body } of SAMPLES) {
    const rows = takenFrom(2, row(kind, body))
    if (rows) assert.deepEqual(plain(rows), read('imported', rows).body)
  }
  assert.throws(() => takenFrom(2, row('pledge', {})), /entry 7 has the kind "pledge"/)
  assert.throws(
    () => takenFrom(2, row('void', { keys: 'i' })),
    /entry 7 of the kind "void" does not match/,
  )
  assert.throws(
    () => takenFrom(2, row('head', { node: 2 })),
    /entry 7 of the kind "head" does not match/,
  )
  assert.throws(
    () =>
      takenFrom(
        2,
        row('void', { keys: Array(257).fill('i'), transaction_id: null, signed_hashes: [] }),
      ),
    /entry 7 of the kind "void" does not match the format of its kind: keys/,
  )
})

const largestPolicy = {
  number: Number.MAX_SAFE_INTEGER,
  hash: 'ab'.repeat(32),
  via: 'v'.repeat(64),
  charges: Array.from({ length: CHARGES_MAX }, (_, at) => ({
    key: `${at}`.padEnd(1000, 'k'),
    hours: 168,
    amounts: Object.fromEntries(['A', 'B', 'C'].map((asset) => [asset.repeat(64), '9'.repeat(78)])),
  })),
}

test('a policy outside of its bounds is neither written nor imported, and needs a workspace', () => {
  const [charge] = policy.charges
  const [large] = largestPolicy.charges
  const amounts = { A: '1', B: '1', C: '1', D: '1' }
  for (const more of [
    { number: 0 },
    { hash: 'ab' },
    { via: 'v'.repeat(65) },
    { charges: [...largestPolicy.charges, large] },
    { charges: [{ ...charge, key: 'k'.repeat(1001) }] },
    { charges: [{ ...charge, hours: 0 }] },
    { charges: [{ ...charge, hours: 169 }] },
    { charges: [{ ...charge, amounts }] },
    { charges: [{ ...charge, amounts: { TRX: '-1' } }] },
    { charges: [{ ...charge, more: 1 }] },
  ]) {
    const malformed = { ...policy, ...more }
    const further = { step: 's', unsigned_hash: 'h', workspace: 'w', policy: malformed }
    assert.throws(() => read('step', { ...step, policy: malformed }), /policy/)
    assert.throws(() => read('charged', further), /policy/)
    assert.equal(importable('step', { ...step, policy: malformed }), null)
    assert.equal(importable('charged', further), null)
  }
  assert.equal(importable('step', { ...step, policy, workspace: undefined }), null)
  assert.ok(importable('step', { ...step, workspace: undefined }))
})

test('a restore imports the largest step and the largest void that can be written', () => {
  const charges = Array.from({ length: CHARGES_MAX }, (_, at) => ({
    budget: `window ${at}`,
    amount: '9'.repeat(78),
  }))
  const taken = takenFrom(2, {
    height: 7,
    at: 3,
    kind: 'step',
    body: JSON.stringify({ ...step, charges, policy: largestPolicy }),
    hash: '',
  })
  assert.equal(taken?.kind === 'step' && taken.body.charges?.length, CHARGES_MAX)
  assert.deepEqual(taken?.kind === 'step' && taken.body.policy, largestPolicy)
  const further = {
    step: 's'.repeat(4096),
    unsigned_hash: 'h'.repeat(4096),
    workspace: 'w'.repeat(4096),
    policy: largestPolicy,
  }
  const entry = { height: 7, at: 3, kind: 'charged', body: JSON.stringify(further), hash: '' }
  assert.deepEqual(takenFrom(2, entry)?.body, further)
  assert.throws(() => read('step', { ...step, charges: [...charges, charges[0]] }), /charges/)
  const keys = Array.from({ length: VOID_KEYS_MAX }, (_, at) => `step ${at}`)
  const body = { keys, transaction_id: null, signed_hashes: [] }
  assert.ok(takenFrom(2, { height: 7, at: 3, kind: 'void', body: JSON.stringify(body), hash: '' }))
  assert.throws(() => read('void', { ...body, keys: [...keys, 'one more'] }), /keys/)
})

test('a restore from a peer with an unreadable entry stops, and begins again at the next start', async () => {
  const peer = new Store(join(folder, 'peer.sqlite'), () => 5)
  peer.append('void', { keys: ['before'], transaction_id: null, signed_hashes: [] })
  peer.append('ban', { node: 2, reason: 'drill' })
  const good = peer.record.page(1, 10)
  const [height, at, kind, body] = [3, 5, 'pledge', '{}'] as const
  const later = {
    height,
    at,
    kind,
    body,
    hash: RecordStore.hashOf(height, at, kind, body, peer.record.head),
  }
  peer.close()
  const store = new Store(join(folder, 'restored.sqlite'), () => 5)
  store.append('restoring', { made_at: 1 })
  const rows: object[] = [...good, later]
  const peers = {
    nodes: [1, 3],
    call: async (_node: number, call: string) =>
      call === '/peer/generation' ? { generation: 0 } : { rows },
  }
  const backups = new Backups({
    config: { timeouts_ms: { keygen: 1 } },
    store,
    peers,
    log: () => {},
  } as unknown as ConstructorParameters<typeof Backups>[0])
  await assert.rejects(backups.takeRecords(), {
    code: 'RECORD_UNREADABLE',
    message: /From node 1: .*entry 3 has the kind "pledge"/,
  })
  assert.deepEqual(
    [store.state.restoring, store.state.generation, store.record.height],
    [true, 0, 1],
  )
  rows.pop()
  assert.deepEqual(await backups.takeRecords(), { imported: 2, generation: 1 })
  assert.deepEqual(
    [store.state.restoring, store.state.voids.has('before'), store.state.bans.length],
    [false, true, 0],
  )
  store.close()
})

test('a restore imports a rule that both peers have, and a prohibition that one peer has', async () => {
  const rule = (name: string, destination: string) => ({
    rule: name,
    api_key: 'k',
    nonce: 'n',
    content: 'c',
    workspace: 'w',
    sub_account: 1,
    asset: 'ETH',
    destination,
    tag: null,
    min_amount: '1',
    daily_cap: '5',
    expires_at: 9,
  })
  const rowsOf = (name: string, ...bodies: object[]): object[] => {
    const peer = new Store(join(folder, `${name}.sqlite`), () => 5)
    for (const body of bodies) peer.append('rule', body as ReturnType<typeof rule>)
    if (name === 'lying')
      peer.append('void', { keys: ['v'], transaction_id: null, signed_hashes: [] })
    const rows = peer.record.page(1, 10)
    peer.close()
    return rows
  }
  const rows = new Map([
    [1, rowsOf('honest', rule('both', 'a'), rule('changed', 'a'))],
    [3, rowsOf('lying', rule('forged', 'thief'), rule('changed', 'thief'), rule('both', 'a'))],
  ])
  for (const nodes of [
    [1, 3],
    [3, 1],
  ]) {
    const store = new Store(join(folder, `ruled-${nodes[0]}.sqlite`), () => 5)
    store.append('restoring', { made_at: 1 })
    const peers = {
      nodes,
      call: async (node: number, call: string) =>
        call === '/peer/generation' ? { generation: 0 } : { rows: rows.get(node) },
    }
    const backups = new Backups({
      config: { timeouts_ms: { keygen: 1 } },
      store,
      peers,
      log: () => {},
    } as unknown as ConstructorParameters<typeof Backups>[0])
    await backups.takeRecords()
    assert.deepEqual([...store.state.rules.keys()], ['both'])
    assert.ok(store.state.voids.has('v'))
    store.close()
  }
})
