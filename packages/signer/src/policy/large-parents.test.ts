import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { PATH, spendingParents } from '../../testing/large-parents.ts'
import { SignerCluster, pay, type Caller, type Workspace } from '../../testing/signer-cluster.ts'

/**
 * Coins of transactions that are as large as a block allows can be spent like others, with three
 * real nodes and one order. How long it takes is a figure of the benchmark.
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

const order = (count: number, bytes: number) => spendingParents(workspace, caller, { count, bytes })

test('two nodes sign 22 inputs with parents of 1 MB each', async () => {
  const { request, unsigned } = await order(22, 990_000)
  assert.ok(JSON.stringify(unsigned).length > 42_000_000)
  const { status, body } = await workspace.sign(pay(request), unsigned)
  assert.equal(status, 200, JSON.stringify(body).slice(0, 300))
  assert.equal(body.signatures.length, 22)
})

test('refuses an order above the size limit, and the node continues', async () => {
  const { request, unsigned } = await order(2, 990_000)
  const large = {
    ...unsigned,
    inputs: Array.from({ length: 36 }, () => unsigned.inputs[0] as { path: number[] }),
  }
  const answer = await workspace.sign(pay(request), large)
  assert.deepEqual([answer.status, answer.body?.error], [413, 'TOO_LARGE'])
  const next = await order(1, 1000)
  assert.equal((await workspace.sign(pay(next.request), next.unsigned)).status, 200)
})

test('refuses a previous transaction that is not hex, or too long for a transaction', async () => {
  const { request, unsigned } = await order(1, 1000)
  for (const previous of ['', 'abc', 'ZZ', '00'.repeat(4 * 1024 * 1024 + 1)]) {
    const { status, body } = await workspace.sign(pay(request), {
      ...unsigned,
      inputs: [{ path: PATH, previous }],
    })
    assert.deepEqual([status, body.error], [400, 'BAD_ORDER'])
  }
})
