import assert from 'node:assert/strict'
import { createPublicKey } from 'node:crypto'
import { after, before, test } from 'node:test'
import { verifyCertificates } from './keys/certificate.ts'
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
  type Workspace,
} from '../testing/signer-cluster.ts'
import { recoverTransactionAddress } from 'viem'
import { Transaction } from 'bitcoinjs-lib'

let cluster: SignerCluster
let workspace: Workspace
let caller: Caller

before(async () => {
  cluster = await SignerCluster.start({ keys: 'own' })
  workspace = await cluster.workspace()
  caller = await workspace.caller()
})
after(async () => {
  await cluster.stop()
})

test('a key has three certificates and is the same at every node permanently', async () => {
  const identities = new Map(
    cluster.peers.nodes.map((node) => [node.node, createPublicKey(node.identity)]),
  )
  for (const node of [1, 2, 3]) {
    const { status, body } = await cluster.post(node, '/key', {
      workspace: workspace.name,
      curve: 'secp256k1',
    })
    assert.equal(status, 200)
    assert.deepEqual(body, workspace.set)
    assert.ok(verifyCertificates(body, identities))
    assert.ok(!verifyCertificates({ ...body, workspace: 'another' }, identities))
  }
})

test('each pair signs an ETH and a USDT transfer', async () => {
  const path = [1, ETH.chain_index, 0]
  const from = workspace.address(ETH, path)
  let nonce = 0
  for (const pair of [
    [1, 2],
    [2, 3],
    [3, 1],
  ] as const) {
    const request = await transfer(caller, {
      asset: 'ETH',
      amount: 0.5,
      destination_address: SINK_ETH,
    })
    const unsigned = eth(path, { value: 500_000_000_000_000_000n, nonce: nonce++ })
    const { status, body } = await workspace.sign(pay(request), unsigned, pair)
    assert.equal(status, 200, JSON.stringify(body))
    assert.equal(
      await recoverTransactionAddress({ serializedTransaction: `0x${body.signed.raw}` as never }),
      from,
    )
    const again = await workspace.sign(pay(request), unsigned, pair)
    assert.deepEqual(again.body, body)
    const token = await transfer(caller, {
      asset: 'USDT_ETH',
      amount: '12.345678',
      destination_address: SINK_ETH.toLowerCase(),
      sequence_id: `s${nonce}`,
    })
    const second = await workspace.sign(
      pay(token),
      usdt(path, SINK_ETH, 12_345_678n, { nonce: nonce++ }),
      pair,
    )
    assert.equal(second.status, 200, JSON.stringify(second.body))
  }
})

test('signs a BTC transfer with many inputs and change', async () => {
  const source = funding(
    workspace,
    Array.from({ length: 11 }, (_, index) => ({
      path: [1, BTC.chain_index, index],
      value: 100_000n,
    })),
  )
  const request = await transfer(caller, {
    asset: 'BTC',
    amount: 0.01,
    destination_address: SINK_BTC,
    fee_rate: 50,
  })
  const unsigned = btc(workspace, {
    inputs: Array.from({ length: 11 }, (_, index) => ({
      funding: source,
      output: index,
      path: [1, BTC.chain_index, index],
    })),
    amount: 1_000_000n,
    change: { path: [1, BTC.chain_index, 0x7fffffff], value: 90_000n },
  })
  const { status, body } = await workspace.sign(pay(request), unsigned, [2, 3])
  assert.equal(status, 200, JSON.stringify(body))
  assert.equal(body.signatures.length, 11)
  assert.equal(Transaction.fromHex(body.signed.raw).getId(), body.signed.hash)
})
