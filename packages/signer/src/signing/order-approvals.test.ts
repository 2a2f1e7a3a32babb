// Approvals of orders about gas tanks at three real nodes: what operators alone, or a platform, can
// have signed.
import { tron, type Network } from '@custody/chains'
import { orderApproval, type OrderFacts, type TankOrder } from '@custody/policy'
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { after, before, test } from 'node:test'
import { TestPolicy } from '../../testing/policy-cluster.ts'
import {
  ETH,
  eth,
  refused,
  registry,
  signed,
  SignerCluster,
  SINK_ETH,
  type Answer,
  type Json,
  type Workspace,
} from '../../testing/signer-cluster.ts'

const OTHER = '0x3C44CdDdB6a900fa2b585dd299e03d12FA4293BC'
const DAY_S = 86_400
const TRX = registry.network('TRX') as Network
const PAIRS = [
  [1, 2],
  [2, 3],
  [3, 1],
] as const
const NODES = [1, 2, 3] as const
const rules = [{ id: 'all', effect: 'allow', match: { action: ['transfer'], assets: 'any' } }]
const orders = { approvals: [{ group: 'treasury', k: 2 }] }
const two = ['dan', 'erin']

let cluster: SignerCluster
before(async () => {
  cluster = await SignerCluster.start({ engine: 'double' })
})
after(async () => {
  await cluster.stop()
})

/** Times of a statement, by the clocks of the nodes, which never go back. */
const times = (): { at: number; expires: number } => {
  const at = Math.floor((Date.now() + cluster.aheadMs) / 1000)
  return { at, expires: at + 3600 }
}

class Tank {
  readonly workspace: Workspace
  readonly policy: TestPolicy
  #stakes = 0

  private constructor(workspace: Workspace, policy: TestPolicy) {
    this.workspace = workspace
    this.policy = policy
  }

  static async start(fields: object = { orders }): Promise<Tank> {
    const workspace = await cluster.workspace()
    const { api_key } = await workspace.caller()
    const policy = new TestPolicy(cluster, workspace, rules, api_key, fields)
    await policy.install()
    return new Tank(workspace, policy)
  }

  /** Enters an order to drain the tank at nodes. */
  async drain(order: string, nodes: readonly number[] = NODES): Promise<Answer[]> {
    const entered = { workspace: this.workspace.name, network: 'ETH', to_address: SINK_ETH, order }
    return Promise.all(nodes.map((node) => cluster.operator(node, 'drain', entered)))
  }

  /** Enters an order about the stake of the tank at all nodes. */
  async stakeOrder(order: string, action: 'stake' | 'unstake'): Promise<Answer[]> {
    const { name: workspace } = this.workspace
    const amount = '5000000'
    const entered = { workspace, network: 'TRX', action, resource: 'ENERGY', amount, order }
    return Promise.all(NODES.map((node) => cluster.operator(node, 'tank-stake', entered)))
  }

  drained(order: string, fields: Partial<OrderFacts> = {}): TankOrder {
    const own = { network: 'ETH', asset: 'ETH', decimals: 18, to: SINK_ETH }
    const facts = { ...own, amount: null, tag: null, resource: null, ...fields }
    return { order, action: 'drain', facts }
  }

  /** Approvals of an order by people. */
  approve(order: TankOrder, people: readonly string[] = two, fields: object = {}): string[] {
    const { document, hash } = this.policy
    const meaning = orderApproval({ document, hash } as never, order)
    return people.map((by) => this.policy.statement(by, { ...meaning, ...times(), ...fields }))
  }

  /** Presents approvals to one node, as the platform does. */
  present(node: number, approvals: readonly string[]): Promise<Answer> {
    const item = { kind: 'approved', workspace: this.workspace.name, approvals }
    return cluster.post(node, '/policy/present', { item })
  }

  /** Requests the signature of a drain of 5 wei. */
  sign(order: string, pair: readonly [number, number] = [1, 2]): Promise<Answer> {
    const unsigned = eth([0, ETH.chain_index, 0], { value: 5n })
    return this.workspace.sign({ kind: 'drain', order }, unsigned, pair)
  }

  async refusedByAll(order: string): Promise<void> {
    for (const pair of PAIRS) refused(await this.sign(order, pair), 'ORDER_APPROVAL', 15)
  }

  /** Requests the signature of a call about the stake of the tank. */
  signStake(order: string, kind: 'freeze' | 'unfreeze'): Promise<Answer> {
    const path = [0, TRX.chain_index, 0]
    const nowMs = Date.now() + cluster.aheadMs
    const block = '00000000042c1d80a1b2c3d4e5f60718293a4b5c6d7e8f900112233445566778'
    const reference = {
      ...tron.refBlock(70_000_000, block),
      expiration: (Math.floor(nowMs / 1000) + 600) * 1000,
      timestamp: nowMs + this.#stakes++,
    }
    const publicKey = this.workspace.publicKeyAt(path)
    const call = { kind, resource: 'ENERGY', amount: 5_000_000n, reference, path, publicKey }
    const unsigned = tron.buildAction(TRX, call as Parameters<typeof tron.buildAction>[1])
    return this.workspace.sign({ kind: 'tank-stake', order }, unsigned)
  }

  /** Orders without approvals, as a node states them. */
  async pending(node: number): Promise<Json> {
    const { body } = await cluster.post(node, '/policy', { workspace: this.workspace.name })
    return body.orders
  }
}

test('a drain is signed once people have approved it, whichever node was shown that', async () => {
  const made = await Tank.start()
  const order = randomUUID()
  const [entered] = await made.drain(order)
  assert.equal(entered!.body.needs_approval, true)
  await made.refusedByAll(order)
  const { body } = await cluster.operator(2, 'order', { order })
  const { expires_at, ...shown } = body
  assert.ok(expires_at > 0)
  assert.deepEqual(shown, {
    node: 2,
    order,
    workspace: made.workspace.name,
    to_approve: made.drained(order),
    needs_approval: true,
  })
  for (const node of NODES) assert.deepEqual(await made.pending(node), [made.drained(order)])
  const presented = await made.present(3, made.approve(made.drained(order)))
  signed(presented)
  assert.deepEqual(presented.body.told.toSorted(), [1, 2])
  for (const node of NODES) assert.deepEqual(await made.pending(node), [])
  signed(await made.sign(order, [2, 3]))
  // The same transaction is on record, so each pair repeats it; another one is not signed.
  signed(await made.sign(order, [1, 2]))
  const more = eth([0, ETH.chain_index, 0], { value: 6n, nonce: 1 })
  refused(await made.workspace.sign({ kind: 'drain', order }, more), 'NOT_EXCLUSIVE', 6)
  const again = await cluster.operator(1, 'order', { order })
  assert.equal(again.body.needs_approval, false)
})

test('attack: approvals of another order, address, network or action, of too few people, or expired', async () => {
  const made = await Tank.start()
  const [order, other] = [randomUUID(), randomUUID()]
  await made.drain(order)
  await made.drain(other)
  const { at } = times()
  const drained = made.drained(order)
  const stake: TankOrder = {
    order,
    action: 'tank-stake',
    facts: { ...drained.facts, amount: '5', to: null, resource: 'ENERGY' },
  }
  const tries: [string, string[], string | null][] = [
    ['of another order', made.approve(made.drained(other)), null],
    ['of another address', made.approve(made.drained(order, { to: OTHER })), null],
    ['of another network', made.approve(made.drained(order, { network: 'BASE' })), null],
    ['with a tag', made.approve(made.drained(order, { tag: '1' })), null],
    ['of a stake', made.approve(stake), null],
    ['of one person', made.approve(drained, ['dan']), null],
    ['of one person twice', made.approve(drained, ['dan', 'dan']), null],
    ['of another group', made.approve(drained, ['dan', 'alice']), null],
    ['with another subject', made.approve(drained, two, { subject: 'ab'.repeat(32) }), null],
    ['rejected', made.approve(drained, two, { decision: 'reject' }), 'BAD_POLICY'],
    [
      'mixed',
      [...made.approve(drained, ['dan']), ...made.approve(made.drained(other), ['erin'])],
      'BAD_POLICY',
    ],
    ['expired', made.approve(drained, two, { at: at - 100, expires: at - 50 }), 'BAD_POLICY'],
    ['of another workspace', made.approve(drained, two, { workspace: 'other' }), 'BAD_POLICY'],
    ['of another place', made.approve(drained, two, { nodes: 'ab'.repeat(32) }), 'BAD_POLICY'],
  ]
  for (const [name, approvals, code] of tries) {
    const answer = await made.present(1, approvals)
    if (code === null) assert.equal(answer.status, 200, `${name}: ${JSON.stringify(answer.body)}`)
    else assert.equal(answer.body.error, code, `${name}: ${JSON.stringify(answer.body)}`)
    const payment = await made.sign(order)
    assert.equal(payment.body.error, 'ORDER_APPROVAL', `${name}: ${JSON.stringify(payment.body)}`)
  }
  // Approvals of two records do not add up to those of one.
  signed(await made.present(1, made.approve(drained, ['erin'])))
  await made.refusedByAll(order)
  signed(await made.present(1, made.approve(drained)))
  signed(await made.sign(order))
})

test('attack: approvals alone sign nothing, and an operator cannot change an approved order', async () => {
  const made = await Tank.start()
  const order = randomUUID()
  signed(await made.present(1, made.approve(made.drained(order))))
  refused(await made.sign(order), 'ORDER_UNKNOWN', 15)
  // One operator enters another address under the ID that was approved.
  const entered = { workspace: made.workspace.name, network: 'ETH', to_address: OTHER, order }
  const [changed] = [await cluster.operator(1, 'drain', entered)]
  assert.equal(changed.body.needs_approval, true)
  await made.drain(order, [2, 3])
  const unsigned = eth([0, ETH.chain_index, 0], { value: 5n, to: OTHER })
  for (const pair of [
    [1, 2],
    [2, 1],
  ] as const) {
    const answer = await made.workspace.sign({ kind: 'drain', order }, unsigned, pair)
    assert.match(answer.body.error, /^(ORDER_APPROVAL|DESTINATION_MISMATCH)$/)
  }
  signed(await made.sign(order, [2, 3]))
})

test('a stake requires approvals; an unstake, which returns coins to the tank, does not', async () => {
  const made = await Tank.start()
  const [stake, unstake] = [randomUUID(), randomUUID()]
  const [staked] = await made.stakeOrder(stake, 'stake')
  assert.equal(staked!.body.needs_approval, true)
  const [unstaked] = await made.stakeOrder(unstake, 'unstake')
  assert.equal(unstaked!.body.needs_approval, false)
  refused(await made.signStake(stake, 'freeze'), 'ORDER_APPROVAL', 15)
  const { body } = await cluster.operator(1, 'order', { order: stake })
  signed(await made.present(2, made.approve(body.to_approve)))
  signed(await made.signStake(stake, 'freeze'))
  signed(await made.signStake(unstake, 'unfreeze'))
  assert.equal((await cluster.operator(1, 'order', { order: unstake })).body.to_approve, null)
})

test('the suspension of an approver ends the approval while it lasts', async () => {
  const made = await Tank.start()
  const order = randomUUID()
  const target = { person: 'erin', key: 'k1' }
  const suspension = made.policy.statement('alice', {
    kind: 'suspend',
    target,
    reason: 'Lost',
    ...times(),
  })
  signed(await made.policy.present(2, suspension))
  const refusal = await made.present(1, made.approve(made.drained(order)))
  assert.equal(refusal.body.error, 'BAD_POLICY')
  cluster.aheadMs += (7 * DAY_S + 60) * 1000
  await made.drain(order)
  await made.refusedByAll(order)
  signed(await made.present(1, made.approve(made.drained(order))))
  const again = made.policy.statement('alice', {
    kind: 'suspend',
    target,
    reason: 'Lost again',
    ...times(),
  })
  signed(await made.policy.present(2, again))
  await made.refusedByAll(order)
})

test('orders from before the policy require approvals too, and none without the field', async () => {
  const workspace = await cluster.workspace()
  const { api_key } = await workspace.caller()
  const order = randomUUID()
  const entered = { workspace: workspace.name, network: 'ETH', to_address: SINK_ETH, order }
  for (const node of NODES) signed(await cluster.operator(node, 'drain', entered))
  const policy = new TestPolicy(cluster, workspace, rules, api_key, { orders })
  await policy.install()
  const unsigned = eth([0, ETH.chain_index, 0], { value: 5n })
  refused(await workspace.sign({ kind: 'drain', order }, unsigned), 'ORDER_APPROVAL', 15)
  const free = await Tank.start({})
  const [answer] = await free.drain(randomUUID())
  assert.equal(answer!.body.needs_approval, false)
  signed(await free.sign(answer!.body.order))
})

test('an approval ends after seven days, also at nodes that are given the order later', async () => {
  const made = await Tank.start()
  const order = randomUUID()
  await made.drain(order, [1])
  signed(await made.present(1, made.approve(made.drained(order))))
  cluster.aheadMs += (7 * DAY_S + 60) * 1000
  const late = await made.drain(order, [2, 3])
  for (const { body } of late) assert.equal(body.needs_approval, true)
  refused(await made.sign(order, [2, 3]), 'ORDER_APPROVAL', 15)
})

test('a signed order is not listed as one that lacks approvals', async () => {
  const made = await Tank.start()
  const order = randomUUID()
  await made.drain(order)
  signed(await made.present(1, made.approve(made.drained(order))))
  signed(await made.sign(order))
  const target = { person: 'erin', key: 'k1' }
  const suspension = made.policy.statement('alice', {
    kind: 'suspend',
    target,
    reason: 'Lost',
    ...times(),
  })
  signed(await made.policy.present(1, suspension))
  assert.deepEqual(await made.pending(1), [])
  assert.equal((await cluster.operator(1, 'order', { order })).body.needs_approval, false)
  // A finished signature on record is returned again; nothing new is signed.
  signed(await made.sign(order))
})

test('an ID that people cannot read, one of another kind of order, and a tag are refused', async () => {
  const { name: workspace } = (await Tank.start()).workspace
  const drain = (fields: object) =>
    cluster.operator(1, 'drain', { workspace, network: 'ETH', to_address: SINK_ETH, ...fields })
  const stake = (order: string) =>
    cluster.operator(1, 'tank-stake', {
      workspace,
      network: 'TRX',
      action: 'stake',
      resource: 'ENERGY',
      amount: '5',
      order,
    })
  for (const order of ['a b', 'a\nb', '\u202ea', '', 'x'.repeat(65)])
    assert.equal((await drain({ order })).status, 400, JSON.stringify(order))
  const [one, two] = [randomUUID(), randomUUID()]
  signed(await drain({ order: one }))
  refused(await stake(one), 'ENROLMENT_CONFLICT', 1)
  signed(await stake(two))
  refused(await drain({ order: two }), 'ENROLMENT_CONFLICT', 1)
  const tagged = 'XVLhHMPHU98es4dbozjVtdWzVrDjtV18pX8yuPT7y4xaEHi'
  const answer = await drain({ network: 'XRP', to_address: tagged })
  assert.match(answer.body.message, /to_address: must not contain a tag/)
})

test('an unknown order and a bad field have clear answers', async () => {
  const unknown = await cluster.operator(1, 'order', { order: 'none' })
  refused(unknown, 'ORDER_UNKNOWN', 15)
  for (const body of [{}, { order: '' }, { order: 5 }, { order: 'x', more: 1 }])
    assert.equal((await cluster.operator(1, 'order', body)).status, 400, JSON.stringify(body))
})
