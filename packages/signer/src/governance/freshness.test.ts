import assert from 'node:assert/strict'
import { afterEach, beforeEach, test } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import type { Governance } from '@custody/policy'
import { DAY_S } from '../../../policy/testing/governance.ts'
import { PolicyNodes } from '../../testing/policy-nodes.ts'
import { Refusal } from '../errors.ts'
import { CLAIMS_MAX } from '../store/policy-reading.ts'
import type { Position } from './positions.ts'

/** What one peer says, or does not say, about policies, and what a node signs then. */
const workspace = 'acme'
let nodes: PolicyNodes
beforeEach(() => {
  nodes = new PolicyNodes()
})
afterEach(() => {
  nodes.stop()
})

const NONSENSE = { nonsense: true }

/** Why a node signs nothing under its policy; null if it signs. */
function behind(node: number): string | null {
  const { policies, exchange } = nodes.node(node)
  try {
    exchange.assertCurrent(policies.current(workspace)!)
    return null
  } catch (error) {
    assert.ok(error instanceof Refusal)
    assert.equal(error.code, 'POLICY_BEHIND')
    return error.message
  }
}

/** Sends a node the ping of a peer, whatever the peer says. */
async function ping(node: number, peer: number, position: Position): Promise<void> {
  nodes.node(node).exchange.onPing(peer, { policy: position })
  // The transport of the test needs no time, so that the read ends before the next task.
  await setImmediate()
}

/** Makes a hostile node claim a position that its pages do not prove. */
function lieAt(node: number, pages: unknown = NONSENSE): void {
  nodes.node(node).altered = (call, answer) => (call === '/peer/policy/items' ? pages : answer)
}

/** Repeats a false claim for a time in seconds, as pings do. */
async function claimFor(seconds: number, position: Position, [from, to]: [number, number]) {
  for (let at = 0; at <= seconds; at += 10) {
    await ping(to, from, position)
    nodes.now += 10
  }
}
const FALSE: Position = { generation: 0, height: 1_000_000 }

/** Restores a node: it has its present record, and a restored node's duties. */
function restored(node: number): void {
  const { store } = nodes.node(node)
  store.append('restored', { generation: store.state.generation + 1, not_before: 0 })
}

/** Changes the document at nodes 1 and 2 while node 3 is away. */
async function changedWithout3(): Promise<Governance> {
  nodes.cut(3)
  await nodes.change({ stop: { group: 'treasury' } })
  assert.deepEqual(nodes.numbers, [2, 2, 1])
  return nodes.inForce(3)
}

const claimsOf = (node: number): number =>
  nodes
    .node(node)
    .store.record.page(1, 10_000)
    .filter(({ kind }) => kind === 'policy-unproven').length

test('attack: a false position of one peer stops no payment after a restart or after 24 hours', async () => {
  await nodes.install()
  lieAt(1)
  for (const node of [2, 3]) nodes.node(node).start()
  for (const node of [2, 3]) await ping(node, 1, FALSE)
  assert.deepEqual([2, 3].map(behind), [null, null])
  nodes.now += 2 * DAY_S
  for (const node of [2, 3]) await ping(node, 1, FALSE)
  assert.deepEqual([2, 3].map(behind), [null, null])
})

test('a node that was not restored continues with its own record while its peers are silent', async () => {
  await nodes.install()
  nodes.cut(3)
  nodes.node(3).start()
  await nodes.node(3).exchange.prepare()
  assert.equal(behind(3), null)
  nodes.now += 30 * DAY_S
  assert.equal(behind(3), null)
})

test('a false position is ignored after a minute, once, durably, and with an alert', async () => {
  await nodes.install()
  lieAt(1)
  const { exchange } = nodes.node(2)
  await claimFor(40, FALSE, [1, 2])
  assert.deepEqual([claimsOf(2), exchange.unproven()], [0, []])
  await claimFor(120, FALSE, [1, 2])
  assert.deepEqual([claimsOf(2), exchange.unproven()], [1, [1]])
  const alerts = nodes.node(2).logged.filter((each) => /claims.*policies/.test(each))
  assert.equal(alerts.length, 1)
  nodes.node(2).start()
  assert.deepEqual(nodes.node(2).exchange.unproven(), [1])
  // The peer is no longer reported once it has proven its position.
  nodes.node(1).altered = (_call, answer) => answer
  nodes.now += 61
  await ping(2, 1, nodes.node(1).exchange.position()!)
  assert.deepEqual(nodes.node(2).exchange.unproven(), [])
})

test('an ignored position costs one read in a minute', async () => {
  await nodes.install()
  let reads = 0
  nodes.node(1).altered = (call, answer) => {
    if (call === '/peer/policy/items') reads++
    return call === '/peer/policy/items' ? NONSENSE : answer
  }
  await claimFor(120, FALSE, [1, 2])
  reads = 0
  for (let times = 0; times < 100; times++) await ping(2, 1, FALSE)
  assert.ok(reads <= 2, `${reads} reads`)
})

test('attack: claims of many generations write a bounded number of entries', async () => {
  await nodes.install()
  lieAt(1)
  for (let generation = 1; generation <= CLAIMS_MAX + 5; generation++)
    await claimFor(70, { generation, height: 5 }, [1, 2])
  assert.equal(claimsOf(2), CLAIMS_MAX)
  restored(2)
  await ping(2, 3, nodes.node(3).exchange.position()!)
  assert.match(behind(2)!, /has not read the policies of node 1/)
})

test('attack: a restored node does not sign by a replaced document with a hostile node while the third is silent', async () => {
  await nodes.install()
  await changedWithout3()
  restored(3)
  // Node 1 sends the first document only, and node 2 cannot be reached.
  const first = { generation: 0, height: 1 }
  nodes.node(1).altered = (call, answer) =>
    call === '/peer/policy/items'
      ? { ...(answer as object), items: [], to: 1, is_last: true }
      : answer
  nodes.connect(3, [1])
  await ping(3, 1, first)
  assert.match(behind(3)!, /has not read the policies of node 2 since it was restored/)
  // A false claim, or time, changes nothing.
  await claimFor(600, FALSE, [1, 3])
  nodes.now += 30 * DAY_S
  assert.match(behind(3)!, /has not read the policies of node 2/)
  nodes.node(3).start()
  await nodes.node(3).exchange.prepare()
  assert.match(behind(3)!, /has not read the policies of node 2/)
})

test('a restored node waits for an honest peer whose pages do not arrive, however often it is pinged', async () => {
  await nodes.install()
  restored(3)
  await ping(3, 1, nodes.node(1).exchange.position()!)
  nodes.cut(3, [2])
  await claimFor(600, { generation: 0, height: 50 }, [2, 3])
  assert.match(behind(3)!, /has not read the policies of node 2/)
  assert.deepEqual(nodes.node(3).exchange.unproven(), [])
})

test('a restored node waits for a peer of a later version, whose items it cannot read', async () => {
  await nodes.install()
  restored(3)
  await ping(3, 1, nodes.node(1).exchange.position()!)
  const item = { height: 9, seen_at_s: 1, is_held: true, item: { kind: 'later', workspace } }
  lieAt(2, { generation: 0, to: 9, is_last: true, items: [item] })
  await claimFor(600, { generation: 0, height: 9 }, [2, 3])
  assert.match(behind(3)!, /has not read the policies of node 2/)
})

test('a restored node that has read the honest peer continues without the false position of the other', async () => {
  await nodes.install()
  lieAt(1)
  restored(3)
  await ping(3, 2, nodes.node(2).exchange.position()!)
  await claimFor(40, FALSE, [1, 3])
  assert.match(behind(3)!, /has not read the policies of node 1 since it was restored/)
  await claimFor(20, FALSE, [1, 3])
  assert.equal(behind(3), null)
  nodes.cut(3)
  nodes.node(3).start()
  assert.equal(behind(3), null, 'what was read and ignored is on record')
  restored(3)
  assert.match(behind(3)!, /has not read the policies of node 1/, 'another restoration waits again')
})

test('a restored node that has read both peers does not wait again after a restart', async () => {
  await nodes.install()
  restored(3)
  assert.match(behind(3)!, /has not read the policies of node 1 since it was restored/)
  await nodes.ping()
  assert.equal(behind(3), null)
  nodes.cut(3)
  nodes.node(3).start()
  assert.equal(behind(3), null)
})

test('the decision of an operator to accept a policy survives a restart and applies to its successors', async () => {
  await nodes.install()
  restored(3)
  nodes.cut(3, [1])
  await nodes.ping()
  assert.match(behind(3)!, /has not read the policies of node 1/)
  const { hash } = nodes.inForce(3).policy
  nodes.node(3).exchange.accept(workspace, hash)
  nodes.node(3).exchange.accept(workspace, hash)
  assert.equal(behind(3), null)
  nodes.node(3).start()
  assert.equal(behind(3), null)
  await nodes.change({ stop: { group: 'treasury' } })
  assert.equal(nodes.node(3).number, 2)
  assert.equal(behind(3), null)
  restored(3)
  assert.match(behind(3)!, /has not read/, 'another restoration needs another decision')
})

test('an accepted policy does not hide a later document that this node learns to have missed', async () => {
  await nodes.install()
  const old = await changedWithout3()
  nodes.now += 7200
  nodes.node(3).exchange.accept(workspace, old.policy.hash)
  nodes.connect(3, [1])
  await nodes.ping()
  assert.match(behind(3)!, /has seen the policy 2 too late/)
  nodes.node(3).exchange.accept(workspace, old.policy.hash)
  nodes.node(3).start()
  await nodes.ping()
  assert.equal(behind(3), null, 'the operator has accepted it with that knowledge')
})

test('what a node takes over from both peers by its operator’s command survives a restart', async () => {
  await nodes.install()
  await changedWithout3()
  nodes.now += 7200
  nodes.connect(3)
  restored(3)
  await nodes.node(3).exchange.follow(workspace, nodes.inForce(1).policy.hash)
  assert.equal(nodes.node(3).number, 2)
  nodes.cut(3)
  nodes.node(3).start()
  assert.deepEqual([nodes.node(3).number, behind(3)], [2, null])
})
