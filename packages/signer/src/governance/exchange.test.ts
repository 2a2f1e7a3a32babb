import assert from 'node:assert/strict'
import { afterEach, beforeEach, test } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import { canonicalText, PolicyError, type Governance, type SignedStatement } from '@custody/policy'
import { policyWith } from '../../../policy/testing/documents.ts'
import {
  DAY_S,
  possessionsOf,
  proposalOf,
  signedBy,
  successorOf,
} from '../../../policy/testing/governance.ts'
import { PolicyNodes } from '../../testing/policy-nodes.ts'
import { Refusal } from '../errors.ts'
import type { Item, ItemOf } from './items.ts'

const workspace = 'acme'
let nodes: PolicyNodes
beforeEach(() => {
  nodes = new PolicyNodes()
})
afterEach(() => {
  nodes.stop()
})

const textOf = (signed: SignedStatement): string => JSON.stringify(signed)

function first(fields: object = {}): ItemOf<'first'> {
  const { document } = policyWith([], fields)
  const possessions = possessionsOf(document).map(textOf)
  return { kind: 'first', workspace, document: canonicalText(document), possessions }
}

/** Installs the first document at nodes 1 and 2, of which node 3 reads it. */
async function installed(): Promise<Governance> {
  for (const node of [1, 2]) {
    nodes.node(node).exchange.type(first())
    await nodes.node(node).exchange.announce()
  }
  await nodes.ping()
  assert.deepEqual(nodes.numbers, [1, 1, 1])
  return nodes.node(1).policies.current(workspace)!
}

function changeOf(
  governance: Governance,
  fields: object,
  times: { at?: number; acts_at?: number } = {},
): ItemOf<'change'> {
  const document = successorOf(governance, fields)
  const at = times.at ?? nodes.now
  const proposal = proposalOf(governance, document, ['alice', 'bob'], { at, ...times })
  return {
    kind: 'change',
    workspace,
    document: canonicalText(document),
    possessions: [],
    approvals: proposal.approvals.map(textOf),
  }
}

const statementOf = (signed: SignedStatement): ItemOf<'statement'> => ({
  kind: 'statement',
  workspace,
  signed: textOf(signed),
})

async function present(node: number, item: Item): Promise<boolean> {
  const { exchange } = nodes.node(node)
  const isNew = exchange.present(item)
  await exchange.announce()
  return isNew
}

const behind = (node: number): Refusal | null => {
  const { exchange, policies } = nodes.node(node)
  try {
    exchange.assertCurrent(policies.current(workspace)!)
    return null
  } catch (error) {
    assert.ok(error instanceof Refusal)
    assert.equal(error.code, 'POLICY_BEHIND')
    return error
  }
}

test('the first document is in force when two nodes have the same one, and the third accepts it', async () => {
  nodes.cut(3)
  nodes.node(1).exchange.type(first())
  await nodes.node(1).exchange.announce()
  assert.deepEqual(nodes.numbers, [0, 0, 0])
  nodes.node(2).exchange.type(first())
  await nodes.node(2).exchange.announce()
  await nodes.ping()
  assert.deepEqual(nodes.numbers, [1, 1, 0])
  nodes.connect(3, [1])
  await nodes.ping()
  assert.deepEqual(nodes.numbers, [1, 1, 0], 'one peer is not sufficient')
  nodes.connect(3)
  await nodes.ping()
  assert.deepEqual(nodes.numbers, [1, 1, 1])
})

test('of two different first documents neither is in force, and each node names both', async () => {
  const [one, other] = [first(), first({ stop: { group: 'treasury' } })]
  nodes.node(1).exchange.type(one)
  nodes.node(2).exchange.type(other)
  await nodes.ping()
  await nodes.ping()
  assert.deepEqual(nodes.numbers, [0, 0, 0])
  const held = nodes.node(3).exchange.firstsOf(workspace)
  assert.deepEqual(
    held.map(({ node }) => node),
    [1, 2],
  )
  assert.notEqual(held[0]!.hash, held[1]!.hash)
  // The operator of node 2 enters the right one.
  nodes.node(2).exchange.type(one)
  await nodes.node(2).exchange.announce()
  await nodes.ping()
  assert.deepEqual(nodes.numbers, [1, 1, 1])
  assert.throws(() => nodes.node(2).exchange.type(other), PolicyError)
})

test('a change that one node has seen is in force at all nodes at the approved time', async () => {
  const governance = await installed()
  const change = changeOf(governance, { stop: { group: 'treasury' } })
  assert.equal(await present(2, change), true)
  assert.equal(await present(2, change), false)
  for (const { policies } of nodes.all)
    assert.equal(policies.current(workspace)!.next?.acts_at_s, nodes.now + DAY_S)
  nodes.now += DAY_S - 1
  assert.deepEqual(nodes.numbers, [1, 1, 1])
  nodes.now += 1
  assert.deepEqual(nodes.numbers, [2, 2, 2])
  // A restarted node computes the same from its record.
  for (const node of nodes.all) node.start()
  assert.deepEqual(nodes.numbers, [2, 2, 2])
})

test('a node that was not connected accepts a change by both other nodes, and signs nothing once it knows of it', async () => {
  const governance = await installed()
  nodes.cut(3)
  await present(1, changeOf(governance, { stop: { group: 'treasury' } }))
  nodes.now += DAY_S + 7200
  assert.deepEqual(nodes.numbers, [2, 2, 1])
  nodes.node(3).start()
  assert.equal(behind(3), null, 'it continues with its own record')
  nodes.connect(3, [1])
  await nodes.ping()
  assert.equal(nodes.node(3).number, 1, 'one peer is not sufficient')
  assert.match(behind(3)!.message, /has seen the policy 2 too late/)
  nodes.connect(3)
  await nodes.ping()
  assert.deepEqual(nodes.numbers, [2, 2, 2])
  assert.equal(behind(3), null)
})

test('a node does not sign under a document that a change should have replaced', async () => {
  const governance = await installed()
  nodes.cut(3)
  await present(1, changeOf(governance, { stop: { group: 'treasury' } }))
  nodes.now += DAY_S + 7200
  await nodes.ping()
  // Node 2 is hostile towards node 3 and hides the change.
  const hidden = nodes.node(2).exchange.position()!
  nodes.node(2).altered = (call, answer) =>
    call === 'ping'
      ? { ...hidden, height: hidden.height - 1 }
      : { ...(answer as object), items: [], to: hidden.height - 1 }
  nodes.node(3).start()
  nodes.connect(3)
  await nodes.ping()
  assert.equal(nodes.node(3).number, 1)
  assert.match(behind(3)!.message, /has seen the policy 2 too late/)
  nodes.node(3).exchange.accept(workspace, nodes.node(3).policies.current(workspace)!.policy.hash)
  assert.equal(behind(3), null)
})

test('a change that the platform presents late to all nodes only comes into force later', async () => {
  const governance = await installed()
  const change = changeOf(governance, { stop: { group: 'treasury' } })
  nodes.now += 3000
  await present(1, change)
  nodes.now += DAY_S - 1
  await nodes.ping()
  assert.deepEqual(nodes.numbers, [1, 1, 1])
  assert.deepEqual([1, 2, 3].map(behind), [null, null, null])
  nodes.now += 1
  assert.deepEqual(nodes.numbers, [2, 2, 2])
})

test('an order waits at most 1.5 seconds for the policies of a silent peer, and later ones do not wait', async (t) => {
  await installed()
  nodes.node(3).start()
  nodes.node(1).answer = () => new Promise(() => {})
  t.mock.timers.enable({ apis: ['setTimeout'] })
  let ended = 0
  const order = async (): Promise<void> => {
    await nodes.node(3).exchange.prepare()
    ended++
  }
  const orders = [order(), order()]
  await setImmediate()
  t.mock.timers.tick(1499)
  await setImmediate()
  assert.equal(ended, 0)
  t.mock.timers.tick(1)
  await Promise.all(orders)
  // No time passes for this one.
  await order()
})

test('logs the pings of a peer whose policies cannot be read once, until they are read again', async () => {
  await installed()
  const { exchange, logged } = nodes.node(3)
  const position = nodes.node(1).exchange.position()!
  let height = position.height
  const ping = async (peer: number, policy: object): Promise<number> => {
    exchange.onPing(peer, { policy })
    // The transport of the test needs no time, so that the read ends before the next task.
    await setImmediate()
    return logged.filter((message) => message === 'the policies of a peer could not be read').length
  }
  const lie = (peer: number): Promise<number> => {
    height++
    return ping(peer, { ...position, height })
  }
  for (let times = 0; times < 5; times++) assert.equal(await lie(1), 1)
  assert.equal(await lie(2), 2)
  assert.equal(await lie(2), 2)
  assert.equal(await ping(1, position), 2)
  assert.equal(await lie(2), 2)
  assert.equal(await lie(1), 3)
  assert.equal(await lie(1), 3)
})

test('a veto that one node has seen keeps a change from coming into force at all nodes', async () => {
  const governance = await installed()
  nodes.cut(3)
  const change = changeOf(governance, { stop: { group: 'treasury' } })
  await present(1, change)
  const { hash } = nodes.node(1).policies.current(workspace)!.next!.policy
  const reference = { at: nodes.now, expires: nodes.now + 3600, next: { number: 2, hash } }
  const veto = statementOf(signedBy(governance, 'carol', 'veto', reference))
  await present(2, veto)
  nodes.now += DAY_S + 3600
  assert.deepEqual(nodes.numbers, [1, 1, 1])
  // Node 3 comes back after the veto has expired; the platform presents the change to it first.
  nodes.connect(3)
  await nodes.ping()
  assert.equal(nodes.node(3).policies.current(workspace)!.next, null)
  await assert.rejects(present(3, change), (error) => {
    assert.ok(error instanceof PolicyError)
    assert.equal(error.code, 'VETOED')
    return true
  })
  nodes.now += 3 * DAY_S
  assert.deepEqual(nodes.numbers, [1, 1, 1])
})

test('attack: a quorum cannot use up the vetoes of one person by variants of a change', async () => {
  const governance = await installed()
  const veto = async (at: number): Promise<void> => {
    const { hash } = nodes.node(2).policies.held(workspace).governance!.next!.policy
    const times = { at: nodes.now, expires: nodes.now + 60, next: { number: 2, hash } }
    const isNew = await present(2, statementOf(signedBy(governance, 'carol', 'veto', times)))
    assert.ok(isNew, `the veto ${at} was refused`)
  }
  const outcomes: (string | null)[] = []
  for (let at = 0; at < 101; at++) {
    nodes.now++
    const match = { action: ['transfer'], assets: 'any' }
    const item = changeOf(governance, { rules: [{ id: `rule-${at}`, effect: 'allow', match }] })
    const outcome = nodes.refusal(item, 1 + (at % 3))
    outcomes.push(outcome)
    await nodes.ping()
    if (outcome === null) await veto(at)
    // A restarted node continues with the same number.
    if (at === 1) nodes.node(3).start()
  }
  assert.deepEqual(outcomes.slice(0, 4), [null, null, null, 'NOT_YET approvals'])
  assert.deepEqual([...new Set(outcomes.slice(3))], ['NOT_YET approvals'])
  nodes.now += 2 * DAY_S
  assert.deepEqual(nodes.numbers, [1, 1, 1])
})

test('a node that was not connected accepts an expired stop, and the end of the stop by both peers', async () => {
  const governance = await installed()
  nodes.cut(3)
  const times = { at: nodes.now, expires: nodes.now + 60 }
  const stop = signedBy(governance, 'carol', 'stop', times)
  await present(1, statementOf(stop))
  nodes.now += 7 * DAY_S
  nodes.connect(3, [1])
  await nodes.ping()
  assert.equal(nodes.node(3).policies.current(workspace)!.stops.length, 1)
  nodes.cut(3)
  const { hash } = nodes.node(1).policies.current(workspace)!.stops[0]!
  const approvals = ['alice', 'bob'].map((by) =>
    textOf(
      signedBy(governance, by, 'resume', { at: nodes.now, expires: nodes.now + 60, stop: hash }),
    ),
  )
  await present(2, { kind: 'resumed', workspace, stop: textOf(stop), approvals })
  assert.equal(nodes.node(1).policies.current(workspace)!.stops.length, 0)
  nodes.now += 3600
  nodes.connect(3, [2])
  await nodes.ping()
  assert.equal(nodes.node(3).policies.current(workspace)!.stops.length, 1)
  nodes.connect(3)
  await nodes.ping()
  assert.equal(nodes.node(3).policies.current(workspace)!.stops.length, 0)
})

test('a restored node accepts the documents that it had from one peer', async () => {
  const governance = await installed()
  nodes.cut(3)
  await present(1, changeOf(governance, { stop: { group: 'treasury' } }))
  nodes.now += DAY_S
  const { hash } = nodes.node(1).policies.current(workspace)!.policy
  const restored = new PolicyNodes()
  restored.now = nodes.now
  const fresh = restored.node(3)
  fresh.store.append('policy-known', {
    workspace,
    first: governance.policy.hash,
    number: 2,
    hash,
  })
  const current = (): number => fresh.policies.current(workspace)?.policy.document.number ?? 0
  assert.throws(current, { code: 'POLICY_BEHIND' })
  // Node 1 of the first installation answers it.
  const one = nodes.node(1)
  restored.node(1).answer = async (_from, call, body) => {
    nodes.connect(3, [1])
    return one.answer(3, call, body)
  }
  await fresh.exchange.hear(1, one.exchange.position())
  assert.equal(current(), 2)
  restored.stop()
})
