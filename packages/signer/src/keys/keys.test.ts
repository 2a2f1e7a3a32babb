import assert from 'node:assert/strict'
import { readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { restoreHome } from '../setup.ts'
import {
  ETH,
  eth,
  SignerCluster,
  now,
  pay,
  refused,
  SINK_ETH,
  transfer,
  type Caller,
  type Json,
  type Workspace,
} from '../../testing/signer-cluster.ts'

let cluster: SignerCluster
let workspace: Workspace
let caller: Caller
let nonce = 0
const PAIRS = [
  [1, 2],
  [2, 1],
  [2, 3],
  [3, 2],
  [3, 1],
  [1, 3],
] as const

before(async () => {
  cluster = await SignerCluster.start({ where: 'apart' })
  workspace = await cluster.workspace()
  caller = await workspace.caller()
})
after(async () => {
  await cluster.stop()
})

async function signWith(pair: readonly [number, number]): Promise<void> {
  const request = await transfer(caller, { asset: 'ETH', amount: 1, destination_address: SINK_ETH })
  const { status, body } = await workspace.sign(
    pay(request),
    eth([1, ETH.chain_index, 0], { value: 10n ** 18n, nonce: nonce++ }),
    pair,
  )
  assert.equal(status, 200, JSON.stringify(body))
}

test('a refresh deletes old shares and keeps the key, and every pair signs afterwards', async () => {
  await signWith([1, 2])
  const { status, body } = await cluster.operator(2, 'refresh', { key_ids: [workspace.set.key_id] })
  assert.equal(status, 200)
  assert.deepEqual(body, { refreshed: [{ key_id: workspace.set.key_id, epoch: 1 }], failed: [] })
  for (const pair of PAIRS) await signWith(pair)
  await cluster.restart(3)
  await signWith([3, 1])
  await signWith([2, 3])
  const again = await cluster.operator(1, 'refresh', { workspace: workspace.name })
  assert.deepEqual(again.body, {
    refreshed: [{ key_id: workspace.set.key_id, epoch: 2 }],
    failed: [],
  })
  await signWith([1, 3])
  assert.deepEqual(
    (await cluster.post(3, '/key', { workspace: workspace.name, curve: 'secp256k1' })).body,
    workspace.set,
  )
})

test('an Ed25519 key is generated, certified and refreshed, and each pair signs with it', async () => {
  const { status, body } = await cluster.key(2, workspace.name, 'ed25519')
  assert.equal(status, 200, JSON.stringify(body))
  assert.match(body.public_key, /^[0-9a-f]{64}$/)
  assert.notEqual(body.key_id, workspace.set.key_id)
  const answer = await cluster.operator(1, 'refresh', { key_ids: [body.key_id] })
  assert.deepEqual(answer.body, { refreshed: [{ key_id: body.key_id, epoch: 1 }], failed: [] })
})

test('every pair signs payments during a refresh, and all nodes have new shares afterwards', async (t) => {
  const sub = await workspace.caller(8)
  const refusals: string[] = []
  let signed = 0
  let isOver = false
  const isLoaded = Promise.withResolvers<void>()
  const load = async (): Promise<void> => {
    while (!isOver) {
      const request = pay(
        await transfer(sub, { asset: 'ETH', amount: 1, destination_address: SINK_ETH }),
      )
      const unsigned = eth([8, ETH.chain_index, 0], { value: 10n ** 18n, nonce: signed })
      const pair = PAIRS[signed % PAIRS.length]!
      let answer = await workspace.sign(request, unsigned, pair)
      // As the platform does, sends the same transaction again.
      for (
        const end = Date.now() + 120_000;
        answer.status !== 200 && Date.now() < end;
        answer = await workspace.sign(request, unsigned, pair)
      ) {
        refusals.push(answer.body.error)
      }
      assert.equal(answer.status, 200, JSON.stringify(answer.body))
      signed++
      isLoaded.resolve()
    }
  }
  const loaded = load()
  await Promise.race([isLoaded.promise, loaded])
  for (const node of [1, 3]) {
    const { status, body } = await cluster.operator(node, 'refresh', {
      key_ids: [workspace.set.key_id],
    })
    assert.deepEqual([status, body.failed], [200, []], JSON.stringify(body))
  }
  isOver = true
  await loaded
  t.diagnostic(
    `${signed} payments beside two refreshes; refused on the way: ${JSON.stringify(refusals)}`,
  )
  assert.ok(signed >= 2, `${signed}`)
  for (const pair of PAIRS) await signWith(pair)
})

test('a refresh fails while a node is down, and the old shares stay in use', async () => {
  await cluster.kill(3)
  const { body } = await cluster.operator(1, 'refresh', { key_ids: [workspace.set.key_id] })
  assert.equal(body.failed.length, 1)
  await signWith([1, 2])
  await cluster.run(3)
  await signWith([2, 3])
})

test('drill: a lost host is restored from backup and peers, and its earlier records still count', async () => {
  const old = await transfer(caller, { asset: 'ETH', amount: 2, destination_address: SINK_ETH })
  const used = await transfer(caller, { asset: 'ETH', amount: 3, destination_address: SINK_ETH })
  const other = await workspace.caller(1)
  const backup = await cluster.operator(3, 'backup', { file: join(cluster.home, 'backup-3.json') })
  assert.equal(backup.status, 200, JSON.stringify(backup.body))
  const text = readFileSync(backup.body.file, 'utf8')
  const second = await cluster.operator(3, 'backup', { file: backup.body.file })
  assert.deepEqual(
    [second.status, readFileSync(backup.body.file, 'utf8')],
    [400, text],
    'an older backup is never overwritten',
  )
  assert.match(second.body.message, /already exists/)
  assert.ok(!text.includes('PRIVATE KEY'))
  // Events after the backup: a signature, and the revocation of a caller.
  const from = [1, ETH.chain_index, 0]
  assert.equal(
    (await workspace.sign(pay(used), eth(from, { value: 3n * 10n ** 18n, nonce }), [3, 1])).status,
    200,
  )
  const usedNonce = nonce++
  await cluster.everywhere('revoke', { api_key: other.api_key })
  const home = cluster.peers.nodes[2]!.home
  await cluster.kill(3)
  rmSync(home, { recursive: true })

  await assert.rejects(
    restoreHome({
      home,
      file: backup.body.file,
      recoverySecretFile: join(cluster.home, 'recovery-1'),
      print: null,
    }),
    /does not decrypt/,
  )
  await restoreHome({
    home,
    file: backup.body.file,
    recoverySecretFile: join(cluster.home, 'recovery-3'),
    print: null,
  })
  await cluster.run(3)
  // The peers refuse a node that has lost its record, because its head is behind the one that they
  // know.
  const empty = await workspace.sign(
    pay(await transfer(caller, { asset: 'ETH', amount: 1, destination_address: SINK_ETH })),
    eth(from, { value: 10n ** 18n, nonce }),
    [1, 3],
  )
  assert.equal(empty.body.error, 'HEAD_WENT_BACK', JSON.stringify(empty.body))
  const wrong = await cluster.operator(3, 'restore', {
    file: backup.body.file,
    recovery_secret_file: join(cluster.home, 'recovery-2'),
  })
  assert.equal(wrong.status, 422)
  const restored = await cluster.operator(3, 'restore', {
    file: backup.body.file,
    recovery_secret_file: join(cluster.home, 'recovery-3'),
  })
  assert.equal(restored.status, 200, JSON.stringify(restored.body))
  assert.equal(restored.body.generation, 1)

  // A request that was issued earlier is refused. One that was used earlier stays bound. One that
  // is issued now is signed, with either peer.
  const late = await workspace.sign(pay(old), eth(from, { value: 2n * 10n ** 18n, nonce }), [3, 1])
  assert.equal(late.body.error, 'TOO_OLD', JSON.stringify(late.body))
  const twice = await workspace.sign(
    pay(used),
    eth(from, { value: 3n * 10n ** 18n, nonce: usedNonce + 1 }),
    [3, 2],
  )
  assert.ok(['NOT_EXCLUSIVE', 'TOO_OLD'].includes(twice.body.error), JSON.stringify(twice.body))
  const same = await workspace.sign(
    pay(used),
    eth(from, { value: 3n * 10n ** 18n, nonce: usedNonce }),
    [3, 2],
  )
  assert.equal(same.status, 200, JSON.stringify(same.body))
  while (
    now() * 1000 <=
    Date.parse(
      JSON.parse(cluster.logs.split('\n').find((line) => line.includes('this node was restored'))!)
        .at,
    ) +
      1000
  )
    await new Promise((resolve) => {
      setTimeout(resolve, 200)
    })
  await signWith([3, 1])
  await signWith([2, 3])
  const { body } = await cluster.operator(3, 'status')
  assert.equal(body.enrolled.find((each: Json) => each.api_key === caller.api_key).revoked, false)
  assert.equal(body.enrolled.find((each: Json) => each.api_key === other.api_key).revoked, true)
  await cluster.restart(1)
  await signWith([1, 3])
})

test('drill: three lost hosts are restored, and accounts continue at the nonces of the chain', async () => {
  const sub = await workspace.caller(7)
  const ask = async (pair: readonly [number, number], number: number): Promise<Json> =>
    workspace.sign(
      pay(await transfer(sub, { asset: 'ETH', amount: 1, destination_address: SINK_ETH })),
      eth([7, ETH.chain_index, 0], { value: 10n ** 18n, nonce: number }),
      pair,
    )
  // Node 3 was restored before, and its partners were not; they hold node 3 to what their own
  // records contain.
  for (const pair of [
    [3, 1],
    [1, 3],
  ] as const)
    assert.equal((await ask(pair, 5)).body.error, 'NONCE_GAP')
  const file = (node: number) => join(cluster.home, `whole-${node}.json`)
  const secret = (node: number) => join(cluster.home, `recovery-${node}`)
  for (const node of [1, 2, 3])
    assert.equal((await cluster.operator(node, 'backup', { file: file(node) })).status, 200)
  assert.equal((await ask([1, 2], 0)).status, 200)
  for (const node of [1, 2, 3]) await cluster.kill(node)
  for (const node of [1, 2, 3]) {
    const { home } = cluster.peers.nodes[node - 1]!
    rmSync(home, { recursive: true })
    await restoreHome({ home, file: file(node), recoverySecretFile: secret(node), print: null })
    await cluster.run(node)
  }
  const restore = (node: number) =>
    cluster.operator(node, 'restore', { file: file(node), recovery_secret_file: secret(node) })
  // Each node waits until its peers have read their backups as well; then the command is run again.
  for (const node of [1, 2]) refused(await restore(node), 'RESTORING')
  for (const node of [3, 1, 2]) {
    const restored = await restore(node)
    assert.equal(restored.status, 200, JSON.stringify(restored.body))
  }
  const end = Date.now() + 120_000
  for (const [pair, number] of [
    [[1, 2], 1],
    [[2, 3], 2],
  ] as const) {
    let answer = await ask(pair, number)
    // A request that was issued before the restoration is refused; the comparison is in whole
    // seconds.
    while (answer.body.error === 'TOO_OLD' && Date.now() < end) answer = await ask(pair, number)
    assert.equal(answer.status, 200, `${pair.join()}: ${JSON.stringify(answer.body)}`)
  }
  assert.equal((await ask([3, 1], 4)).body.error, 'NONCE_GAP', 'from then on the record binds')
})
