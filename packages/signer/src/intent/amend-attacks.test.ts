import { signRequest, transactionId, type SignedRequest } from '@custody/request-auth'
import assert from 'node:assert/strict'
import { createHash, randomUUID } from 'node:crypto'
import { after, before, test } from 'node:test'
import {
  ask,
  cancel,
  faster,
  payment as paymentOf,
  voided,
  type Payment,
} from '../../testing/amending.ts'
import {
  BTC,
  btc,
  callerKey,
  ETH,
  eth,
  funding,
  SignerCluster,
  now,
  pay,
  refused,
  signed,
  SINK_BTC,
  SINK_ETH,
  transfer,
  usdt,
  type Workspace,
} from '../../testing/signer-cluster.ts'

/**
 * A hostile platform holds a caller's own cancellation or speed-up, and tries to use it for
 * anything else.
 */
let cluster: SignerCluster
let workspace: Workspace
const ONE = 10n ** 18n
const GWEI = 1_000_000_000n
const CHANGE = 0x7fffffff
let next = 700

before(async () => {
  cluster = await SignerCluster.start({ engine: 'double' })
  workspace = await cluster.workspace()
})
after(async () => {
  await cluster.stop()
})

const payment = (more: Record<string, unknown> = {}): Promise<Payment> =>
  paymentOf(workspace, next++, more)

test('attack: refuses a cancellation whose fee burns the balance, or that pays with a token', async () => {
  const { mine, path, id, request } = await payment()
  const to = workspace.address(ETH, path)
  signed(await workspace.sign(pay(request), eth(path, { value: ONE })))
  const by = await ask(mine, id, 'cancel')
  const dear = BigInt(ETH.fee_cap) / 21_000n
  refused(
    await workspace.sign(cancel(request, by), eth(path, { to, maxFeePerGas: dear + 1n })),
    'FEE_CAP',
    9,
  )
  refused(
    await workspace.sign(cancel(request, by), usdt(path, to, 0n, { maxFeePerGas: 3n * GWEI })),
    'ASSET_MISMATCH',
    7,
  )
  signed(await workspace.sign(cancel(request, by), eth(path, { to, maxFeePerGas: dear })))
})

test('attack: refuses a Bitcoin cancellation that does not pay the change address', async () => {
  const { mine, id, request } = await payment({
    asset: 'BTC',
    amount: 0.001,
    destination_address: SINK_BTC,
  })
  const path = (index: number) => [mine.sub_account, BTC.chain_index, index]
  const inputs = [
    { funding: funding(workspace, [{ path: path(0), value: 200_000n }]), output: 0, path: path(0) },
  ]
  signed(
    await workspace.sign(
      pay(request),
      btc(workspace, { inputs, amount: 100_000n, change: { path: path(CHANGE), value: 99_000n } }),
    ),
  )
  const by = await ask(mine, id, 'cancel')
  refused(
    await workspace.sign(
      cancel(request, by),
      btc(workspace, { inputs, amount: 50_000n, change: { path: path(CHANGE), value: 140_000n } }),
    ),
    'SHAPE',
    7,
  )
  const hash = createHash('ripemd160')
    .update(
      createHash('sha256')
        .update(workspace.publicKeyAt(path(CHANGE)))
        .digest(),
    )
    .digest()
  const back = Buffer.concat([Buffer.from([0x00, 0x14]), hash])
  const both = {
    inputs,
    payTo: back,
    amount: 50_000n,
    change: { path: path(CHANGE), value: 140_000n },
  }
  refused(await workspace.sign(cancel(request, by), btc(workspace, both)), 'SHAPE', 7)
})

test('attack: refuses a voided speed-up request; the original payment remains valid', async () => {
  const { mine, path, id, request } = await payment()
  const speedUp = await ask(mine, id, 'speed-up')
  await voided(cluster, speedUp)
  const unsigned = eth(path, { value: ONE, maxFeePerGas: 3n * GWEI })
  refused(await workspace.sign(faster(request, speedUp), unsigned), 'VOIDED', 14)
  refused(await workspace.sign(faster(request, speedUp), unsigned, [3, 2]), 'VOIDED', 14)
  signed(await workspace.sign(pay(request), unsigned))
})

test('attack: a cancellation whose request was voided has no effect', async () => {
  const { mine, path, id, request } = await payment()
  const by = await ask(mine, id, 'cancel')
  await voided(cluster, by)
  const nothing = eth(path, { to: workspace.address(ETH, path), maxFeePerGas: 3n * GWEI })
  refused(await workspace.sign(cancel(request, by), nothing), 'NOTHING_TO_CANCEL', 14)
  signed(await workspace.sign(pay(request), eth(path, { value: ONE })))
  refused(await workspace.sign(cancel(request, by), nothing), 'VOIDED', 14)
})

test('attack: refuses to pay a cancelled payment by another token with the same sequence_id', async () => {
  const { mine, path, id, request } = await payment({ sequence_id: 'once' })
  const other = await transfer(mine, {
    asset: 'ETH',
    amount: 1,
    destination_address: SINK_ETH,
    sequence_id: 'once',
  })
  const by = await ask(mine, id, 'cancel')
  signed(await workspace.sign(pay(request), eth(path, { value: ONE })))
  const back = eth(path, { to: workspace.address(ETH, path), maxFeePerGas: 3n * GWEI })
  signed(await workspace.sign(cancel(request, by), back))
  refused(
    await workspace.sign(pay(other), eth(path, { value: ONE, maxFeePerGas: 3n * GWEI })),
    'VOIDED',
    14,
  )
})

test('attack: only the owner can cancel a forward, and only by the id of the forward', async () => {
  const sub = next++
  const mine = await workspace.caller(sub)
  const [path, id, nonce] = [[sub, ETH.chain_index, 0], randomUUID(), randomUUID()]
  const body = JSON.stringify({
    asset: 'ETH',
    min_amount: 1,
    destination_address: SINK_ETH,
    daily_cap: 5,
    expires_at: new Date((now() + 3600) * 1000).toISOString(),
  })
  const rule = await signRequest({
    apiKey: mine.api_key,
    privateKey: callerKey,
    method: 'POST',
    uri: '/dac/v1/auto-forwarding',
    body,
    nonce,
  })
  for (const node of [1, 2, 3])
    assert.equal((await cluster.post(node, '/receipt', { request: rule })).status, 200)
  const of = { kind: 'forward', id, rule }
  signed(await workspace.sign(of, eth(path, { value: ONE })))
  const instead = eth(path, { to: workspace.address(ETH, path), maxFeePerGas: 3n * GWEI })
  const takenBack = (request: SignedRequest) =>
    workspace.sign({ kind: 'cancel', of, request }, instead)
  refused(
    await takenBack(await ask(await workspace.caller(next++), id, 'cancel')),
    'WORKSPACE_MISMATCH',
    2,
  )
  refused(
    await takenBack(await ask(mine, transactionId(mine.api_key, nonce), 'cancel')),
    'ACTION_NOT_ALLOWED',
    2,
  )
  refused(await takenBack(await ask(mine, randomUUID(), 'cancel')), 'ACTION_NOT_ALLOWED', 2)
  refused(await takenBack(await ask(mine, id, 'speed-up')), 'ACTION_NOT_ALLOWED', 2)
  signed(await takenBack(await ask(mine, id, 'cancel')))
  refused(
    await workspace.sign(of, eth(path, { value: ONE, maxFeePerGas: 4n * GWEI })),
    'VOIDED',
    14,
  )
})
