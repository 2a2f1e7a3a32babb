import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { history, historyBodySchema } from './history.ts'
import type { Body } from '../store/entries/index.ts'
import { importable } from '../store/imported.ts'
import { Store } from '../store/index.ts'
import type { NodeContext } from '../node-context.ts'

const folder = mkdtempSync(join(tmpdir(), 'signer-history-'))
after(() => {
  rmSync(folder, { recursive: true, force: true })
})

interface Page {
  before: string | null
  hash: string | null
  next: number
  height: number
  entries: { height: number; kind: string; body: Record<string, unknown> }[]
}

function opened(name: string): { store: Store; page: (from: number, limit?: number) => Page } {
  const store = new Store(join(folder, `${name}.sqlite`), () => 1_800_000_000_000)
  const parts = { config: { node: 1 }, store } as unknown as NodeContext
  return {
    store,
    page: (from, limit) =>
      history(
        parts,
        historyBodySchema.parse({ from, ...(limit === undefined ? {} : { limit }) }),
      ) as Page,
  }
}

const unsigned = { network: 'ETH', bytes: '02aa', inputs: [{ path: [1, 60, 0] }] }
const step = (order: number, more: Partial<Body<'step'>> = {}): Body<'step'> => ({
  step: `["pay",${order}]`,
  purpose: 'pay',
  workspace: 'acme',
  key_id: 'k',
  intent: `${order}`,
  content: 'c',
  transaction_id: `t${order}`,
  unsigned_hash: `u${order}`,
  unsigned,
  decoded: {
    network: 'ETH',
    asset: 'ETH',
    payments: [],
    change: null,
    from: [],
    fee_max: '1',
    fee_rate: '1',
    consumes: [],
    nonce: null,
    gas_limit: null,
    max_fee_per_gas: null,
    vsize: null,
  },
  consumes: [],
  account: null,
  nonce: null,
  charge: null,
  sessions: ['secret-session'],
  partner: 2,
  peer_head: null,
  ...more,
})

test('the history contains signed transactions and callers, but no sessions or raw bytes', () => {
  const { store, page } = opened('told')
  store.append('enrol', {
    api_key: 'a',
    public_key_pem: 'pem',
    role: 'full',
    workspace: 'acme',
    sub_account: 1,
  })
  store.append('seen', {
    api_key: 'a',
    nonce: 'n',
    intent: 'i',
    content: 'c',
    transaction_id: 't',
    iat: 1,
    exp: 2,
    timely: true,
  })
  const { height } = store.append('step', step(1))
  store.append('signed', {
    step_height: height,
    signatures: [{ signature: 'ab', recovery_id: 0 }],
    hash: '0x1',
    raw: '02aabb',
  })
  store.append('session', {
    step_height: height,
    sessions: ['secret-session'],
    partner: 2,
    peer_head: null,
  })
  store.append('head', { node: 2, height: 1, hash: 'x', generation: 0 })
  store.append('void', { keys: ['k'], transaction_id: 't', signed_hashes: [] })
  const { entries } = page(1)
  assert.deepEqual(
    entries.map(({ kind }) => kind),
    ['enrol', 'step', 'signed', 'void'],
  )
  assert.deepEqual(Object.keys(entries[1]!.body).sort(), [
    'intent',
    'purpose',
    'step',
    'transaction_id',
    'unsigned',
    'workspace',
  ])
  assert.deepEqual(entries[2]!.body, {
    step_height: height,
    signatures: [{ signature: 'ab', recovery_id: 0 }],
    hash: '0x1',
  })
  assert.ok(!JSON.stringify(page(1)).includes('secret-session'))
  store.close()
})

test('pages are contiguous and bounded, and show whether the record is still the same', () => {
  const { store, page } = opened('pages')
  for (let order = 0; order < 25; order++) store.append('step', step(order))
  const seen: number[] = []
  let before = page(1, 7)
  for (;;) {
    seen.push(...before.entries.map(({ height }) => height))
    if (before.next > before.height) break
    const next = page(before.next, 7)
    assert.equal(next.before, before.hash)
    before = next
  }
  assert.deepEqual(
    seen,
    Array.from({ length: 25 }, (_, at) => at + 1),
  )
  const other = opened('other')
  other.store.append('step', step(99))
  assert.notEqual(other.page(2).before, page(2).before)
  assert.equal(other.page(3).before, null, 'a record that is shorter than what was compared')
  assert.throws(() => page(0))
  assert.throws(() => page(1, 2001))
  // A page ends before it becomes too large, and each page contains at least one entry.
  for (let order = 0; order < 3; order++)
    store.append('step', step(order, { unsigned: { ...unsigned, bytes: 'aa'.repeat(1_500_000) } }))
  assert.deepEqual([page(26).next, page(28).next], [27, 29])
  store.close()
  other.store.close()
})

test("a restored node returns its peers' history too, including transactions", () => {
  const { store, page } = opened('restored')
  const taken = importable('step', step(5))!
  assert.deepEqual(taken.unsigned, unsigned)
  store.append('imported', { at: 77, kind: 'step', body: taken, from: 2 })
  // A step without its transaction still counts for the rules.
  const bare = importable('step', { ...step(6), unsigned: { bytes: 'not hex' } })
  assert.ok(bare !== null && bare.unsigned === undefined)
  store.append('imported', { at: 78, kind: 'step', body: bare, from: 2 })
  const { entries } = page(1)
  assert.deepEqual(
    entries.map(({ height, kind, body }) => [height, kind, body['transaction_id']]),
    [[1, 'step', 't5']],
  )
  assert.equal((entries[0] as unknown as { at: number }).at, 77)
  store.close()
})
