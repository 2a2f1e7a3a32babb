import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { NO_BINDING } from '../envelope.ts'
import { callBytesMax, MemoryBudget } from '../transport/memory-budget.ts'
import { CheatingNode } from '../../testing/cheating-node.ts'
import { SignerCluster, type Json, type Workspace } from '../../testing/signer-cluster.ts'

/**
 * Node 1 leads ceremonies of three nodes and test signatures, and sends false messages in them.
 * Nodes 2 and 3 are honest.
 */
let cluster: SignerCluster
let workspace: Workspace
let node: CheatingNode
const fresh = () => randomBytes(32).toString('hex')

before(async () => {
  cluster = await SignerCluster.start()
  workspace = await cluster.workspace()
  node = await CheatingNode.takeOver(cluster, workspace, (each) => cluster.stopHere(each))
})
after(async () => {
  node.close()
  await cluster.stop()
})

const say = async (call: string, body: unknown, binding = {}): Promise<Json> =>
  (await node.say(2, `/peer/${call}`, body, { ...NO_BINDING, ...binding })).body
const opening = (more: object = {}) => ({
  run: fresh(),
  kind: 'refresh',
  curve: 'secp256k1',
  key_id: workspace.set.key_id,
  epoch: 0,
  ...more,
})
const keygen = (more: object = {}) =>
  opening({ kind: 'keygen', key_id: `s-${randomBytes(6).toString('hex')}`, ...more })
const start = (run: string, mine: string) =>
  say('ceremony/start', {
    run,
    fresh: [1, 2, 3].map((each) => ({ node: each, fresh: each === 2 ? mine : fresh() })),
  })

test('one key has one ceremony run: a second run of the same leader ends the first', async () => {
  const [one, two] = [opening(), opening()]
  const first = await say('ceremony/open', one)
  const second = await say('ceremony/open', two)
  assert.match(second.fresh, /^[0-9a-f]{64}$/)
  assert.equal((await start(one.run, first.fresh)).error, 'SESSION_ABORTED')
  assert.equal(
    (await say('ceremony/message', { run: one.run, payloads: [] }, { round: 1 })).error,
    'SESSION_ABORTED',
  )
  assert.deepEqual(await start(two.run, second.fresh), {})
  // During that time both honest nodes refuse another leader of a ceremony for that key.
  const { body } = await cluster.operator(3, 'refresh', { key_ids: [workspace.set.key_id] })
  assert.equal(body.refreshed.length, 0)
})

test('refuses to open a ceremony for a wrong or existing key', async () => {
  for (const [body, error] of [
    [opening({ epoch: 1 }), 'KEY_CONFLICT'],
    [opening({ key_id: 's-none' }), 'KEY_CONFLICT'],
    [opening({ curve: 'ed25519' }), 'KEY_CONFLICT'],
    [keygen({ key_id: workspace.set.key_id }), 'KEY_CONFLICT'],
    [keygen({ epoch: 1 }), 'KEY_CONFLICT'],
    [keygen({ key_id: '../x' }), 'BAD_ORDER'],
    [keygen({ key_id: 's.1' }), 'BAD_ORDER'],
  ] as const)
    assert.equal((await say('ceremony/open', body)).error, error, JSON.stringify(body))
})

test('limits one node to leading four ceremonies', async () => {
  const answers = await Promise.all(
    Array.from({ length: 12 }, (_, at) => say('ceremony/open', keygen({ key_id: `s-${at}` }))),
  )
  const refused = answers.filter(({ error }) => error !== undefined)
  assert.ok(
    refused.length >= 8 &&
      refused.every(
        ({ error, message }) => error === 'TOO_BUSY' && /leads too many runs/.test(message),
      ),
    JSON.stringify(answers),
  )
})

test('refuses messages of a later round, above the size limit, or repeated in a round', async () => {
  // Replaces one of those four.
  const run = keygen({ key_id: 's-0' })
  assert.equal((await say('ceremony/open', run)).error, undefined)
  for (const round of [0, 2, 3, 1000, -1]) {
    assert.equal(
      (await say('ceremony/message', { run: run.run, payloads: ['x'] }, { round })).error,
      'SESSION_ABORTED',
      String(round),
    )
  }
  assert.equal(
    (
      await say(
        'ceremony/message',
        { run: run.run, payloads: ['x'.repeat(1_400_001)] },
        { round: 1 },
      )
    ).error,
    'BAD_ORDER',
  )
  assert.equal(
    (await say('ceremony/message', { run: run.run, payloads: ['x', 'y'] }, { round: 1 })).error,
    'BAD_ORDER',
  )
  assert.deepEqual(
    await say('ceremony/message', { run: run.run, payloads: ['x'] }, { round: 1 }),
    {},
  )
  assert.equal(
    (await say('ceremony/message', { run: run.run, payloads: ['x'] }, { round: 1 })).error,
    'SESSION_ABORTED',
  )
})

test('closes a call above the size limit of its kind before reading it', async () => {
  for (const call of [
    '/peer/ceremony/message',
    '/peer/ceremony/open',
    '/peer/key/get',
    '/peer/nothing',
  ]) {
    const body = { run: fresh(), payloads: ['x'.repeat(callBytesMax(call) + 1)] }
    await assert.rejects(node.say(2, call, body), /peer node 2: /)
  }
  assert.match(
    cluster.logs,
    /\/peer\/ceremony\/message with \d+ bytes, more than the allowed 2097152/,
  )
  // The node continues to work.
  assert.equal((await say('refresh/state', { key_id: workspace.set.key_id })).epoch, 0)
})

test('limits the memory for one peer to four thirds of a large order', async () => {
  const budget = new MemoryBudget()
  const order = callBytesMax('/peer/sign/open')
  const release = budget.take(1, order)
  assert.throws(() => budget.take(1, order), /bytes of calls at the same time/)
  assert.doesNotThrow(() => budget.take(3, order))
  release()
  release()
  const again = budget.take(1, order)
  budget.take(1, MemoryBudget.bytesMax - order)
  assert.throws(() => budget.take(1, 1))
  again()
  budget.take(1, 1)
})

test('a ceremony that a hostile leader began leaves no share and causes no ban', async () => {
  const names = readdirSync(join(cluster.peers.nodes[1]!.home, 'record.shares')).filter((name) =>
    name.startsWith(`${workspace.set.key_id}.`),
  )
  assert.equal(names.length, 1, names.join())
  const { status, body } = await cluster.get(2, '/status')
  assert.deepEqual([status, body.bans], [200, []])
})
