import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { Refresher } from '../src/keys/refresh.ts'
import { Store } from '../src/store/index.ts'

const folder = mkdtempSync(join(tmpdir(), 'signer-refresh-'))
after(() => { rmSync(folder, { recursive: true, force: true }) })

const KEY = { key_id: 'k', curve: 'secp256k1' as const, public_key: '02', chain_code: '00', mode: 'local', signatures: [] }

/** Node 2 after a refresh whose leader went away between the switches of two nodes. */
async function settle(tested: number[], epochs: Record<number, number>): Promise<{ epoch: number; old: boolean; calls: string[] }> {
  const store = new Store(join(folder, `${tested.join('')}-${Object.values(epochs).join('')}.sqlite`), () => 1)
  const session = 'ab'.repeat(32)
  store.append('key', { ...KEY, epoch: 0 })
  store.append('prepared', { ...KEY, epoch: 1, session })
  for (const partner of tested) store.append('tested', { key_id: 'k', epoch: 1, session, partner })
  for (const epoch of [0, 1]) {
    store.shares.save({
      engine: 'dkls23-secp256k1', engineVersion: '', curve: 'secp256k1', keyId: 'k', epoch, party: 2,
      publicKey: new Uint8Array(), chainCode: new Uint8Array(), sealedShare: new Uint8Array(),
    })
  }
  const calls: string[] = []
  const peers = {
    nodes: [1, 3],
    handle: () => {},
    call: async (node: number, call: string) => {
      if (call === '/peer/refresh/state') return { epoch: epochs[node] }
      calls.push(`${node} ${call}`)
      return {}
    },
  }
  const refresher = new Refresher({
    store, peers, config: { node: 2, timeouts_ms: { round: 1, keygen: 1, sign: 1 } }, keyring: { forget: () => {} }, log: () => {}, environment: {}, vault: {}, bans: {},
    ceremonies: { lead: async () => { throw new Error('no further') } },
  } as unknown as ConstructorParameters<typeof Refresher>[0])
  await refresher.command({})
  const answer = { epoch: store.state.keys.get('k')!.epoch, old: store.shares.has('k', 0), calls }
  store.close()
  return answer
}

test('a node that tested the new shares follows one that switched, and takes the third along', async () => {
  assert.deepEqual(await settle([1, 3], { 1: 1, 3: 0 }), { epoch: 1, old: false, calls: ['3 /peer/refresh/commit', '1 /peer/refresh/forget', '3 /peer/refresh/forget'] })
})

test('nobody switched: the old shares stay', async () => {
  assert.deepEqual(await settle([1, 3], { 1: 0, 3: 0 }), { epoch: 0, old: true, calls: [] })
})

test('untested new shares are not followed, whatever a peer says', async () => {
  assert.deepEqual(await settle([1], { 1: 1, 3: 1 }), { epoch: 0, old: true, calls: [] })
})

test('a peer that still writes down the new shares makes the leader\'s test wait for them', async () => {
  const store = new Store(join(folder, 'open.sqlite'), () => 1)
  const name = { key_id: 'k', epoch: 1, session: 'ab'.repeat(32) }
  store.append('key', { ...KEY, epoch: 0 })
  const handlers = new Map<string, (node: number, body: unknown, header: unknown) => Promise<unknown>>()
  const refresher = new Refresher({
    store, peers: { nodes: [1, 3], handle: (call: string, handler: never) => { handlers.set(call, handler) } }, config: { node: 2, timeouts_ms: { round: 1, keygen: 1, sign: 1 } },
    environment: { random: () => { throw new Error('the test begins') } }, bans: { assertNot: () => {} },
    ceremonies: { ended: async () => { await new Promise(setImmediate); store.append('prepared', { ...KEY, epoch: 1, session: name.session }) } },
  } as unknown as ConstructorParameters<typeof Refresher>[0])
  assert.ok(refresher)
  await assert.rejects(handlers.get('/peer/refresh/open')!(1, { ...name, fresh: 'cd'.repeat(32) }, {}), /the test begins/)
  store.close()
})
