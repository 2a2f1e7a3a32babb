import assert from 'node:assert/strict'
import { generateKeyPairSync, randomBytes } from 'node:crypto'
import { copyFileSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { after, test } from 'node:test'
import { Store } from './index.ts'
import { Peers } from '../transport/peers.ts'

const folder = mkdtempSync(join(tmpdir(), 'signer-heads-'))
const stores: Store[] = []
after(() => {
  for (const store of stores) store.close()
  rmSync(folder, { recursive: true, force: true })
})

type Parts = ConstructorParameters<typeof Peers>[0]
const identities = [1, 2, 3].map(() => generateKeyPairSync('ed25519'))
interface Node {
  peers: Peers
  store: Store
  alerts: string[]
}

/** Three nodes whose messages the test delivers; `hold` can delay one message. */
class Trio {
  readonly nodes = new Map<number, Node>()
  hold: (from: number, to: number) => Promise<void> = async () => {}
  /** Timeouts in milliseconds of the questions to the third node, in their order. */
  readonly timeouts: number[] = []
  #files = 0

  start(
    node: number,
    store = new Store(
      join(folder, `${node}-${this.#files++}-${randomBytes(4).toString('hex')}.sqlite`),
      () => 1,
    ),
  ): Node {
    stores.push(store)
    const alerts: string[] = []
    const config = {
      node,
      identity: identities[node - 1]!.privateKey,
      timeouts_ms: { round: 60_000, keygen: 60_000, sign: 60_000 },
      peerList: [1, 2, 3]
        .filter((other) => other !== node)
        .map((other) => ({ node: other, identity: identities[other - 1]!.publicKey })),
    }
    const peers = new Peers({
      config: config as unknown as Parts['config'],
      store,
      environment: {
        now: () => 1,
        random: (bytes: number) => randomBytes(bytes),
      } as unknown as Parts['environment'],
      log: (level, message) => {
        if (level === 'alert') alerts.push(message)
      },
      assertNotBanned: () => {},
      link: (peer) => ({
        peer,
        close: () => {},
        post: async (path, sealed, timeout) => {
          if (path === '/peer/head-of') this.timeouts.push(timeout)
          if (path === '/peer/test') await this.hold(node, peer.node)
          return this.nodes.get(peer.node)!.peers.receive(node, path, sealed)
        },
      }),
    })
    peers.handle('/peer/test', async () => ({}))
    this.nodes.set(node, { peers, store, alerts })
    return this.nodes.get(node)!
  }
}

const send = (node: Node, to: number) => node.peers.call(to, '/peer/test', {}, { timeout: 60_000 })
const grow = (node: Node) => node.store.append('revoke', { api_key: 'x' })

test('messages that arrive in another order do not count as a rollback of the record', async () => {
  const trio = new Trio()
  const [first, second] = [trio.start(1), trio.start(2), trio.start(3)] as [Node, Node, Node]
  grow(first)
  let release = () => {}
  trio.hold = (from, to) =>
    from === 1 && to === 2
      ? new Promise<void>((resolve) => {
          release = resolve
        })
      : Promise.resolve()
  const slow = send(first, 2)
  grow(first)
  await send(first, 3)
  release()
  await slow
  assert.deepEqual(second.alerts, [])
})

test('refuses a record that is older than, or differs from, the head that the third node has', async () => {
  const trio = new Trio()
  const first = trio.start(1)
  const second = trio.start(2)
  trio.start(3)
  grow(first)
  grow(first)
  await send(first, 3)
  await assert.rejects(send(trio.start(1), 2), { code: 'HEAD_WENT_BACK' })
  const rewritten = trio.start(1)
  for (const text of ['y', 'z', 'z']) rewritten.store.append('revoke', { api_key: text })
  await assert.rejects(send(rewritten, 2), { code: 'HEAD_WENT_BACK' })
  assert.equal(second.alerts.length, 2)
})

test('a call that waits for the third node waits for as long as a ping', async () => {
  const trio = new Trio()
  const first = trio.start(1)
  trio.start(2)
  trio.start(3)
  await send(first, 2)
  assert.ok(trio.timeouts.length > 0)
  assert.deepEqual([...new Set(trio.timeouts)], [1500])
})

const moment = () =>
  new Promise((resolve) => {
    setTimeout(resolve, 5)
  })
async function tick(nodes: readonly Node[]): Promise<void> {
  await Promise.all(nodes.map((node) => node.peers.ping()))
  await moment()
  for (const { store } of nodes) store.saveHeads()
}

test('idle nodes store the heads received by pings, and further pings write nothing', async () => {
  const trio = new Trio()
  const nodes = [trio.start(1), trio.start(2), trio.start(3)]
  for (const node of nodes) grow(node)
  for (let count = 0; count < 3; count++) await tick(nodes)
  const written = () =>
    nodes.map(({ store }) => [
      store.record.height,
      (store.record.database.prepare('SELECT total_changes() n').get() as { n: number }).n,
    ])
  const before = written()
  for (let count = 0; count < 20; count++) await tick(nodes)
  assert.deepEqual(written(), before)
  assert.deepEqual(
    nodes.map(({ store }) => store.record.height),
    [1, 1, 1],
  )
})

test('a head that was received only by pings is enforced after a restart', async () => {
  const trio = new Trio()
  const path = join(folder, 'kept.sqlite')
  const [first, second] = [trio.start(1), trio.start(2, new Store(path, () => 1))]
  for (let count = 0; count < 4; count++) {
    grow(first)
    await tick([first, second])
  }
  stores.splice(stores.indexOf(second.store), 1)
  second.store.close()
  const again = trio.start(2, new Store(path, () => 1))
  await send(first, 2)
  const rolledBack = trio.start(1)
  for (let count = 0; count < 3; count++) grow(rolledBack)
  await assert.rejects(send(rolledBack, 2), { code: 'HEAD_WENT_BACK' })
  await assert.rejects(send(again, 1), { code: 'HEAD_WENT_BACK' })
})

test('a comparison that the third node missed takes place later, even without new entries', async () => {
  const trio = new Trio()
  const path = (node: number) => join(folder, `quiet-${node}.sqlite`)
  const open = (node: number) => trio.start(node, new Store(path(node), () => 1))
  const shut = (node: Node) => {
    stores.splice(stores.indexOf(node.store), 1)
    node.store.close()
  }
  const before = [open(1), open(2), open(3)]
  for (const node of before) grow(node)
  for (let count = 0; count < 3; count++) await tick(before)
  for (const node of before) shut(node)
  copyFileSync(path(1), path(4))

  const [first, second] = [open(1), open(2)]
  trio.nodes.delete(3)
  for (let count = 0; count < 3; count++) await tick([first, second])
  const all = [first, second, open(3)]
  for (let count = 0; count < 6; count++) await tick(all)
  for (const [at, { peers }] of all.entries())
    assert.deepEqual(
      peers.nodes.map((node) => peers.isQuiet(node)),
      [true, true],
      `node ${at + 1}`,
    )

  // Only node 3 receives what the first node writes now; then the first node is reset to the state
  // that the second node knows.
  trio.nodes.delete(2)
  grow(first)
  await tick([first, all[2]!])
  for (const node of all) shut(node)
  const rolledBack = trio.start(1, new Store(path(4), () => 1))
  const witness = open(2)
  trio.nodes.delete(3)
  for (let count = 0; count < 3; count++) await tick([rolledBack, witness])
  assert.deepEqual(witness.alerts, [], 'the second cannot know')
  const third = open(3)
  for (let count = 0; count < 3; count++) await tick([witness, third])
  assert.deepEqual(witness.alerts, ["a peer's record was rolled back"])
})

test('stopping a node stores the last received head; a head without a signature is ignored', async () => {
  const trio = new Trio()
  const path = join(folder, 'stop.sqlite')
  const [first, second] = [trio.start(1), trio.start(2, new Store(path, () => 1))]
  for (let count = 0; count < 5; count++) grow(first)
  await send(first, 2)
  stores.splice(stores.indexOf(second.store), 1)
  second.store.close()
  const database = new DatabaseSync(path)
  const row = database.prepare('SELECT height, proof FROM peer_head WHERE node = 1').get() as {
    height: number
    proof: string
  }
  assert.equal(row.height, 5)
  database
    .prepare('UPDATE peer_head SET height = 99, proof = ? WHERE node = 1')
    .run(row.proof.replace('"height":5', '"height":99'))
  database.close()
  const again = trio.start(2, new Store(path, () => 1))
  assert.equal(again.alerts.length, 1)
  await send(first, 2)
  again.store.saveHeads()
  assert.deepEqual(
    { ...again.store.record.database.prepare('SELECT height FROM peer_head WHERE node = 1').get() },
    { height: 5 },
  )
})

test('a node that is restored twice gets a generation above all that its peers received', async () => {
  const trio = new Trio()
  const [first, second] = [trio.start(1), trio.start(2)]
  first.store.append('restored', { generation: 1, not_before: 0 })
  await tick([first, second])
  assert.deepEqual(await first.peers.call(2, '/peer/generation', {}, { timeout: 60_000 }), {
    generation: 1,
  })
})
