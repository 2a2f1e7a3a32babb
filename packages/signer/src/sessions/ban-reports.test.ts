import assert from 'node:assert/strict'
import { createPublicKey, generateKeyPairSync } from 'node:crypto'
import { readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { test, type TestContext } from 'node:test'
import * as fc from '../../../../testing/property.ts'
import { signBan } from './ban-reports.ts'
import { fingerprintOf } from './bans.ts'
import { restoreHome } from '../setup.ts'
import type { BanStatement } from '../store/entries/people.ts'
import { Store } from '../store/index.ts'
import {
  ETH,
  eth,
  SignerCluster,
  pay,
  refused,
  signed,
  SINK_ETH,
  transfer,
  type Json,
} from '../../testing/signer-cluster.ts'
import { TakenOver } from '../../testing/taken-over.ts'
import { waitFor } from '../../../../testing/wait-for.ts'

const path = [1, ETH.chain_index, 0]
async function started(
  t: TestContext,
  options: Parameters<typeof SignerCluster.start>[0] = {},
): Promise<SignerCluster> {
  const cluster = await SignerCluster.start(options)
  t.after(() => cluster.stop())
  return cluster
}
const status = async (cluster: SignerCluster, node: number): Promise<Json> =>
  (await cluster.get(node, '/status')).body
const reported = (cluster: SignerCluster, node: number, reports: Json) =>
  waitFor(
    `node ${node} has the reports`,
    async () =>
      JSON.stringify((await status(cluster, node)).ban_reports) === JSON.stringify(reports),
  )
const identityOf = (cluster: SignerCluster, node: number): string =>
  fingerprintOf(createPublicKey(cluster.peers.nodes[node - 1]!.identity))

test('a reported ban takes effect only by the node’s operator; a restored node regains its bans', async (t) => {
  const cluster = await started(t)
  const workspace = await cluster.workspace()
  const caller = await workspace.caller()
  const spare = (await status(cluster, 1)).pool.secp256k1
  assert.ok(spare > 0)
  const backup = await cluster.operator(1, 'backup')

  refused(await cluster.operator(1, 'ban', { node: 1 }), 'BAD_ORDER')
  refused(await cluster.operator(1, 'ban', { node: 4 }), 'BAD_ORDER')
  refused(await cluster.operator(1, 'ban', {}), 'BAD_ORDER')
  const ban = await cluster.operator(1, 'ban', { node: 3, reason: 'seen at its host' })
  assert.deepEqual(
    { ...ban.body, at: 0 },
    {
      node: 1,
      banned: 3,
      identity: identityOf(cluster, 3),
      at: 0,
      reason: 'seen at its host',
      cause: 'operator',
    },
  )
  assert.deepEqual((await cluster.operator(1, 'ban', { node: 3, reason: 'again' })).body, ban.body)

  // The third node logs the report and continues; the banned node is not notified.
  await reported(cluster, 2, [{ node: 3, by: 1 }])
  assert.deepEqual(
    [
      (await status(cluster, 1)).bans,
      (await status(cluster, 2)).bans,
      (await status(cluster, 3)).bans,
    ],
    [[3], [], []],
  )
  assert.deepEqual(
    [(await status(cluster, 1)).ban_reports, (await status(cluster, 3)).ban_reports],
    [[], []],
  )
  const [first, second] = [
    await transfer(caller, { asset: 'ETH', amount: 1, destination_address: SINK_ETH }),
    await transfer(caller, { asset: 'ETH', amount: 2, destination_address: SINK_ETH }),
  ]
  refused(await workspace.sign(pay(first), eth(path, { value: 10n ** 18n }), [1, 3]), 'BANNED')
  signed(await workspace.sign(pay(first), eth(path, { value: 10n ** 18n }), [2, 3]))
  signed(await workspace.sign(pay(second), eth(path, { value: 2n * 10n ** 18n, nonce: 1 }), [1, 2]))

  // A workspace that has a key keeps it; no other workspace gets a key.
  assert.deepEqual(
    (await cluster.post(1, '/key', { workspace: workspace.name, curve: 'secp256k1' })).body,
    workspace.set,
  )
  for (const node of [1, 2]) {
    const key = await cluster.post(node, '/key', { workspace: 'later', curve: 'secp256k1' })
    refused(key, 'BANNED')
    assert.match(key.body.message, /^Node 3 is banned here, .*replacing-a-banned-node\.md\)$/)
  }
  assert.deepEqual(
    [(await status(cluster, 1)).pool.secp256k1, (await status(cluster, 2)).pool.secp256k1],
    [0, spare],
  )

  const confirmed = await cluster.operator(2, 'ban', { node: 3 })
  assert.deepEqual(
    [confirmed.body.banned, confirmed.body.reason, (await status(cluster, 2)).bans],
    [3, 'ordered by the operator', [3]],
  )
  await reported(cluster, 1, [{ node: 3, by: 2 }])
  const { bans, reports } = (await cluster.operator(2, 'bans')).body
  assert.deepEqual(bans, [
    {
      node: 3,
      identity: identityOf(cluster, 3),
      at: confirmed.body.at,
      reason: 'ordered by the operator',
      cause: 'operator',
    },
  ])
  const { at, reason } = ban.body
  assert.deepEqual(reports, [
    { node: 3, identity: identityOf(cluster, 3), by: 1, at, reason, cause: 'operator' },
  ])

  // After a restart a node sends its report again; its peer still has one report.
  const height = (await status(cluster, 2)).record.height
  await cluster.restartHere(1)
  await waitFor('node 1 reaches node 2', async () =>
    (await status(cluster, 1)).peers.every((peer: Json) => peer.reachable),
  )
  await sleep(2500)
  assert.deepEqual(
    [(await status(cluster, 2)).record.height, (await status(cluster, 1)).bans],
    [height, [3]],
  )

  const { home } = cluster.peers.nodes[0]!
  const secret = join(cluster.home, 'recovery-1')
  const own = { node: 3, identity: identityOf(cluster, 3), at, reason, cause: 'operator' }
  /** Node 1 loses its record. */
  const restored = async (file: string): Promise<void> => {
    await cluster.restartHere(1, async () => {
      for (const name of [
        'record.sqlite',
        'record.sqlite-wal',
        'record.sqlite-shm',
        'record.shares',
      ])
        rmSync(join(home, name), { recursive: true, force: true })
      for (const name of [
        'config.json',
        'identity.key',
        'identity.pub',
        'tls.key',
        'tls.crt',
        'keys.json',
      ])
        rmSync(join(home, name), { force: true })
      await restoreHome({ home, file, recoverySecretFile: secret, print: null })
    })
    assert.deepEqual((await status(cluster, 1)).bans, [])
    signed(await cluster.operator(1, 'restore', { file, recovery_secret_file: secret }))
    assert.deepEqual((await cluster.operator(1, 'bans')).body.bans, [own])
    assert.deepEqual(
      [(await status(cluster, 1)).bans, (await status(cluster, 1)).pool.secp256k1],
      [[3], 0],
    )
    await reported(cluster, 1, [{ node: 3, by: 2 }])
  }
  // The backup from before the ban does not contain it, but node 2's record does.
  assert.deepEqual(JSON.parse(readFileSync(backup.body.file, 'utf8')).bans, [])
  await restored(backup.body.file)
  const file = join(cluster.home, 'after-the-ban.json')
  signed(await cluster.operator(1, 'backup', { file }))
  assert.deepEqual(JSON.parse(readFileSync(file, 'utf8')).bans, [own])
  await restored(file)
})

test('a forged, replayed, renumbered or foreign-signed ban report changes nothing', async (t) => {
  const cluster = await started(t, { where: 'apart' })
  const node1 = await TakenOver.start(cluster, 1)
  t.after(() => {
    node1.stop()
  })
  const statement: BanStatement = {
    node: 3,
    identity: identityOf(cluster, 3),
    by: 1,
    at: 5,
    reason: 'cheat',
    cause: 'cheat',
  }
  const report = (said: object = statement, signature = signBan(node1.identity, statement)) =>
    node1.say(2, '/peer/ban', { statement: said, signature })
  const { height } = (await status(cluster, 2)).record
  const stranger = generateKeyPairSync('ed25519').privateKey
  const signedAs = (more: Partial<BanStatement>) => ({ ...statement, ...more })
  for (const said of [
    signedAs({ node: 2, identity: identityOf(cluster, 2) }),
    signedAs({ node: 1, identity: identityOf(cluster, 1) }),
    signedAs({ node: 2 }),
    signedAs({ identity: fingerprintOf(createPublicKey(stranger)) }),
    signedAs({ by: 3 }),
    signedAs({ by: 2 }),
  ]) {
    assert.equal(
      (await report(said, signBan(node1.identity, said))).error,
      'NOT_ALLOWED',
      JSON.stringify(said),
    )
  }
  assert.equal((await report(statement, signBan(stranger, statement))).error, 'NOT_ALLOWED')
  for (const said of [
    {},
    { ...statement, more: 1 },
    { ...statement, reason: 'x'.repeat(201) },
    { ...statement, node: 4 },
  ]) {
    assert.equal((await report(said)).error, 'BAD_ORDER')
  }
  const change = fc.constantFrom<[string, unknown]>(
    ['node', 1],
    ['node', 2],
    ['identity', 'ab'.repeat(32)],
    ['by', 2],
    ['by', 3],
    ['at', 6],
    ['reason', 'other'],
    ['cause', 'operator'],
  )
  await fc.assert(
    fc.asyncProperty(change, fc.boolean(), async ([name, value], isSignatureChanged) => {
      const signature = signBan(node1.identity, statement)
      const other = isSignatureChanged
        ? signature.replace(/^./, (first) => (first === '0' ? '1' : '0'))
        : signature
      assert.equal(
        (await report(isSignatureChanged ? statement : { ...statement, [name]: value }, other))
          .error,
        'NOT_ALLOWED',
      )
    }),
    { numRuns: 30, seed: 7 },
  )
  assert.deepEqual(
    [
      (await status(cluster, 2)).record.height,
      (await status(cluster, 2)).ban_reports,
      (await status(cluster, 2)).bans,
    ],
    [height, [], []],
  )

  assert.deepEqual(await report(), {})
  // The report is replayed, and sent with other text.
  assert.deepEqual(await report(), {})
  const again = signedAs({ at: 9, reason: 'other' })
  assert.deepEqual(await report(again, signBan(node1.identity, again)), {})
  assert.deepEqual(
    [
      (await status(cluster, 2)).record.height,
      (await status(cluster, 2)).ban_reports,
      (await status(cluster, 2)).bans,
    ],
    [height + 1, [{ node: 3, by: 1 }], []],
  )
  assert.equal(cluster.logs.match(/a peer has banned the other peer/g)?.length, 1)

  // Reports of a node that is banned here are ignored.
  signed(await cluster.operator(3, 'ban', { node: 1 }))
  assert.equal(
    (
      await node1.say(3, '/peer/ban', {
        statement: signedAs({ node: 2, identity: identityOf(cluster, 2) }),
        signature: '00'.repeat(64),
      })
    ).error,
    'BANNED',
  )
})

test("never allocates a key older than a ban, but a key made after the node's replacement", async (t) => {
  const replaced = fingerprintOf(generateKeyPairSync('ed25519').publicKey)
  const cluster = await started(t, {
    beforeStart: async (parent) => {
      const store = new Store(join(parent, 'node-2', 'record.sqlite'), () => Date.now())
      store.append('ban', { node: 3, identity: replaced, reason: 'the identity before' })
      store.close()
    },
  })
  const old = (await status(cluster, 1)).pool.secp256k1
  assert.ok(old > 0)
  assert.deepEqual(
    [(await status(cluster, 2)).pool.secp256k1, (await status(cluster, 2)).bans],
    [0, []],
  )
  const [one, two] = await Promise.all([cluster.workspace('one'), cluster.workspace('two')])
  assert.notEqual(one.set.key_id, two.set.key_id)
  const record = (await cluster.operator(2, 'status')).body
  assert.deepEqual([record.pool.secp256k1, (await status(cluster, 1)).pool.secp256k1], [0, 0])
  assert.equal(record.keys, (await status(cluster, 3)).keys)
  // Only the two new ones belong to a workspace.
  assert.equal((await status(cluster, 3)).pool.secp256k1, old)
})

test('node 1 stores no pairing while a peer has banned a node, even if node 1 has not', async (t) => {
  const cluster = await started(t)
  signed(await cluster.operator(2, 'ban', { node: 3 }))
  await reported(cluster, 1, [{ node: 3, by: 2 }])
  const before = await status(cluster, 1)
  for (let tries = 0; tries < 2; tries++) {
    const key = await cluster.post(1, '/key', { workspace: 'new', curve: 'secp256k1' })
    refused(key, 'BANNED')
    assert.match(key.body.message, /^Node 3 is banned here, /)
  }
  const after = await status(cluster, 1)
  assert.deepEqual(
    [after.record.height, after.pool, after.bans],
    [before.record.height, before.pool, []],
  )
})
