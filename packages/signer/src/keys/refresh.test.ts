import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import type { KeyMaterial } from '@custody/threshold'
import { Refusal } from '../errors.ts'
import type { Subject } from './pair-tests.ts'
import { Refresher } from './refresh.ts'
import { Store } from '../store/index.ts'

const folder = mkdtempSync(join(tmpdir(), 'signer-refresh-'))
after(() => {
  rmSync(folder, { recursive: true, force: true })
})

const material = (epoch: number): KeyMaterial => ({
  engine: 'dkls23-secp256k1',
  engineVersion: '',
  curve: 'secp256k1',
  keyId: 'k',
  epoch,
  party: 2,
  publicKey: new Uint8Array(),
  chainCode: new Uint8Array(),
  sealedShare: new Uint8Array(),
})
const KEY = {
  key_id: 'k',
  curve: 'secp256k1' as const,
  public_key: '02',
  chain_code: '00',
  mode: 'local',
  signatures: [],
}

const SESSION = 'ab'.repeat(32)
type Answer = { epoch: number; session: string | null }
const [OLD, NEW]: [Answer, Answer] = [
  { epoch: 0, session: null },
  { epoch: 1, session: SESSION },
]
let files = 0

/**
 * Creates the state of node 2 after a refresh whose leader stopped between the switches of the two
 * nodes. `follows`: the node that switches when it receives the message.
 */
async function settle(o: {
  tested: number[]
  switched?: boolean
  peers: Record<number, Answer>
  follows?: number[]
  abandons?: number[]
}): Promise<{
  epoch: number
  hasOld: boolean
  calls: string[]
  failed: string[]
}> {
  const store = new Store(join(folder, `${files++}.sqlite`), () => 1)
  store.append('key', { ...KEY, epoch: 0 })
  store.append('prepared', { ...KEY, epoch: 1, session: SESSION })
  for (const partner of o.tested)
    store.append('tested', { key_id: 'k', epoch: 1, session: SESSION, partner })
  if (o.switched) store.append('refreshed', { key_id: 'k', epoch: 1, session: SESSION })
  for (const epoch of [0, 1]) store.shares.save(material(epoch), epoch === 0 ? null : SESSION)
  const calls: string[] = []
  const peers = {
    nodes: [1, 3],
    handle: () => {},
    call: async (node: number, call: string) => {
      if (call === '/peer/refresh/state') return o.peers[node]
      calls.push(`${node} ${call}`)
      const isTaken =
        call === '/peer/refresh/commit'
          ? o.follows?.includes(node)
          : call === '/peer/refresh/abandon'
            ? o.abandons?.includes(node)
            : true
      if (!isTaken) throw new Refusal('KEY_CONFLICT', 'no')
      if (call === '/peer/refresh/commit') o.peers[node] = NEW
      return {}
    },
  }
  const refresher = new Refresher({
    store,
    peers,
    config: { node: 2, timeouts_ms: { round: 1, keygen: 1, sign: 1 } },
    keyring: { forget: () => {} },
    log: () => {},
    tests: { serve: () => {} },
    ceremonies: {
      lead: async () => {
        throw new Error('a new run begins')
      },
    },
  } as unknown as ConstructorParameters<typeof Refresher>[0])
  const { failed } = (await refresher.command({})) as { failed: { reason: string }[] }
  const answer = {
    epoch: store.state.keys.get('k')!.epoch,
    hasOld: store.shares.has('k', 0, null),
    calls,
    failed: failed.map((each) => each.reason),
  }
  store.close()
  return answer
}

test('a node that tested the new shares follows a switched peer and then wipes the old share', async () => {
  assert.deepEqual(await settle({ tested: [1, 3], peers: { 1: NEW, 3: OLD }, follows: [1, 3] }), {
    epoch: 1,
    hasOld: false,
    failed: ['Error: a new run begins'],
    calls: [
      '1 /peer/refresh/commit',
      '3 /peer/refresh/commit',
      '1 /peer/refresh/forget',
      '3 /peer/refresh/forget',
    ],
  })
})

test('if no node switched, the old shares stay in use, and a new run begins', async () => {
  assert.deepEqual(await settle({ tested: [1, 3], peers: { 1: OLD, 3: OLD } }), {
    epoch: 0,
    hasOld: true,
    calls: [],
    failed: ['Error: a new run begins'],
  })
})

test('does not use untested new shares, whatever a peer reports', async () => {
  const { epoch, hasOld, failed } = await settle({ tested: [1], peers: { 1: NEW, 3: NEW } })
  assert.deepEqual([epoch, hasOld], [0, true])
  assert.match(failed.join(), /not tested with node 3/)
})

test('attack: if a leader switches only one node, the old share stays until both have switched', async () => {
  const { epoch, hasOld, failed } = await settle({
    tested: [1, 3],
    switched: true,
    peers: { 1: NEW, 3: OLD },
  })
  assert.deepEqual([epoch, hasOld], [1, true])
  assert.match(failed.join(), /has not ended/)
})

test('reverts a refresh that both peers abandoned, and begins a new run', async () => {
  assert.deepEqual(
    await settle({ tested: [1, 3], switched: true, peers: { 1: OLD, 3: OLD }, abandons: [1, 3] }),
    {
      epoch: 0,
      hasOld: true,
      failed: ['Error: a new run begins'],
      calls: [
        '1 /peer/refresh/commit',
        '3 /peer/refresh/commit',
        '1 /peer/refresh/abandon',
        '3 /peer/refresh/abandon',
      ],
    },
  )
})

test('a peer at the same epoch of another run has not switched', async () => {
  const { hasOld } = await settle({
    tested: [1, 3],
    switched: true,
    peers: { 1: NEW, 3: { epoch: 1, session: 'cd'.repeat(32) } },
  })
  assert.equal(hasOld, true)
})

test("a leader's test waits for a peer that is still storing the new shares", async () => {
  const store = new Store(join(folder, 'open.sqlite'), () => 1)
  const name = { key_id: 'k', epoch: 1, session: SESSION }
  store.append('key', { ...KEY, epoch: 0 })
  const sources: ((request: typeof name) => Promise<Subject | null>)[] = []
  const refresher = new Refresher({
    store,
    peers: { nodes: [1, 3], handle: () => {} },
    tests: {
      serve: (source: never) => {
        sources.push(source)
      },
    },
    ceremonies: {
      ended: async () => {
        await new Promise(setImmediate)
        if (store.state.prepared.has('k')) return
        store.append('prepared', { ...KEY, epoch: 1, session: name.session })
        store.shares.save(material(1), name.session)
      },
    },
  } as unknown as ConstructorParameters<typeof Refresher>[0])
  assert.ok(refresher)
  const subject = await sources[0]!(name)
  subject!.passed(3)
  assert.deepEqual([...store.state.prepared.get('k')!.tested], [3])
  await assert.rejects(sources[0]!({ ...name, session: 'cd'.repeat(32) }), { code: 'KEY_CONFLICT' })
  store.close()
})
