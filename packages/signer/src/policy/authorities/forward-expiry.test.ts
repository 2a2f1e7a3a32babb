import { signRequest } from '@custody/request-auth'
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { after, before, test } from 'node:test'
import {
  callerKey,
  ETH,
  eth,
  SignerCluster,
  now,
  refused,
  signed,
  SINK_ETH,
  type Workspace,
} from '../../../testing/signer-cluster.ts'

/**
 * Rule 13 and the clocks of the nodes. The nodes run in the process of the test, which sets their
 * clocks.
 */
let cluster: SignerCluster
let workspace: Workspace
const ONE = 10n ** 18n

before(async () => {
  cluster = await SignerCluster.start({ engine: 'double' })
  workspace = await cluster.workspace()
})
after(async () => {
  await cluster.stop()
})

test('rule 13: an expired rule allows only recorded forwards to be signed again, unchanged', async () => {
  const caller = await workspace.caller()
  const path = [caller.sub_account, ETH.chain_index, 0]
  const end = now() + 3600
  const body = {
    asset: 'ETH',
    min_amount: 1,
    destination_address: SINK_ETH,
    daily_cap: 5,
    expires_at: new Date(end * 1000).toISOString(),
  }
  const rule = await signRequest({
    apiKey: caller.api_key,
    privateKey: callerKey,
    method: 'POST',
    uri: '/dac/v1/auto-forwarding',
    body: JSON.stringify(body),
  })
  for (const node of [1, 2, 3])
    assert.equal((await cluster.post(node, '/receipt', { request: rule })).status, 200)
  const forward = (id: string) => ({ kind: 'forward', id, rule })
  const id = randomUUID()
  signed(await workspace.sign(forward(id), eth(path, { value: ONE, nonce: 0 })))

  cluster.aheadMs = 3_602_000
  refused(
    await workspace.sign(forward(randomUUID()), eth(path, { value: ONE, nonce: 1 })),
    'RULE_EXPIRED',
    13,
  )
  refused(
    await workspace.sign(
      forward(id),
      eth(path, { value: ONE, nonce: 0, maxFeePerGas: 3_000_000_000n }),
    ),
    'RULE_EXPIRED',
    13,
  )
  // A recorded transaction was authorised earlier.
  signed(await workspace.sign(forward(id), eth(path, { value: ONE, nonce: 0 })))
})
