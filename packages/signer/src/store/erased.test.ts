import assert from 'node:assert/strict'
import { cpSync, globSync, mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { restoreHome } from '../setup.ts'
import { Store } from './index.ts'
import {
  ETH,
  eth,
  SignerCluster,
  pay,
  SINK_ETH,
  transfer,
  type Caller,
  type Workspace,
} from '../../testing/signer-cluster.ts'

/**
 * An attacker who takes a disk after a refresh, with its key-encryption key, must not find the
 * earlier shares.
 */
let cluster: SignerCluster
let workspace: Workspace
let caller: Caller
let nonce = 0
const images = mkdtempSync(join(tmpdir(), 'signer-images-'))
before(async () => {
  cluster = await SignerCluster.start({ where: 'apart' })
  workspace = await cluster.workspace()
  caller = await workspace.caller()
})
after(async () => {
  await cluster.stop()
  rmSync(images, { recursive: true, force: true })
})

const homeOf = (node: number): string => cluster.peers.nodes[node - 1]!.home
const NODES = [1, 2, 3] as const
let image = 0

/** Returns the sealed shares of a node by `key/epoch`, read from an image of its disk. */
function sharesOf(node: number): Map<string, Buffer> {
  const copy = join(images, String(image++))
  cpSync(homeOf(node), copy, { recursive: true, filter: (path) => !path.endsWith('.sock') })
  const store = new Store(join(copy, 'record.sqlite'), () => Date.now())
  const matches = new Map<string, Buffer>()
  for (const key of store.state.keys.values()) {
    for (const epoch of [0, 1, 2, 3]) {
      const share = store.shares.of(key.key_id, epoch)[0]?.material
      if (share) matches.set(`${key.key_id}/${epoch}`, Buffer.from(share.sealedShare))
    }
  }
  store.close()
  rmSync(copy, { recursive: true })
  return matches
}

const WINDOW = 48
/** Returns pieces of a share in every encoding: what remains on the disk may be incomplete. */
function piecesOf(share: Buffer): Buffer[] {
  const pieces: Buffer[] = []
  const step = Math.max(WINDOW, Math.floor((share.length - WINDOW) / 12 / WINDOW) * WINDOW)
  for (let at = 0; at + WINDOW <= share.length; at += step) {
    const window = share.subarray(at, at + WINDOW)
    pieces.push(window, Buffer.from(window.toString('hex')), Buffer.from(window.toString('base64')))
  }
  return pieces
}

const filesOf = (home: string): string[] =>
  globSync('**/*', { cwd: home })
    .map((name) => join(home, name))
    .filter((path) => statSync(path).isFile())

function assertGone(old: ReadonlyMap<string, Buffer>, node: number, when: string): void {
  const files = filesOf(homeOf(node)).map((path) => [path, readFileSync(path)] as const)
  assert.ok(files.some(([path]) => path.endsWith('record.sqlite')))
  for (const [name, share] of old) {
    for (const piece of piecesOf(share)) {
      for (const [path, bytes] of files)
        assert.ok(!bytes.includes(piece), `${when}: a piece of ${name} is in ${path}`)
    }
  }
}

async function sign(pair: readonly [number, number]): Promise<void> {
  const request = await transfer(caller, { asset: 'ETH', amount: 1, destination_address: SINK_ETH })
  const { status, body } = await workspace.sign(
    pay(request),
    eth([1, ETH.chain_index, 0], { value: 10n ** 18n, nonce: nonce++ }),
    pair,
  )
  assert.equal(status, 200, JSON.stringify(body))
}

test('after a refresh the data directory contains no old shares, even after kill -9', async () => {
  await sign([1, 2])
  await sign([3, 1])
  // The keys of the pool are refreshed like all others.
  const pools = () =>
    Promise.all(
      NODES.map(async (node) => (await cluster.get(node, '/status')).body.pool.secp256k1 as number),
    )
  while ((await pools()).some((count) => count < 1))
    await new Promise((resolve) => {
      setTimeout(resolve, 100)
    })
  const old = new Map(NODES.map((node) => [node, sharesOf(node)]))
  for (const shares of old.values())
    assert.ok(shares.size >= 2 && [...shares.values()].every((share) => share.length > WINDOW))
  const { body } = await cluster.operator(2, 'refresh')
  assert.deepEqual([body.failed, body.refreshed.length >= 2], [[], true], JSON.stringify(body))
  for (const node of NODES) assertGone(old.get(node)!, node, 'running')
  for (const node of NODES) await cluster.kill(node)
  for (const node of NODES) {
    assertGone(old.get(node)!, node, 'killed')
    for (const name of old.get(node)!.keys()) {
      const [key] = name.split('/')
      assert.ok(sharesOf(node).has(`${key}/1`), 'the new share is there')
    }
  }
  await Promise.all(NODES.map((node) => cluster.run(node)))
  await sign([2, 3])
  await sign([3, 1])
})

test('a restored and refreshed host contains no old shares either', async () => {
  const before = new Map(NODES.map((node) => [node, sharesOf(node)]))
  const backup = await cluster.operator(3, 'backup', { file: join(cluster.home, 'backup-3.json') })
  assert.equal(backup.status, 200, JSON.stringify(backup.body))
  await cluster.kill(3)
  rmSync(homeOf(3), { recursive: true })
  await restoreHome({
    home: homeOf(3),
    file: backup.body.file,
    recoverySecretFile: join(cluster.home, 'recovery-3'),
    print: null,
  })
  await cluster.run(3)
  assert.equal(
    (
      await cluster.operator(3, 'restore', {
        file: backup.body.file,
        recovery_secret_file: join(cluster.home, 'recovery-3'),
      })
    ).status,
    200,
  )
  // The share is sealed again with the new host's key.
  const restored = sharesOf(3)
  assertGone(before.get(3)!, 3, 'restored')
  const { body } = await cluster.operator(1, 'refresh', { workspace: workspace.name })
  assert.deepEqual(body.failed, [], JSON.stringify(body))
  const name = `${workspace.set.key_id}/1`
  for (const [node, shares] of [
    [1, before.get(1)!],
    [2, before.get(2)!],
    [3, restored],
  ] as const) {
    assertGone(new Map([[name, shares.get(name)!]]), node, 'refreshed again')
  }
})
