import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { Transaction } from 'bitcoinjs-lib'
import {
  BTC,
  btc,
  funding,
  SignerCluster,
  pay,
  SINK_BTC,
  transfer,
  type Caller,
  type Workspace,
} from '../../testing/signer-cluster.ts'

/**
 * Coins of transactions that are as large as a block allows can be spent like others, with three
 * real nodes and one order.
 */
let cluster: SignerCluster
let workspace: Workspace
let caller: Caller

before(async () => {
  cluster = await SignerCluster.start({ engine: 'double' })
  workspace = await cluster.workspace()
  caller = await workspace.caller()
})
after(async () => {
  await cluster.stop()
})

const COIN = 100_000_000n
const PATH = [1, BTC.chain_index, 0]
/** Time in milliseconds that the platform waits for the signatures of this number of inputs. */
const patience = (inputs: number) => 6000 + 150 * inputs

function parents(count: number, bytes: number): Transaction[] {
  return Array.from({ length: count }, () => {
    const transaction = funding(workspace, [{ path: PATH, value: COIN }])
    for (let at = 0; at < bytes / 31; at++)
      transaction.addOutput(Buffer.from(`0014${'11'.repeat(20)}`, 'hex'), 1n)
    return transaction
  })
}

function order(from: Transaction[]) {
  const amount = COIN * BigInt(from.length) - 10_000n
  const request = transfer(caller, {
    asset: 'BTC',
    amount: Number(amount) / 1e8,
    destination_address: SINK_BTC,
  })
  return {
    request,
    unsigned: btc(workspace, {
      inputs: from.map((each) => ({ funding: each, output: 0, path: PATH })),
      amount,
    }),
  }
}

test("two nodes sign 22 inputs with parents of 1 MB each before the platform's time-out", async () => {
  const { request, unsigned } = order(parents(22, 990_000))
  assert.ok(JSON.stringify(unsigned).length > 42_000_000)
  const signed = pay(await request)
  // Both nodes run in this process, so its processor time is the elapsed time on an idle machine.
  const started = process.cpuUsage()
  const { status, body } = await workspace.sign(signed, unsigned)
  const { user, system } = process.cpuUsage(started)
  const took = (user + system) / 1000
  assert.equal(status, 200, JSON.stringify(body).slice(0, 300))
  assert.equal(body.signatures.length, 22)
  assert.ok(took < patience(22), `${took} ms`)
})

test('refuses an order above the size limit, and the node continues', async () => {
  const { request, unsigned } = order(parents(2, 990_000))
  const large = {
    ...unsigned,
    inputs: Array.from({ length: 36 }, () => unsigned.inputs[0] as { path: number[] }),
  }
  const answer = await workspace.sign(pay(await request), large)
  assert.deepEqual([answer.status, answer.body?.error], [413, 'TOO_LARGE'])
  const next = order(parents(1, 1000))
  assert.equal((await workspace.sign(pay(await next.request), next.unsigned)).status, 200)
})

test('refuses a previous transaction that is not hex, or too long for a transaction', async () => {
  const { request, unsigned } = order(parents(1, 1000))
  const signed = await request
  for (const previous of ['', 'abc', 'ZZ', '00'.repeat(4 * 1024 * 1024 + 1)]) {
    const { status, body } = await workspace.sign(pay(signed), {
      ...unsigned,
      inputs: [{ path: PATH, previous }],
    })
    assert.deepEqual([status, body.error], [400, 'BAD_ORDER'])
  }
})
