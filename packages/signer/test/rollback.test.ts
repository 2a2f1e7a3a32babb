import assert from 'node:assert/strict'
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { BTC, btc, funding, House, pay, SINK_BTC, transfer, type Answer, type Workspace } from './house.ts'

/** A disk image of one node is brought back, and its peers are restarted as well: whatever they knew in memory is gone. */
let house: House
let workspace: Workspace
before(async () => {
  house = await House.start(undefined, 'prepared', 'apart')
  workspace = await house.workspace()
})
after(async () => { await house.stop() })

const sleep = (ms: number) => new Promise((resolve) => { setTimeout(resolve, ms) })
const FILES = ['record.sqlite', 'record.sqlite-wal', 'record.sqlite-shm']
type Image = Map<string, Buffer>

function image(node: number): Image {
  const { home } = house.peers.nodes[node - 1]!
  return new Map(FILES.map((name) => join(home, name)).filter((path) => existsSync(path)).map((path) => [path, readFileSync(path)]))
}
function bringBack(node: number, taken: Image): void {
  for (const name of FILES) rmSync(join(house.peers.nodes[node - 1]!.home, name), { force: true })
  for (const [path, bytes] of taken) writeFileSync(path, bytes)
}

let sub = 10
/** One payment and two transactions of different coins that would both make it: signing both pays twice. */
async function twice(): Promise<Record<'first' | 'second', (pair: readonly [number, number]) => Promise<Answer>>> {
  const caller = await workspace.caller(sub)
  const path = [sub++, BTC.chain_index, 0]
  const purpose = pay(await transfer(caller, { asset: 'BTC', amount: '0.001', destination_address: SINK_BTC }))
  const made = () => btc(workspace, {
    inputs: [{ funding: funding(workspace, [{ path, value: 110_000n }]), output: 0, path }],
    amount: 100_000n, change: { path: [path[0]!, path[1]!, 0x7fffffff], value: 9_000n },
  })
  const [one, other] = [made(), made()]
  return { first: (pair) => workspace.sign(purpose, one, pair), second: (pair) => workspace.sign(purpose, other, pair) }
}

async function assertRefused(
  attempt: (pair: readonly [number, number]) => Promise<Answer>, pairs: readonly (readonly [number, number])[]
): Promise<void> {
  for (const pair of pairs) {
    const { body } = await attempt(pair)
    assert.equal(body.error, 'HEAD_WENT_BACK', `${pair.join()}: ${JSON.stringify(body).slice(0, 300)}`)
  }
}

/** Brings the node back as it truly is, so that the next test has three honest nodes. */
async function heal(node: number, truth: Image): Promise<void> {
  await house.kill(node)
  bringBack(node, truth)
  await house.run(node)
}

for (const [role, pair] of [['coordinator', [1, 2]], ['partner', [2, 1]]] as const) {
  test(`node 1, ${role} of a signature, is rolled back to before it and both peers are killed: no second one with node 3`, async () => {
    const { first, second } = await twice()
    const old = image(1)
    assert.equal((await first(pair)).status, 200)
    // The entry of a finished signature is on disk within a moment.
    await sleep(200)
    for (const node of [1, 2, 3]) await house.kill(node)
    const truth = image(1)
    bringBack(1, old)
    await Promise.all([1, 2, 3].map((node) => house.run(node)))
    await assertRefused(second, [[1, 3], [3, 1], [1, 3]])
    await heal(1, truth)
    assert.equal((await first([1, 3])).status, 200)
  })
}

test('node 3 learnt of the signature by pings only, is killed, and the partner of it stays away: no second one all the same', async () => {
  const { first, second } = await twice()
  const old = image(1)
  assert.equal((await first([1, 2])).status, 200)
  await sleep(5000)
  for (const node of [1, 2, 3]) await house.kill(node)
  const truth = image(1)
  bringBack(1, old)
  await Promise.all([house.run(1), house.run(3)])
  await assertRefused(second, [[1, 3], [3, 1]])
  await heal(1, truth)
  await house.run(2)
})

test('node 3 and the rolled-back node met while the partner of the signature was away: refused once it is back', async () => {
  const { first, second } = await twice()
  const old = image(1)
  await house.kill(3)
  assert.equal((await first([1, 2])).status, 200)
  await sleep(200)
  for (const node of [1, 2]) await house.kill(node)
  const truth = image(1)
  bringBack(1, old)
  // Node 3 knows nothing of it, and nobody is there to ask.
  await Promise.all([house.run(1), house.run(3)])
  await sleep(2500)
  await house.run(2)
  await sleep(5000)
  await assertRefused(second, [[1, 3], [3, 1]])
  await heal(1, truth)
})

test('an idle house writes nothing down', async () => {
  const heights = () => Promise.all([1, 2, 3].map(async (node) => (await house.get(node, '/status')).body.record.height as number))
  await sleep(4500)
  const before = await heights()
  await sleep(6500)
  assert.deepEqual(await heights(), before)
})
