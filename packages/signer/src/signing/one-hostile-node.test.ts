// One hostile node of three, with an honest platform: it cannot bind the two honest nodes to anything
// that the platform has not ordered, and an order that was withdrawn is dead.
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { after, before, test } from 'node:test'
import { signing, type UnsignedTransaction } from '@custody/chains'
import { hashOfUnsigned } from '@custody/request-auth/orders'
import { hex, sha256hex } from '../canonical.ts'
import {
  BTC,
  btc,
  ETH,
  eth,
  funding,
  pay,
  registry,
  SignerCluster,
  SINK_BTC,
  SINK_ETH,
  signed,
  transfer,
  type Caller,
  type Json,
  type Workspace,
} from '../../testing/signer-cluster.ts'
import { TakenOver } from '../../testing/taken-over.ts'

let cluster: SignerCluster
let workspace: Workspace
let caller: Caller
let node1: TakenOver
const ONE = 10n ** 18n
const omnibus = [1, ETH.chain_index, 0]

before(async () => {
  cluster = await SignerCluster.start({ engine: 'double' })
  workspace = await cluster.workspace()
  caller = await workspace.caller()
  await workspace.caller(3)
  for (const nonce of [0, 1]) {
    const { request, unsigned } = await payment(nonce)
    for (const pair of [
      [2, 3],
      [3, 2],
    ] as const)
      signed(await workspace.sign(pay(request), unsigned, pair))
  }
  node1 = await TakenOver.start(cluster, 1)
})
after(async () => {
  node1.stop()
  await cluster.stop()
})

async function payment(nonce: number, more: { value?: bigint } = {}) {
  const request = await transfer(caller, { asset: 'ETH', amount: 1, destination_address: SINK_ETH })
  return { request, unsigned: eth(omnibus, { value: ONE, nonce, ...more }) }
}

const bindingOf = (unsigned: UnsignedTransaction, to: number) => {
  const items = signing(registry, unsigned, workspace.publicKeyAt)
  return {
    session: '',
    round: 0,
    key: workspace.set.key_id as string,
    path: sha256hex(JSON.stringify(items.map((item) => item.path))),
    digest: sha256hex(JSON.stringify(items.map((item) => hex(item.message)))),
    participants: [1, to],
  }
}

/**
 * Node 1 opens a session. @param authorisation what it has of the platform; undefined: what a platform
 * that cooperates with it gives
 */
const open = (
  to: number,
  purpose: unknown,
  unsigned: UnsignedTransaction,
  ...authorisation: readonly unknown[]
): Promise<Json> =>
  node1.say(
    to,
    '/peer/sign/open',
    {
      order: { workspace: workspace.name, purpose, unsigned },
      fresh: randomBytes(32).toString('hex'),
      epoch: 0,
      ...(authorisation.length > 0 ? { authorisation: authorisation[0] } : {}),
    },
    bindingOf(unsigned, to),
  )
const isOpen = (answer: Json): boolean => typeof answer.fresh === 'string'
const heightOf = async (node: number): Promise<number> =>
  (await cluster.get(node, '/status')).body.height as number
/** Returns the platform's authorisation for a pair that node 1 leads. */
const authorised = (to: number, purpose: unknown, unsigned: UnsignedTransaction) =>
  cluster.authorise(1, '/sign', { workspace: workspace.name, purpose, unsigned, partner: to })
const withdraw = (node: number, unsigned: UnsignedTransaction, until = Date.now()) =>
  cluster.post(node, '/withdraw', { hashes: [hashOfUnsigned(unsigned)], until })

test('attack (K1): other transactions of a payment that it has seen are not opened', async () => {
  const { request, unsigned } = await payment(2)
  for (const node of [2, 3]) {
    const used = eth(omnibus, { value: ONE, nonce: node - 2 })
    for (const authorisation of [undefined, authorised(node, pay(request), unsigned)])
      assert.equal(
        (await open(node, pay(request), used, authorisation)).error,
        'NOT_AUTHORISED',
        String(node),
      )
  }
  signed(await workspace.sign(pay(request), unsigned, [2, 3]))

  const bitcoin = await transfer(caller, {
    asset: 'BTC',
    amount: '0.001',
    destination_address: SINK_BTC,
  })
  const path = [1, BTC.chain_index, 0]
  const spend = (value: bigint) =>
    btc(workspace, {
      inputs: [{ funding: funding(workspace, [{ path, value }]), output: 0, path }],
      amount: 100_000n,
    })
  const real = spend(101_000n)
  for (const node of [2, 3])
    assert.equal(
      (await open(node, pay(bitcoin), spend(101_000n), undefined)).error,
      'NOT_AUTHORISED',
    )
  signed(await workspace.sign(pay(bitcoin), real, [3, 2]))
})

test('attack (K1): what an order has opened binds an honest node to nothing', async () => {
  const { request, unsigned } = await payment(3)
  // Even a platform that cooperates lets node 1 occupy a step only while the session is open.
  const used = eth(omnibus, { value: ONE, nonce: 0 })
  const heights = await Promise.all([2, 3].map(heightOf))
  for (const node of [2, 3]) assert.ok(isOpen(await open(node, pay(request), used)))
  assert.deepEqual(await Promise.all([2, 3].map(heightOf)), heights)
  const { body } = await workspace.sign(pay(request), unsigned, [2, 3])
  assert.equal(body.error, 'TOO_BUSY')
  for (const node of [2, 3]) {
    const answer = await cluster.post(node, '/void', { request })
    assert.equal(answer.status, 200, JSON.stringify(answer.body))
    assert.equal(answer.body.unfinished, 0)
  }
})

test('attack (K2): it opens no sweep of its own, and uses up no budget', async () => {
  const maxFeePerGas = BigInt(ETH.fee_cap) / 21_000n
  const sweep = (index: number) => {
    const to = workspace.address(ETH, [3, ETH.chain_index, 0])
    return {
      purpose: { kind: 'sweep', sub_account: 3, asset: 'ETH', address_index: index },
      unsigned: eth([3, ETH.chain_index, index], { to, value: ONE, maxFeePerGas }),
    }
  }
  for (let index = 1; index <= 40; index++)
    for (const node of [2, 3]) {
      const { purpose, unsigned } = sweep(index)
      assert.equal((await open(node, purpose, unsigned, undefined)).error, 'NOT_AUTHORISED')
    }
  const { purpose, unsigned } = sweep(41)
  signed(await workspace.sign(purpose, unsigned, [2, 3]))
})

test('attack (K3): opening and ending sessions writes nothing', async () => {
  const { request, unsigned } = await payment(3)
  const height = await heightOf(2)
  const authorisation = authorised(2, pay(request), unsigned)
  assert.ok(isOpen(await open(2, pay(request), unsigned, authorisation)))
  for (let times = 0; times < 20; times++)
    assert.equal((await open(2, pay(request), unsigned, authorisation)).error, 'ORDER_STALE')
  // A platform that cooperates can open as many as there are slots.
  for (let times = 0; times < 20; times++) assert.ok(isOpen(await open(2, pay(request), unsigned)))
  assert.equal(await heightOf(2), height)
  signed(await workspace.sign(pay(request), unsigned, [2, 3]))
})

test('attack (G3): an order that it kept is dead once the platform has withdrawn it', async () => {
  const { request, unsigned } = await payment(4)
  const kept = [2, 3].map((node) => ({ node, by: authorised(node, pay(request), unsigned) }))
  assert.ok(isOpen(await open(2, pay(request), unsigned)))
  for (const node of [2, 3]) {
    const { body } = await withdraw(node, unsigned)
    assert.deepEqual(body.statement.signed, [])
    assert.equal(body.statement.complete_since, 0)
  }
  for (const { node, by } of kept)
    assert.equal((await open(node, pay(request), unsigned, by)).error, 'ORDER_WITHDRAWN')
  await cluster.restartHere(3)
  assert.equal(
    (await open(3, pay(request), unsigned, kept[1]!.by)).error,
    'ORDER_WITHDRAWN',
    'after a restart',
  )
  // The platform can order it again.
  signed(await workspace.sign(pay(request), unsigned, [2, 3]))
  for (const node of [2, 3])
    assert.deepEqual((await withdraw(node, unsigned)).body.statement.signed, [
      hashOfUnsigned(unsigned),
    ])
})

test('an authorisation is for one pair, from one leader, for a minute', async () => {
  const { request, unsigned } = await payment(5)
  const of = (to: number) => authorised(to, pay(request), unsigned)
  assert.equal((await open(3, pay(request), unsigned, of(2))).error, 'NOT_AUTHORISED')
  const order = { workspace: workspace.name, purpose: pay(request), unsigned, partner: 3 }
  const other = cluster.authorise(2, '/sign', order)
  assert.equal((await open(3, pay(request), unsigned, other)).error, 'NOT_AUTHORISED')
  for (const aheadMs of [-70_000, 10_000]) {
    cluster.aheadMs = aheadMs
    const late = of(2)
    cluster.aheadMs = 0
    const answer = await open(2, pay(request), unsigned, late)
    assert.equal(answer.error, 'ORDER_STALE')
    assert.match(answer.message, /this node's clock shows 20/)
  }
  assert.ok(isOpen(await open(2, pay(request), unsigned, of(2))))
})

test('a platform without authorisations is refused by leader and partner', async () => {
  const { request, unsigned } = await payment(5)
  const order = { workspace: workspace.name, purpose: pay(request), unsigned, partner: 3 }
  const text = JSON.stringify(order)
  const { status, body } = await cluster.sendUnauthorised(2, '/sign', text)
  assert.deepEqual([status, body.error], [503, 'NOT_AUTHORISED'])
})
