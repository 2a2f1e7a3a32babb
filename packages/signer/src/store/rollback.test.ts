import assert from 'node:assert/strict'
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { after, before, test } from 'node:test'
import { loadConfig } from '../config.ts'
import { realEnvironment } from '../environment.ts'
import { openLog } from '../log.ts'
import { QUIET_TICKS, startNode } from '../node.ts'
import {
  BTC,
  btc,
  funding,
  SignerCluster,
  pay,
  SINK_BTC,
  transfer,
  type Answer,
  type Workspace,
} from '../../testing/signer-cluster.ts'
import { waitFor } from '../../../../testing/wait-for.ts'

/**
 * A disk image of one node is restored, and its peers are restarted as well, so that they have lost
 * their state in memory.
 */
let cluster: SignerCluster
let workspace: Workspace
before(async () => {
  cluster = await SignerCluster.start({ where: 'apart' })
  workspace = await cluster.workspace()
})
after(async () => {
  await cluster.stop()
})

const heightOf = async (node: number) =>
  (await cluster.get(node, '/status')).body.record.height as number
/**
 * Reads a number from a node's disk; 0 if there is none. It is read from a copy, because the node
 * has locked the file.
 */
function onDisk(node: number, sql: string, ...values: number[]): number {
  const folder = mkdtempSync(join(tmpdir(), 'signer-image-'))
  for (const [path, bytes] of image(node)) writeFileSync(join(folder, basename(path)), bytes)
  const database = new DatabaseSync(join(folder, 'record.sqlite'))
  try {
    return Number(database.prepare(sql).get(...values)?.['height'] ?? 0)
  } finally {
    database.close()
    rmSync(folder, { recursive: true })
  }
}
const signedOn = (node: number) =>
  onDisk(node, `SELECT count(*) height FROM record WHERE kind = 'signed'`)
/**
 * Waits until a node's disk contains a finished signature, which is written shortly after the
 * answer.
 */
const written = (node: number, before: number) =>
  waitFor('it is on disk', () => signedOn(node) > before)
/** Waits until a node's disk contains the last entry of a peer. */
const learnt = (node: number, of: number, height: number) =>
  waitFor(
    'the peer’s head is known',
    () => onDisk(node, 'SELECT height FROM peer_head WHERE node = ?', of) >= height,
  )
const sees = (node: number, other: number) =>
  waitFor(`${node} reaches ${other}`, async () =>
    (
      (await cluster.get(node, '/status')).body.peers as { node: number; reachable: boolean }[]
    ).some((peer) => peer.node === other && peer.reachable),
  )
const FILES = ['record.sqlite', 'record.sqlite-wal', 'record.sqlite-shm']
type Image = Map<string, Buffer>

function image(node: number): Image {
  const { home } = cluster.peers.nodes[node - 1]!
  return new Map(
    FILES.map((name) => join(home, name))
      .filter((path) => existsSync(path))
      .map((path) => [path, readFileSync(path)]),
  )
}
function bringBack(node: number, taken: Image): void {
  for (const name of FILES) rmSync(join(cluster.peers.nodes[node - 1]!.home, name), { force: true })
  for (const [path, bytes] of taken) writeFileSync(path, bytes)
}

let sub = 10
/**
 * Creates one payment and two transactions of different coins that would both pay it: if both are
 * signed, it is paid twice.
 */
async function twice(): Promise<
  Record<'first' | 'second', (pair: readonly [number, number]) => Promise<Answer>>
> {
  const caller = await workspace.caller(sub)
  const path = [sub++, BTC.chain_index, 0]
  const purpose = pay(
    await transfer(caller, { asset: 'BTC', amount: '0.001', destination_address: SINK_BTC }),
  )
  const made = () =>
    btc(workspace, {
      inputs: [{ funding: funding(workspace, [{ path, value: 110_000n }]), output: 0, path }],
      amount: 100_000n,
      change: { path: [path[0]!, path[1]!, 0x7fffffff], value: 9_000n },
    })
  const [one, other] = [made(), made()]
  return {
    first: (pair) => workspace.sign(purpose, one, pair),
    second: (pair) => workspace.sign(purpose, other, pair),
  }
}

async function assertRefused(
  attempt: (pair: readonly [number, number]) => Promise<Answer>,
  pairs: readonly (readonly [number, number])[],
): Promise<void> {
  for (const pair of pairs) {
    const { body } = await attempt(pair)
    assert.equal(
      body.error,
      'HEAD_WENT_BACK',
      `${pair.join()}: ${JSON.stringify(body).slice(0, 300)}`,
    )
  }
}

/** Restores the node's real state, so that the next test has three honest nodes. */
async function heal(node: number, truth: Image): Promise<void> {
  await cluster.kill(node)
  bringBack(node, truth)
  await cluster.run(node)
}

for (const [role, pair] of [
  ['coordinator', [1, 2]],
  ['partner', [2, 1]],
] as const) {
  test(`node 1, ${role} of a signature, signs no second transaction after a rollback`, async () => {
    const { first, second } = await twice()
    const old = image(1)
    const before = pair.map(signedOn)
    assert.equal((await first(pair)).status, 200)
    for (const [at, node] of pair.entries()) await written(node, before[at]!)
    for (const node of [1, 2, 3]) await cluster.kill(node)
    const truth = image(1)
    bringBack(1, old)
    await Promise.all([1, 2, 3].map((node) => cluster.run(node)))
    await assertRefused(second, [
      [1, 3],
      [3, 1],
      [1, 3],
    ])
    await heal(1, truth)
    assert.equal((await first([1, 3])).status, 200)
  })
}

test('refuses a second signature if node 3 learnt of the first only by pings', async () => {
  const { first, second } = await twice()
  const old = image(1)
  assert.equal((await first([1, 2])).status, 200)
  await learnt(3, 1, await heightOf(1))
  for (const node of [1, 2, 3]) await cluster.kill(node)
  const truth = image(1)
  bringBack(1, old)
  await Promise.all([cluster.run(1), cluster.run(3)])
  await assertRefused(second, [
    [1, 3],
    [3, 1],
  ])
  await heal(1, truth)
  await cluster.run(2)
})

test('refuses a second signature once the partner of the first is reachable again', async () => {
  const { first, second } = await twice()
  const old = image(1)
  await cluster.kill(3)
  const before = [1, 2].map(signedOn)
  assert.equal((await first([1, 2])).status, 200)
  for (const [at, node] of [1, 2].entries()) await written(node, before[at]!)
  for (const node of [1, 2]) await cluster.kill(node)
  const truth = image(1)
  bringBack(1, old)
  // Node 3 does not have the entry, and no other node is reachable.
  await Promise.all([cluster.run(1), cluster.run(3)])
  await Promise.all([sees(1, 3), sees(3, 1)])
  await cluster.run(2)
  await Promise.all([sees(1, 2), sees(3, 2)])
  await assertRefused(second, [
    [1, 3],
    [3, 1],
  ])
  await heal(1, truth)
})

test('idle nodes append nothing to their records during housekeeping', async () => {
  for (const node of [1, 2, 3]) await cluster.kill(node)
  const exit = (code: number): never => {
    throw new Error(`a node exited with ${code}`)
  }
  const nodes = await Promise.all(
    cluster.peers.nodes.map(({ home }) => {
      const config = loadConfig(home)
      return startNode(
        config,
        { ...realEnvironment, exit },
        openLog(config.node, realEnvironment.now, () => {}),
        process.env,
      )
    }),
  )
  try {
    const round = () => Promise.all(nodes.map(({ housekeeping }) => housekeeping()))
    const heights = () => nodes.map(({ parts }) => parts.store.record.height)
    // Waits until each node has sent its current height to its peers, so that nothing remains to be
    // exchanged.
    await waitFor('each node has shown its height to its peers', async () => {
      await round()
      return nodes.every(({ parts: { peers } }) => peers.nodes.every((node) => peers.isQuiet(node)))
    })
    const before = heights()
    // Includes two rounds in which each node pings all peers although nothing is new.
    for (let count = 0; count < 2 * QUIET_TICKS; count++) await round()
    assert.deepEqual(heights(), before)
  } finally {
    await Promise.all(nodes.map(({ stop }) => stop()))
  }
})
