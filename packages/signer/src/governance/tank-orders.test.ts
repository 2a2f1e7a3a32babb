import assert from 'node:assert/strict'
import { afterEach, beforeEach, test } from 'node:test'
import { loadRegistry } from '@custody/chains'
import { orderApproval, type Governance, type TankOrder } from '@custody/policy'
import { DAY_S, signedBy } from '../../../policy/testing/governance.ts'
import { PolicyNodes } from '../../testing/policy-nodes.ts'
import { Refusal } from '../errors.ts'
import type { State } from '../store/state.ts'
import type { ItemOf } from './items.ts'
import {
  assertOrderApproved,
  awaitsApproval,
  drainToApprove,
  lacksOrderApproval,
  stakeToApprove,
} from './tank-orders.ts'

/** Approvals of orders on the records of three nodes, with real records and policies. */
const workspace = 'acme'
const registry = loadRegistry('local')
let nodes: PolicyNodes
beforeEach(() => {
  nodes = new PolicyNodes()
})
afterEach(() => {
  nodes.stop()
})

const quorum = (k: number) => ({ approvals: [{ group: 'treasury', k }] })
const XRP = 'rHb9CJAWyB4rj91VRWn96DkukG4bwdtyTh'
const order = drainToApprove(registry, {
  order: 'order-1',
  workspace,
  network: 'XRP',
  to_address: XRP,
  expires_at: 2_000_000_000,
})

const installed = (): Promise<Governance> => nodes.install({ orders: quorum(2) })

/** Approvals of the order by people, signed now under the document in force. */
function approved(people: readonly string[]): ItemOf<'approved'> {
  const governance = nodes.inForce()
  const meaning = {
    ...orderApproval(governance.policy, order),
    at: nodes.now,
    expires: nodes.now + 3600,
  }
  const approvals = people.map((by) =>
    JSON.stringify(signedBy(governance, by, 'approval', meaning)),
  )
  return { kind: 'approved', workspace, approvals }
}

/** Whether the order may be signed, by node. */
const signs = (other: TankOrder = order): boolean[] =>
  nodes.all.map(({ policies }) => !lacksOrderApproval(policies.held(workspace), other, nodes.now))
const ALL = [true, true, true]
const NONE = [false, false, false]

test('people approve the address and tag of a drain, and the amount and resource of a stake', () => {
  const native = { network: 'XRP', asset: 'XRP', decimals: 6 }
  const facts = { ...native, amount: null, to: XRP, tag: null, resource: null }
  assert.deepEqual(order, { order: 'order-1', action: 'drain', facts })
  const common = { order: 'o', workspace, network: 'TRX', expires_at: 1 }
  const staked = { ...common, action: 'stake', resource: 'BANDWIDTH', amount: '7' } as const
  assert.deepEqual(stakeToApprove(registry, staked), {
    order: 'o',
    action: 'tank-stake',
    facts: {
      network: 'TRX',
      asset: 'TRX',
      decimals: 6,
      amount: '7',
      to: null,
      tag: null,
      resource: 'BANDWIDTH',
    },
  })
  assert.equal(stakeToApprove(registry, { ...staked, action: 'unstake' }), null)
  const release = { ...common, action: 'release', resource: null, amount: '0' } as const
  assert.equal(stakeToApprove(registry, release), null)
})

test('an approved order stays approved after restarts, and at a node that lost its record', async () => {
  await installed()
  assert.deepEqual(signs(), NONE)
  nodes.node(2).exchange.present(approved(['dan', 'erin']))
  await nodes.ping()
  assert.deepEqual(signs(), ALL)
  assert.deepEqual(signs({ ...order, order: 'order-2' }), NONE)
  for (const node of nodes.all) node.start()
  assert.deepEqual(signs(), ALL)
  nodes.node(3).lose()
  await nodes.ping()
  await nodes.ping()
  assert.deepEqual(signs(), ALL)
})

test('the document in force decides how many approvals an order requires, and of whom', async () => {
  await installed()
  nodes.node(1).exchange.present(approved(['dan', 'erin']))
  await nodes.ping()
  await nodes.change({ orders: quorum(3) })
  assert.deepEqual(signs(), NONE)
  await nodes.change({ orders: { approvals: [{ group: 'admins', k: 1 }] } })
  assert.deepEqual(signs(), NONE)
  await nodes.change({ orders: quorum(2) })
  assert.deepEqual(signs(), ALL)
  const { people, groups } = nodes.inForce().policy.document
  await nodes.change({
    people: people.filter(({ id }) => id !== 'erin'),
    groups: { ...groups, treasury: ['dan', 'frank'] },
  })
  assert.deepEqual(signs(), NONE)
  await nodes.change({ orders: undefined })
  assert.deepEqual(signs(), ALL)
})

test('an approval of an order counts for seven days, whenever a node is given the order', async () => {
  await installed()
  nodes.node(1).exchange.present(approved(['dan', 'erin']))
  await nodes.ping()
  nodes.now += 7 * DAY_S - 1
  assert.deepEqual(signs(), ALL)
  nodes.now += 1
  assert.deepEqual(signs(), NONE)
  nodes.node(2).exchange.present(approved(['dan', 'erin']))
  await nodes.ping()
  assert.deepEqual(signs(), ALL)
})

test('an order of a network that the node no longer has is refused', () => {
  const drain = { order: 'o', workspace, network: 'NONE', to_address: XRP, expires_at: 1 }
  assert.throws(
    () => drainToApprove(registry, drain),
    /^Refusal: The network NONE is not in this node's registry$/,
  )
  assert.throws(
    () => drainToApprove(registry, { ...drain, network: 'XRP', to_address: 'x' }),
    /^Refusal: to_address: /,
  )
})

test('an order that was signed awaits no approvals, and one that was only recorded does', async () => {
  await installed()
  const held = nodes.node(1).policies.held(workspace)
  const awaits = (entries: readonly { signed: unknown }[], name = '["drain","order-1"]') =>
    awaitsApproval(
      held,
      { steps: new Map([[name, entries]]) } as unknown as State,
      order,
      nodes.now,
    )
  assert.equal(awaits([]), true)
  assert.equal(awaits([{ signed: null }]), true)
  assert.equal(awaits([{ signed: null }, { signed: { height: 1 } }]), false)
  assert.equal(awaits([{ signed: { height: 1 } }], '["tank-stake","order-1"]'), true)
  nodes.node(1).exchange.present(approved(['dan', 'erin']))
  const after = nodes.node(1).policies.held(workspace)
  assert.equal(awaitsApproval(after, { steps: new Map() } as State, order, nodes.now), false)
})

test('the refusal names the order and the command', async () => {
  await installed()
  assert.throws(
    () => {
      assertOrderApproved(nodes.node(1).policies.held(workspace), order, nodes.now)
    },
    (error) =>
      error instanceof Refusal &&
      error.code === 'ORDER_APPROVAL' &&
      /order-1 .*"policy approve-order"/.test(error.message),
  )
})
