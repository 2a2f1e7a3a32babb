import assert from 'node:assert/strict'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { SignerCluster, refused, type Json } from '../../testing/signer-cluster.ts'

/** New workspaces request keys from three real nodes, which have no prepared keys left. */
const PREPARED = 3
let cluster: SignerCluster

before(async () => {
  cluster = await SignerCluster.start({
    edit: (config) => {
      config.pool = { secp256k1: 0, ed25519: 0 }
    },
  })
  for (let at = 0; at < PREPARED; at++)
    assert.equal((await cluster.key(1, `prepared-${at}`, 'ed25519')).status, 200)
})
after(async () => {
  await cluster.stop()
})

const status = async (node: number): Promise<Json> => (await cluster.get(node, '/status')).body
const keyOf = async (node: number, workspace: string): Promise<string> => {
  const { status: code, body } = await cluster.key(node, workspace, 'ed25519')
  assert.equal(code, 200, JSON.stringify(body))
  return body.key_id as string
}

test('a new workspace gets its place, and the same key at every node and call afterwards', async () => {
  const first = await cluster.post(1, '/key', { workspace: 'first', curve: 'ed25519' })
  assert.deepEqual([first.status, first.body], [202, { place: 1, waiting: 1 }])
  const second = await cluster.post(2, '/key', { workspace: 'second', curve: 'ed25519' })
  assert.deepEqual([second.status, second.body], [202, { place: 2, waiting: 2 }])
  const repeated = await cluster.post(3, '/key', { workspace: 'first', curve: 'ed25519' })
  assert.deepEqual([repeated.status, repeated.body], [202, { place: 1, waiting: 2 }])
  const { waiting, pool } = (await status(1)).key_queue
  assert.deepEqual([waiting, pool], [2, { secp256k1: 0, ed25519: 0 }])
  assert.equal((await status(2)).key_queue, null)

  const keys = await Promise.all([1, 2, 3, 1].map((node) => keyOf(node, 'first')))
  assert.equal(new Set(keys).size, 1)
  assert.notEqual(await keyOf(3, 'second'), keys[0])
})

test('workspaces that request keys at the same time each get one, although node 1 restarts', async () => {
  const names = Array.from({ length: 6 }, (_, at) => `burst-${at}`)
  // Several processes of the platform request the key of each workspace.
  for (const name of names)
    for (const node of [1, 2])
      assert.equal(
        (await cluster.post(node, '/key', { workspace: name, curve: 'ed25519' })).status,
        202,
      )
  await keyOf(1, names[0] as string)
  await cluster.restartHere(1)
  const keys = await Promise.all(
    names.flatMap((name) => [1, 2, 3].map((node) => keyOf(node, name))),
  )
  assert.equal(new Set(keys).size, names.length)
  names.forEach((_, at) => assert.equal(new Set(keys.slice(3 * at, 3 * at + 3)).size, 1))
})

test('counts the keys that were generated after the last backup', async () => {
  assert.ok((await status(1)).keys_not_in_backup > 0)
  const { status: code, body } = await cluster.operator(1, 'backup', {
    file: join(cluster.home, 'backup.json'),
  })
  assert.equal(code, 200, JSON.stringify(body))
  assert.equal((await status(1)).keys_not_in_backup, 0)
  await keyOf(1, 'after-backup')
  assert.equal((await status(1)).keys_not_in_backup, 1)
})

test('while a node is away, a new workspace is refused with its number, and gets a key afterwards', async () => {
  await cluster.restartHere(3, async () => {
    // Until the others notice that the node is away, they answer with a place.
    for (;;) {
      const answer = await cluster.post(1, '/key', { workspace: 'waits', curve: 'ed25519' })
      if (answer.status === 202) continue
      refused(answer, 'PEER_UNAVAILABLE')
      assert.deepEqual([answer.status, answer.body.node], [503, 3])
      break
    }
  })
  assert.equal(await keyOf(1, 'waits'), await keyOf(3, 'waits'))
})
