import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { restoreHome } from '../setup.ts'
import {
  BTC,
  btc,
  ETH,
  eth,
  funding,
  SignerCluster,
  pay,
  SINK_BTC,
  SINK_ETH,
  transfer,
  usdt,
  type Caller,
  type Json,
  type Workspace,
} from '../../testing/signer-cluster.ts'

/** Rule 16: what two nodes sign, and refuse to sign, for a recovery without the platform. */
let cluster: SignerCluster
let workspace: Workspace
let caller: Caller
const MOST = 10n ** 15n
const OTHER = '0x3C44CdDdB6a900fa2b585dd299e03d12FA4293BC'
const path = [1, ETH.chain_index, 0]
const file = (node: number) => join(cluster.home, `backup-${node}.json`)
const secret = (node: number) => join(cluster.home, `recovery-${node}`)
const order = (node: number, network: string, to_address: string, more: Json = {}) =>
  cluster.operator(node, 'recover', {
    workspace: workspace.name,
    network,
    to_address,
    fee_max: MOST.toString(),
    ...more,
  })
const named = (network: string, to: string): string =>
  createHash('sha256')
    .update(JSON.stringify([workspace.name, network, to, null, MOST.toString()]))
    .digest('hex')
    .slice(0, 32)
const sign = (unsigned: Json, more: Json = {}) =>
  cluster.operator(1, 'recover-sign', {
    workspace: workspace.name,
    partner: 3,
    purpose: {
      kind: 'recover',
      order: named(unsigned.network, unsigned.network === 'BTC' ? SINK_BTC : SINK_ETH),
      ...more,
    },
    unsigned,
  })
async function refused(
  code: string,
  unsigned: Json,
  more: Json = {},
  message = /./,
): Promise<void> {
  const { status, body } = await sign(unsigned, more)
  assert.equal(body.error, code, `${status} ${JSON.stringify(body)}`)
  assert.match(body.message, message)
}

before(async () => {
  cluster = await SignerCluster.start({ where: 'apart' })
  workspace = await cluster.workspace()
  caller = await workspace.caller()
})
after(async () => {
  await cluster.stop()
})

test('a node that serves a platform refuses recovery orders and does not sign them', async () => {
  assert.equal((await order(1, 'ETH', SINK_ETH)).body.error, 'NOT_ALLOWED')
  assert.equal((await sign(eth(path, { value: 1n }))).body.error, 'NOT_ALLOWED')
  const response = await workspace.sign(
    { kind: 'recover', order: named('ETH', SINK_ETH) },
    eth(path, { value: 1n }),
  )
  assert.equal(response.body.error, 'ACTION_NOT_ALLOWED', JSON.stringify(response.body))
  for (const node of [1, 3])
    assert.equal((await cluster.operator(node, 'backup', { file: file(node) })).status, 200)
  assert.equal(
    (await cluster.operator(1, 'recover-open', { file: file(1), recovery_secret_file: secret(1) }))
      .body.error,
    'KEY_CONFLICT',
  )
})

test('two nodes restored from backups sign only what both operators ordered', async () => {
  for (const node of [1, 2, 3]) await cluster.kill(node)
  for (const node of [1, 3]) {
    const { home } = cluster.peers.nodes[node - 1]!
    rmSync(home, { recursive: true })
    await restoreHome({ home, file: file(node), recoverySecretFile: secret(node), print: null })
    await cluster.run(node)
    const opened = await cluster.operator(node, 'recover-open', {
      file: file(node),
      recovery_secret_file: secret(node),
    })
    assert.equal(opened.status, 200, JSON.stringify(opened.body))
  }
  await refused('ORDER_UNKNOWN', eth(path, { value: 1n }), {}, /has no such order/)
  assert.equal(
    (await order(1, 'ETH', SINK_ETH)).body.order,
    named('ETH', SINK_ETH),
    'equal input gives the same name at every operator',
  )
  assert.equal((await order(1, 'BTC', SINK_BTC)).status, 200)
  await refused('ORDER_UNKNOWN', eth(path, { value: 1n }), {}, /has no such order/)
  assert.equal((await order(3, 'ETH', OTHER)).status, 200)
  await refused('ORDER_UNKNOWN', eth(path, { value: 1n }), {}, /another destination or fee/)
  for (const [network, to] of [
    ['ETH', SINK_ETH],
    ['BTC', SINK_BTC],
  ] as const)
    assert.equal((await order(3, network, to)).status, 200)
  assert.equal((await order(3, 'ETH', SINK_ETH, { fee_max: '0' })).status, 400)

  const own = [1, ETH.chain_index, 4]
  const at = workspace.address(ETH, own)
  await refused('DESTINATION_MISMATCH', eth(path, { to: OTHER, value: 1n }))
  await refused('DESTINATION_MISMATCH', usdt(path, OTHER, 5n))
  await refused('FEE_CAP', eth(path, { value: 1n, maxFeePerGas: MOST }))
  await refused(
    'FEE_CAP',
    eth(path, { value: 1n, maxFeePerGas: MOST / 21_000n + 1n }),
    {},
    /the operator allowed/,
  )
  await refused('FOREIGN_PATH', eth([1, BTC.chain_index, 0], { value: 1n }))
  await refused('NETWORK_MISMATCH', eth([1, BTC.chain_index, 0], { value: 1n }), {
    order: named('BTC', SINK_BTC),
  })
  await refused('DESTINATION_MISMATCH', eth(path, { to: OTHER, value: 1n }), { to_path: own })
  await refused('DESTINATION_MISMATCH', eth(path, { to: at, value: 1n }))
  await refused(
    'SHAPE',
    eth(path, { to: at, value: MOST + 1n }),
    { to_path: own },
    /must not exceed the maximum network fee/,
  )
  await refused('ASSET_MISMATCH', usdt(path, at, 5n), { to_path: own })
  const coins = [
    {
      funding: funding(workspace, [{ path: [1, BTC.chain_index, 0], value: 50_000n }]),
      output: 0,
      path: [1, BTC.chain_index, 0],
    },
  ]
  await refused(
    'SHAPE',
    btc(workspace, {
      inputs: coins,
      amount: 20_000n,
      change: { path: [1, BTC.chain_index, 0x7fffffff], value: 29_000n },
    }),
    {},
    /no change/,
  )
  const paid = await transfer(caller, { asset: 'ETH', amount: 1, destination_address: SINK_ETH })
  const response = await workspace.sign(pay(paid), eth(path, { value: 10n ** 18n }), [1, 3])
  assert.equal(response.body.error, 'RESTORING', 'no platform is served')
  const smuggled = await cluster.operator(1, 'recover-sign', {
    workspace: workspace.name,
    partner: 3,
    purpose: pay(paid),
    unsigned: eth(path, { value: 10n ** 18n }),
  })
  assert.equal(smuggled.body.error, 'NOT_AUTHORISED')

  // No record contains the account's next nonce, and none is required.
  for (const [unsigned, more] of [
    [eth(path, { value: 10n ** 19n, nonce: 17 }), {}],
    [usdt(own, SINK_ETH, 9n, { nonce: 4 }), {}],
    [eth(path, { to: at, value: MOST, nonce: 18 }), { to_path: own }],
    [btc(workspace, { inputs: coins, amount: 49_000n }), {}],
  ] as const) {
    const { status, body } = await sign(unsigned, more)
    assert.equal(status, 200, JSON.stringify(body))
    assert.match(body.hash, /^(0x)?[0-9a-f]{64}$/)
  }
  // After a restart the node is in the same state.
  await cluster.restart(3)
  assert.equal(
    (await workspace.sign(pay(paid), eth(path, { value: 10n ** 18n }), [3, 1])).body.error,
    'RESTORING',
  )
  assert.equal((await sign(eth(path, { value: 1n, nonce: 19 }))).status, 200)
})
