import assert from 'node:assert/strict'
import { generateKeyPairSync } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { NO_BINDING, open, PROTOCOL, seal, VERSION, type Header } from '../envelope.ts'
import type { NewEntry } from '../store/entries/index.ts'
import { RecordStore } from '../store/record.ts'
import { Store } from '../store/index.ts'
import { bindingBytes } from './certificate.ts'
import { signBytes } from '../canonical.ts'
import { PeerRecords } from './peer-records.ts'

/** What a restored node takes from the records of its peers, of which one may be hostile. */
const folder = mkdtempSync(join(tmpdir(), 'peer-records-'))
const stores: Store[] = []
after(() => {
  for (const store of stores) store.close()
  rmSync(folder, { recursive: true })
})
const KEYS = new Map([1, 2, 3].map((node) => [node, generateKeyPairSync('ed25519')]))
const identities = new Map([...KEYS].map(([node, { publicKey }]) => [node, publicKey]))
const signaturesOf = (bytes: Uint8Array) =>
  [...KEYS].map(([node, { privateKey }]) => ({ node, signature: signBytes(privateKey, bytes) }))

let files = 0
function recordOf(entries: readonly NewEntry[]): Store {
  const store = new Store(join(folder, `${files++}.sqlite`), () => 5000)
  for (const { kind, body } of entries) store.append(kind, body)
  stores.push(store)
  return store
}

/** Node 2 is restored from the records of the nodes 1 and 3. */
async function taken(
  one: readonly NewEntry[],
  three: readonly NewEntry[],
  { drop = [], only = [1, 3] }: { drop?: readonly string[]; only?: number[] } = {},
) {
  const records = new Map([
    [1, recordOf(one)],
    [3, recordOf(three)],
  ])
  const store = recordOf([{ kind: 'restoring', body: { made_at: 1 } }])
  const calls: [number, string][] = []
  const parts = {
    config: { node: 2, mode: 'local', timeouts_ms: { keygen: 1 }, peerList: [] },
    store,
    keyring: { identities },
    peers: {
      nodes: [1, 3],
      call: async (node: number, call: string, body: { from: number }) => {
        calls.push([node, call])
        if (call === '/peer/record') return { rows: records.get(node)!.record.page(body.from, 200) }
        return call === '/peer/generation' ? { generation: 0 } : { proof: null }
      },
    },
    log: () => undefined,
  }
  const reader = new PeerRecords(parts as unknown as ConstructorParameters<typeof PeerRecords>[0])
  const compared = await reader.compare(only, drop)
  await reader.take(compared)
  return { state: store.state, compared, store }
}

const revoke = (api_key: string): NewEntry => ({ kind: 'revoke', body: { api_key } })
const voided = (...keys: string[]): NewEntry => ({
  kind: 'void',
  body: { keys, transaction_id: null, signed_hashes: [] },
})
const allocate = (key_id: string): NewEntry => ({
  kind: 'allocate',
  body: { workspace: 'w', curve: 'ed25519', key_id, epoch: 0 },
})
const subAccount = (name: string, index: number): NewEntry => ({
  kind: 'sub-account',
  body: { workspace: 'w', name, index },
})

test('restrictions that one peer has are kept and listed, and those of both are not listed', async () => {
  const { state, compared } = await taken(
    [revoke('a'), voided('x'), voided('y', 'z')],
    [voided('x', 'y'), revoke('b')],
  )
  assert.deepEqual([...state.revoked].sort(), ['a', 'b'])
  assert.deepEqual([...state.voids.keys()].sort(), ['x', 'y', 'z'])
  assert.deepEqual(
    compared.onlyAtOne.listed.map(({ id, text }) => [id, text]),
    [
      ['1:1', 'API key a'],
      ['1:3', 'void of y, z'],
      ['3:2', 'API key b'],
    ],
  )
  assert.deepEqual(compared.onlyAtOne.kinds, { revoke: 2, void: 1 })
})

test('the operator drops only what the other peer’s record does not contain', async () => {
  const { state, store } = await taken([revoke('a'), voided('x')], [revoke('b')], {
    drop: ['1:1', '1:2'],
  })
  assert.deepEqual([[...state.revoked], state.voids.size], [['b'], 0])
  const last = store.record.readAs(store.record.height, 'restored')
  assert.deepEqual(last.body.dropped, ['1:1', '1:2'])
  for (const [drop, reason] of [
    [['1:1'], /node 3 has it too/],
    [['3:7'], /cannot be dropped/],
    [['1:2'], /cannot be dropped/],
  ] as const)
    await assert.rejects(
      taken([voided('x', 'y'), allocate('k')], [voided('y')], { drop }),
      (error: Error) => reason.test(error.message),
    )
  await assert.rejects(
    taken([revoke('a')], [], { drop: ['1:1'], only: [1] }),
    /record of the other peer/,
  )
})

test('attack: an allocation or a name that one peer alone has is not taken over', async () => {
  const { state } = await taken(
    [allocate('hostile'), subAccount('one', 1), subAccount('both', 2)],
    [allocate('honest'), subAccount('both', 2)],
  )
  assert.equal(state.allocations.size, 0)
  assert.deepEqual([...state.subAccounts.keys()], [JSON.stringify(['w', 'both'])])
  const both = await taken([allocate('k')], [allocate('k')])
  assert.equal(both.state.allocations.size, 1)
})

test('what the certificates of all three nodes prove is taken over from one peer', async () => {
  const binding = { workspace: 'w', sub_account: 'one', index: 1, mode: 'local' }
  const certificates = signaturesOf(bindingBytes(binding))
  const set: NewEntry = {
    kind: 'sub-account-set',
    body: { workspace: 'w', name: 'one', index: 1, certificates },
  }
  const { state } = await taken([subAccount('one', 1), set], [])
  assert.equal(state.subAccounts.size, 1)
  const forged = await taken(
    [subAccount('one', 2), { ...set, body: { ...set.body, index: 2 } } as NewEntry],
    [],
  )
  assert.equal(forged.state.subAccounts.size, 0)
})

test('attack: the pages of a record end at a bound that the third node knows', async () => {
  const store = recordOf([{ kind: 'restoring', body: { made_at: 1 } }])
  let pages = 0
  let previous = RecordStore.genesis
  const parts = {
    config: { node: 2, timeouts_ms: { keygen: 1 }, peerList: [] },
    store,
    keyring: { identities },
    rowsMax: 1000,
    peers: {
      nodes: [1, 3],
      call: async (node: number, call: string, { from }: { from: number }) => {
        if (call !== '/peer/record') return { generation: 0, proof: null }
        if (node === 3) return { rows: [] }
        pages++
        return {
          rows: Array.from({ length: 200 }, (_, at) => {
            const body = JSON.stringify({ api_key: `k${from + at}` })
            const hash = RecordStore.hashOf(from + at, 1, 'revoke', body, previous)
            previous = hash
            return { height: from + at, at: 1, kind: 'revoke', body, hash }
          }),
        }
      },
    },
    log: () => undefined,
  }
  const reader = new PeerRecords(parts as unknown as ConstructorParameters<typeof PeerRecords>[0])
  await assert.rejects(reader.compare([1, 3], []), {
    code: 'PEER_UNAVAILABLE',
    message: /node 1 does not end/,
  })
  assert.ok(pages <= 6, `${pages} pages`)
  assert.equal(store.record.height, 1)
})

/** A signed head of node 1, as the third node has it. */
function headOf(height: number, head: string) {
  const { privateKey, publicKey } = KEYS.get(1)!
  const header: Header = {
    protocol: PROTOCOL,
    version: VERSION,
    call: '/peer/ping',
    request: '0'.repeat(32),
    response: false,
    status: 0,
    ...NO_BINDING,
    from: 1,
    to: 3,
    height,
    head,
    generation: 0,
    boot: 'b',
  }
  const expect = { from: 1, to: 3, call: '/peer/ping', response: false, identity: publicKey }
  return open(seal(privateKey, header, {}), expect).proof
}

test('names a peer whose record does not contain the head that the third node has seen', async () => {
  const record = recordOf([revoke('a'), revoke('b')])
  const othersAt = async (height: number, hash: string): Promise<number[]> => {
    const parts = {
      config: { node: 2, timeouts_ms: { keygen: 1 }, peerList: [] },
      store: recordOf([{ kind: 'restoring', body: { made_at: 1 } }]),
      keyring: { identities },
      peers: {
        nodes: [1, 3],
        call: async (node: number, call: string, { from }: { from: number }) =>
          call === '/peer/record'
            ? { rows: node === 1 ? record.record.page(from, 200) : [] }
            : { proof: node === 3 ? headOf(height, hash) : null },
      },
      log: () => undefined,
    }
    const reader = new PeerRecords(parts as unknown as ConstructorParameters<typeof PeerRecords>[0])
    return (await reader.compare([1, 3], [])).others
  }
  assert.deepEqual(await othersAt(1, record.record.hashAt(1)!), [])
  assert.deepEqual(await othersAt(2, record.record.head), [])
  assert.deepEqual(await othersAt(2, 'f'.repeat(64)), [1], 'another entry at that height')
  assert.deepEqual(await othersAt(9, record.record.head), [1], 'it ends before')
})

test('charges and nonces of one peer are listed while they count, and can be dropped', async () => {
  const charged: NewEntry = {
    kind: 'charged',
    body: {
      step: 's',
      unsigned_hash: 'h',
      workspace: 'w',
      policy: {
        number: 1,
        hash: 'a'.repeat(64),
        via: 'rule',
        charges: [{ key: 'day', hours: 24, amounts: { ETH: '5' } }],
      },
    },
  }
  const nonce: NewEntry = { kind: 'nonce', body: { account: 'a', nonce: '9', from: 3 } }
  const kept = await taken([charged, nonce], [])
  assert.deepEqual(kept.compared.onlyAtOne.kinds, { charged: 1, nonce: 1 })
  assert.equal(kept.state.nonces.get('a'), 9n)
  assert.equal(kept.state.spending.steps.length, 1)
  const { state } = await taken([charged, nonce], [], { drop: ['1:1', '1:2'] })
  assert.deepEqual([state.nonces.size, state.spending.steps.length], [0, 0])
})
