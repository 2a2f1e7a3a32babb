import assert from 'node:assert/strict'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { fingerprintOf } from '../fingerprints.ts'
import { restoreHome } from '../setup.ts'
import {
  ETH,
  eth,
  now,
  pay,
  refused,
  signed,
  SignerCluster,
  SINK_ETH,
  transfer,
  type Answer,
  type Caller,
  type Json,
  type Workspace,
} from '../../testing/signer-cluster.ts'

/**
 * Node 2 loses its disk, and node 1 is hostile: it has restrictions on its own record only, or does
 * not send its record. Real nodes.
 */
let cluster: SignerCluster
let workspace: Workspace
let caller: Caller
let number = 0
const home = (): string => cluster.peers.nodes[1]!.home
const secret = (): string => join(cluster.home, 'recovery-2')

before(async () => {
  cluster = await SignerCluster.start()
  workspace = await cluster.workspace()
  caller = await workspace.caller()
})
after(async () => {
  await cluster.stop()
})

async function sign(pair: readonly [number, number]): Promise<Answer> {
  // Requests that were issued in the second of a restoration are refused.
  cluster.aheadMs += 2000
  const request = await transfer(
    caller,
    { asset: 'ETH', amount: 1, destination_address: SINK_ETH },
    { now: now() + cluster.aheadMs / 1000 },
  )
  const unsigned = eth([1, ETH.chain_index, 0], { value: 10n ** 18n, nonce: number })
  const answer = await workspace.sign(pay(request), unsigned, pair)
  if (answer.status === 200) number++
  return answer
}

/** Backs up node 2, and replaces its home by an empty one. */
async function lose(name: string, during: () => Promise<void> = async () => {}): Promise<string> {
  const file = join(cluster.home, `${name}.json`)
  signed(await cluster.operator(2, 'backup', { file }))
  await during()
  await cluster.stopHere(2)
  rmSync(home(), { recursive: true, force: true })
  const print = fingerprintOf(2, cluster.peers.nodes[1]!)
  await restoreHome({ home: home(), file, recoverySecretFile: secret(), print })
  await cluster.runHere(2)
  return file
}
const restore = (file: string, more: Json = {}): Promise<Answer> =>
  cluster.operator(2, 'restore', { file, recovery_secret_file: secret(), ...more })

test('a revocation that only one peer has is kept and listed, and dropped by the operator’s order', async () => {
  signed(await sign([2, 3]))
  const file = await lose('revoked', async () => {
    signed(await cluster.operator(1, 'revoke', { api_key: caller.api_key }))
  })
  const preview = (await restore(file, { preview: true })).body
  const [found] = preview.only_at_one_peer.listed.filter((each: Json) => each.kind === 'revoke')
  assert.deepEqual([found.node, found.text], [1, `API key ${caller.api_key}`])
  assert.equal(found.id, `1:${found.height}`)
  for (const [more, reason] of [
    [{ drop: ['3:1'] }, /cannot be dropped/],
    [{ drop: [found.id], without: 3 }, /record of the other/],
    [{ drop: ['x'] }, /accepts/],
  ] as const) {
    const answer = await restore(file, { preview: true, ...more })
    assert.ok(answer.status >= 400)
    assert.match(answer.body.message, reason)
  }
  const { body } = await restore(file, { drop: [found.id] })
  assert.equal(body.restored, true, JSON.stringify(body))
  assert.deepEqual(body.dropped, [found.id])
  signed(await sign([2, 3]))
  await cluster.restartHere(2)
  signed(await sign([3, 2]))
})

test('a node is restored by one peer alone after its operator’s confirmation, and signs after a restart', async () => {
  const file = await lose('alone')
  await cluster.stopHere(1)
  refused(await restore(file, { preview: true }), 'PEER_UNAVAILABLE')
  const preview = (await restore(file, { preview: true, without: 1 })).body
  assert.equal(preview.not_read.node, 1)
  assert.match(preview.not_read.missing, /nodes 1 and 2/)
  const { body } = await restore(file, { without: 1 })
  assert.equal(body.restored, true, JSON.stringify(body))
  assert.equal(body.enrolments.length, 1)
  signed(await sign([2, 3]))
  await cluster.restartHere(2)
  signed(await sign([3, 2]))
  await cluster.runHere(1)
})

test('without an order, the revocation that one peer has remains', async () => {
  const file = await lose('kept')
  const { body } = await restore(file)
  assert.equal(body.restored, true, JSON.stringify(body))
  assert.equal(body.only_at_one_peer.kinds.revoke, 1)
  refused(await sign([2, 3]), 'NOT_ENROLLED')
})
