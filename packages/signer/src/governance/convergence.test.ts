// Orders of events after which the nodes of a workspace could remain apart, or occupy each other.
import assert from 'node:assert/strict'
import { afterEach, beforeEach, test } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import { canonicalText, type Governance, type SignedStatement } from '@custody/policy'
import { documentWith, keyOf, newKey } from '../../../policy/testing/documents.ts'
import { DAY_S, proposalOf, signedBy, successorOf } from '../../../policy/testing/governance.ts'
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

const installed = (
  fields: object = {},
  keys?: Parameters<PolicyNodes['install']>[1],
): Promise<Governance> => nodes.install(fields, keys)

const statementOf = (signed: SignedStatement): Item => ({
  kind: 'statement',
  workspace,
  signed: JSON.stringify(signed),
})

function changeOf(
  governance: Governance,
  fields: object = { stop: { group: 'treasury' } },
  by: readonly string[] = ['alice', 'bob'],
): ItemOf<'change'> {
  const next = successorOf(governance, fields)
  const proposal = proposalOf(governance, next, by, { at: nodes.now })
  const approvals = proposal.approvals.map((each) => JSON.stringify(each))
  return { kind: 'change', workspace, document: canonicalText(next), possessions: [], approvals }
}

const times = (): { at: number; expires: number } => ({ at: nodes.now, expires: nodes.now + 3600 })

/** Presents an item to a node, and lets all nodes read it whose connections are not cut. */
async function present(node: number, item: Item): Promise<boolean> {
  const isNew = nodes.node(node).exchange.present(item)
  await nodes.ping()
  return isNew
}

const stateOf = (node: number): Governance => nodes.node(node).policies.held(workspace).governance!

/** Hash of the document under which a node signs; null if it signs nothing. */
function signsUnder(node: number): string | null {
  const { policies, exchange } = nodes.node(node)
  try {
    const governance = policies.current(workspace)!
    exchange.assertCurrent(governance)
    return governance.policy.hash
  } catch (error) {
    assert.ok(error instanceof Refusal)
    return null
  }
}

const heights = (): number[] => nodes.all.map(({ store }) => store.record.height)

/** Exchanges messages, and fails if nodes record something again and again. */
async function assertQuiet(): Promise<void> {
  const before = heights()
  for (const { store } of nodes.all) {
    const append = store.appendAll.bind(store)
    let count = 0
    store.appendAll = (entries) => {
      assert.ok(++count < 20, 'the nodes record the same item repeatedly')
      return append(entries)
    }
  }
  await nodes.ping()
  await setImmediate()
  assert.deepEqual(heights(), before)
}

test('nodes that are started after the end of a suspension do not record it again', async () => {
  const governance = await installed()
  const target = { person: 'bob', key: 'k1' }
  await present(1, statementOf(signedBy(governance, 'alice', 'suspend', { ...times(), target })))
  assert.equal(stateOf(3).suspensions.length, 1)
  nodes.now += 8 * DAY_S
  for (const node of nodes.all) node.start()
  await assertQuiet()
  assert.deepEqual(stateOf(3).suspensions, [])
})

test('nodes record the revocation of a key by another key of the same person once', async () => {
  const second = newKey('k2')
  const keysOf = (person: string) =>
    person === 'alice' ? [keyOf(person), second] : [keyOf(person)]
  const people = (documentWith()['people'] as { id: string }[]).map((each) => ({
    ...each,
    keys: keysOf(each.id).map(({ key }) => key),
  }))
  const governance = await installed({ people }, keysOf)
  const target = { person: 'alice', key: 'k2' }
  const item = statementOf(signedBy(governance, 'alice', 'revoke', { ...times(), target }))
  nodes.cut(1)
  assert.equal(nodes.node(1).exchange.present(item), true)
  assert.equal(nodes.node(1).exchange.present(item), false)
  nodes.connect(1)
  await nodes.ping()
  assert.equal(stateOf(3).revoked.size, 1)
  for (const node of nodes.all) node.start()
  await assertQuiet()
})

test('a peer that sends many changes repeatedly causes few verifications', async () => {
  const governance = await installed()
  const change = changeOf(governance)
  // Their approvals are not sufficient, so each could become acceptable later.
  const items = Array.from({ length: 8 }, (_, at) => ({
    height: at + 1,
    seen_at_s: nodes.now,
    is_held: true,
    item: { ...change, approvals: Array.from({ length: at + 1 }, () => change.approvals[0]!) },
  }))
  let height = 1000
  nodes.node(1).altered = (call, answer) => {
    if (call === 'ping') return { generation: 0, height: ++height }
    if (call !== '/peer/policy/items') return answer
    return { generation: 0, to: height, is_last: true, items }
  }
  const { policies } = nodes.node(3)
  const record = policies.record.bind(policies)
  let count = 0
  policies.record = (entry) => {
    if (entry.kind === 'policy-change') count++
    return record(entry)
  }
  for (let round = 0; round < 10; round++) await nodes.ping()
  assert.ok(count <= 8, `${count} verifications`)
  // Another item makes the node judge the few again that wait.
  const before = count
  await present(2, statementOf(signedBy(governance, 'carol', 'stop', times())))
  assert.ok(count - before <= 16, `${count - before} verifications after a stop`)
  assert.equal(stateOf(3).stops.length, 1)
})

test('a peer that sends many statements with wrong signatures causes few verifications', async () => {
  const governance = await installed()
  let height = 0
  let sent = 0
  nodes.node(1).altered = (call, answer) => {
    if (call === 'ping') return { generation: 0, height: 1_000_000 }
    if (call !== '/peer/policy/items') return answer
    const items = Array.from({ length: 200 }, () => ({
      height: ++height,
      seen_at_s: nodes.now,
      is_held: true,
      item: statementOf({
        ...signedBy(governance, 'carol', 'stop', { ...times(), reason: `reason ${++sent}` }),
        signature: `${'A'.repeat(86)}==`,
      }),
    }))
    return { generation: 0, to: height, is_last: false, items }
  }
  const hear = () => nodes.node(3).exchange.hear(1, { generation: 0, height: 1_000_000 })
  const busy = { code: 'TOO_BUSY', message: /Node 1 has sent 200 statements with wrong signatures/ }
  await assert.rejects(hear(), busy)
  await assert.rejects(hear(), busy)
  assert.equal(sent, 200)
  nodes.now += 60
  await assert.rejects(hear(), busy)
  assert.equal(sent, 400)
  // The other peer is read as before.
  nodes.cut(1)
  await present(2, statementOf(signedBy(governance, 'carol', 'stop', times())))
  assert.equal(stateOf(3).stops.length, 1)
})

test('a revocation that a node hears before a late change does not keep it from that change', async () => {
  const governance = await installed()
  nodes.cut(3)
  await present(1, changeOf(governance))
  const target = { person: 'alice', key: 'k1' }
  await present(1, statementOf(signedBy(governance, 'alice', 'revoke', { ...times(), target })))
  nodes.now += DAY_S
  assert.deepEqual(nodes.numbers, [2, 2, 1])
  nodes.connect(3, [1])
  await nodes.ping()
  assert.deepEqual([nodes.node(3).number, stateOf(3).revoked.size], [1, 1])
  nodes.connect(3)
  await nodes.ping()
  assert.deepEqual(nodes.numbers, [2, 2, 2])
  assert.equal(stateOf(3).revoked.size, 1)
  // A restarted node computes the same from its record.
  nodes.node(3).start()
  assert.deepEqual(nodes.numbers, [2, 2, 2])
})

test('one peer cannot make a node accept a change that a revoked key has approved', async () => {
  const governance = await installed()
  const change = changeOf(governance)
  const target = { person: 'alice', key: 'k1' }
  await present(1, statementOf(signedBy(governance, 'alice', 'revoke', { ...times(), target })))
  const sent = { height: 1, seen_at_s: nodes.now, is_held: true, item: change }
  nodes.node(1).altered = (call, answer) =>
    call === 'ping'
      ? { generation: 0, height: 1000 }
      : call === '/peer/policy/items'
        ? { generation: 0, to: 1000, is_last: true, items: [sent] }
        : answer
  await nodes.ping()
  assert.deepEqual([stateOf(2).next, stateOf(3).next], [null, null])
})

test('a late node accepts the next document as soon as time has put the one before in force', async () => {
  const governance = await installed()
  nodes.cut(3)
  const change = changeOf(governance)
  await present(1, change)
  nodes.now += 3000
  // Node 3 gets the change late from the platform, so that it is in force later there.
  nodes.node(3).exchange.present(change)
  nodes.now += DAY_S - 3000
  assert.deepEqual(nodes.numbers, [2, 2, 1])
  await present(1, changeOf(stateOf(1), { stop: { group: 'admins' } }))
  nodes.connect(3, [1])
  await nodes.ping()
  assert.equal(stateOf(3).next!.policy.document.number, 2)
  nodes.now += 3000
  await nodes.ping()
  assert.equal(stateOf(3).next!.policy.document.number, 3)
})

test('the confirmations of two operators let a change act that a person whom it removes has vetoed', async () => {
  const governance = await installed()
  const { people, groups } = governance.policy.document
  await present(
    1,
    changeOf(governance, {
      people: people.filter(({ id }) => id !== 'carol'),
      groups: { ...groups, admins: ['alice', 'bob', 'dan'] },
    }),
  )
  const { number } = stateOf(1).next!.policy.document
  const { hash } = stateOf(1).next!.policy
  const vetoed = { ...times(), next: { number, hash } }
  await present(2, statementOf(signedBy(governance, 'carol', 'veto', vetoed)))
  nodes.now += 2 * DAY_S
  assert.deepEqual(nodes.numbers, [1, 1, 1])
  const confirmed: Item = { kind: 'confirmed', workspace, hash }
  assert.equal(await present(1, confirmed), true)
  assert.equal(await present(1, confirmed), false)
  assert.deepEqual(nodes.numbers, [1, 1, 1])
  // Node 3 hears of both confirmations, and of each one as that of the node that sent it.
  await present(2, confirmed)
  assert.deepEqual(
    [1, 2, 3].map((node) => stateOf(node).policy.document.number),
    [2, 2, 2],
  )
  nodes.node(3).start()
  await nodes.ping()
  assert.deepEqual(nodes.numbers, [2, 2, 2])
})

/** Puts a vetoed change in force at node 3, which hears of the veto too late. */
async function forked(): Promise<Governance> {
  const governance = await installed()
  await present(1, changeOf(governance))
  const { number } = stateOf(1).next!.policy.document
  const { hash } = stateOf(1).next!.policy
  nodes.cut(3)
  const next = { number, hash }
  await present(1, statementOf(signedBy(governance, 'carol', 'veto', { ...times(), next })))
  nodes.now += DAY_S
  nodes.connect(3)
  await nodes.ping()
  assert.deepEqual(nodes.numbers, [1, 1, 2])
  return governance
}

test('a node that was cut off during a veto is refused by the others, which continue', async () => {
  const governance = await forked()
  assert.deepEqual([1, 2].map(signsUnder), [governance.policy.hash, governance.policy.hash])
  assert.throws(() => compare(1, 3), { code: 'POLICY_BEHIND' })
  assert.deepEqual(apart(), [1, 0, 0])
  await follow(3, governance.policy.hash)
  compare(1, 3)
  assert.deepEqual(apart(), [0, 0, 0])
})

/** Lets a node compare its policy with that of another one, as before a signature. */
const compare = (node: number, other: number): void =>
  nodes
    .node(node)
    .exchange.assertSame(workspace, other, stateOf(other).policy.hash, stateOf(node).policy.hash)

/** Number of workspaces of each node whose policy is late, or differs from that of a peer. */
const apart = (): number[] => nodes.all.map(({ exchange }) => exchange.countApart())

/** Lets the operator of a node follow its peers to the document that node 1 or 2 has in force. */
async function follow(node: number, hash: string): Promise<boolean> {
  const isNew = await nodes.node(node).exchange.follow(workspace, hash)
  await nodes.ping()
  return isNew
}

test('a node that was cut off during a veto follows its peers, and has what they recorded', async () => {
  const governance = await forked()
  const { hash } = governance.policy
  // People of the vetoed document propose a successor of it; a person revokes a key, which holds anyway.
  const own = stateOf(3)
  nodes.node(3).exchange.present(changeOf(own, { stop: { group: 'admins' } }))
  const revoked = signedBy(own, 'dan', 'revoke', {
    ...times(),
    target: { person: 'dan', key: 'k1' },
  })
  assert.equal(nodes.node(3).exchange.present(statementOf(revoked)), true)
  const stopped = statementOf(signedBy(governance, 'carol', 'stop', times()))
  await present(1, stopped)
  assert.deepEqual([stateOf(3).next !== null, stateOf(3).stops.length], [true, 0])
  assert.equal(await follow(3, hash), true)
  assert.deepEqual(nodes.numbers, [1, 1, 1])
  assert.deepEqual([1, 2, 3].map(signsUnder), [hash, hash, hash])
  assert.deepEqual([stateOf(3).next, stateOf(3).stops], [null, stateOf(1).stops])
  assert.deepEqual(
    [1, 2, 3].map((node) => stateOf(node).revoked.size),
    [1, 1, 1],
  )
  // The vetoed change cannot come back, and a restarted node computes the same from its record.
  const vetoed = { ...changeOf(governance), approvals: [] }
  assert.throws(() => nodes.node(3).exchange.present(vetoed), { code: 'VETOED' })
  nodes.node(3).start()
  await nodes.ping()
  assert.deepEqual([1, 2, 3].map(signsUnder), [hash, hash, hash])
  assert.equal(await follow(3, hash), false)
  await assertQuiet()
})

test('a node follows only the document that the operator entered and both peers have', async () => {
  const governance = await forked()
  const own = stateOf(3).policy.hash
  const before = nodes.node(3).store.record.height
  const refused = (hash: string, code: string, message: RegExp) =>
    assert.rejects(nodes.node(3).exchange.follow(workspace, hash), { code, message })
  await refused(own, 'OTHER_POLICY', /Node [12] has the policy 1 with hash [0-9a-f]{64} in force/)
  await refused('0'.repeat(64), 'OTHER_POLICY', /Node [12] has the policy 1 with hash/)
  const answers = (chain: unknown) => (call: string, answer: unknown) =>
    call === '/peer/policy/chain' ? { chain } : answer
  const { hash } = governance.policy
  nodes.node(2).altered = answers([])
  await refused(hash, 'OTHER_POLICY', /Node 2 has no policy in force/)
  nodes.node(2).altered = answers(['0'.repeat(64), hash])
  await refused(hash, 'OTHER_POLICY', /had different policies before it/)
  nodes.node(2).altered = answers([1])
  await refused(hash, 'PEER_UNAVAILABLE', /Node 2 answered with an unknown format/)
  for (const node of [1, 2]) nodes.node(node).altered = answers(['1'.repeat(64)])
  await refused('1'.repeat(64), 'OTHER_POLICY', /another first document/)
  nodes.cut(2)
  for (const node of [1, 2]) nodes.node(node).altered = (_call, answer) => answer
  await refused(hash, 'PEER_UNAVAILABLE', /cannot be reached/)
  assert.equal(nodes.node(3).store.record.height, before)
})

test('a node that has seen a change too late follows its peers to it', async () => {
  const governance = await installed()
  nodes.cut(3)
  await present(1, changeOf(governance))
  const { hash } = stateOf(1).next!.policy
  nodes.now += 9 * DAY_S
  await present(1, changeOf(stateOf(1), { stop: { group: 'admins' } }))
  nodes.now += 9 * DAY_S
  nodes.connect(3, [1])
  // Of node 2 it has no word about these changes, so it refuses both, and signs nothing.
  await nodes.ping()
  assert.deepEqual([nodes.node(3).number, signsUnder(3)], [1, null])
  nodes.connect(3)
  nodes.node(2).altered = (call, answer) =>
    call === '/peer/policy/items' ? { ...(answer as object), items: [] } : answer
  const third = stateOf(1).policy.hash
  await nodes.node(3).exchange.follow(workspace, third)
  assert.deepEqual(nodes.numbers, [3, 3, 3])
  assert.deepEqual(
    nodes
      .node(3)
      .policies.held(workspace)
      .chain.map((each) => each.hash),
    [governance.policy.hash, hash, third],
  )
  assert.equal(signsUnder(3), third)
})

test('a change that one node alone has is late at the others also if a key was revoked there', async () => {
  const governance = await installed()
  nodes.cut(1)
  nodes.node(1).exchange.present(changeOf(governance))
  const target = { person: 'alice', key: 'k1' }
  await present(2, statementOf(signedBy(governance, 'alice', 'revoke', { ...times(), target })))
  nodes.now += DAY_S
  assert.equal(nodes.node(1).number, 2)
  nodes.connect(1)
  await nodes.ping()
  // The others cannot have it, but none of the two signs under the document that it replaces.
  assert.deepEqual(nodes.numbers, [2, 1, 1])
  assert.deepEqual([2, 3].map(signsUnder), [null, null])
  assert.deepEqual(apart(), [0, 1, 1])
  // The operator of the node that has it follows the others, which then continue.
  const { hash } = governance.policy
  assert.equal(await follow(1, hash), true)
  assert.deepEqual(nodes.numbers, [1, 1, 1])
  assert.deepEqual([1, 2, 3].map(signsUnder), [hash, hash, hash])
  assert.equal(stateOf(1).revoked.size, 1)
})

test('a peer that claims to have seen a change without its approvals does not stop a node', async () => {
  const governance = await installed()
  const change = changeOf(governance, undefined, ['alice'])
  const target = { person: 'alice', key: 'k1' }
  await present(2, statementOf(signedBy(governance, 'alice', 'revoke', { ...times(), target })))
  const sent = { height: 1, seen_at_s: nodes.now, is_held: true, item: change }
  nodes.node(1).altered = (call, answer) =>
    call === 'ping'
      ? { generation: 0, height: 1000 }
      : call === '/peer/policy/items'
        ? { generation: 0, to: 1000, is_last: true, items: [sent] }
        : answer
  await nodes.ping()
  assert.deepEqual([2, 3].map(signsUnder), [governance.policy.hash, governance.policy.hash])
})

test('a suspension ends seven days after its statement, whenever a node hears of it', async () => {
  const governance = await installed()
  const target = { person: 'bob', key: 'k1' }
  const signed = signedBy(governance, 'alice', 'suspend', {
    at: nodes.now,
    expires: nodes.now + 6 * DAY_S,
    target,
  })
  const ends = nodes.now + 7 * DAY_S
  nodes.cut(3)
  await present(1, statementOf(signed))
  nodes.now += 5 * DAY_S
  nodes.node(3).exchange.present(statementOf(signed))
  nodes.connect(3)
  await nodes.ping()
  for (const node of [1, 2, 3])
    assert.deepEqual(
      stateOf(node).suspensions.map(({ ends_at_s }) => ends_at_s),
      [ends],
    )
  nodes.now = ends
  for (const node of nodes.all) node.start()
  await nodes.ping()
  assert.deepEqual(stateOf(2).suspensions, [])
})

test('a node that was cut off during a veto converges after a restoration from an earlier backup', async () => {
  const governance = await forked()
  nodes.node(3).lose()
  const { hash } = governance.policy
  const known = { workspace, first: hash, number: 1, hash, chain: [hash] }
  nodes.node(3).store.append('policy-known', known)
  await nodes.ping()
  await nodes.ping()
  assert.deepEqual(nodes.numbers, [1, 1, 1])
  assert.deepEqual([1, 2, 3].map(signsUnder), [hash, hash, hash])
})

test('if one node alone has seen a change in time, the same people can approve it again', async () => {
  const governance = await installed()
  nodes.cut(1)
  const change = changeOf(governance)
  nodes.node(1).exchange.present(change)
  nodes.now += DAY_S
  nodes.connect(1)
  await nodes.ping()
  assert.deepEqual(nodes.numbers, [2, 1, 1])
  assert.deepEqual([2, 3].map(signsUnder), [null, null], 'they know the change as too late')
  // The same document, approved again for a later time.
  const again = changeOf(governance)
  assert.equal(again.document, change.document)
  assert.equal(await present(2, again), true)
  nodes.now += DAY_S
  await nodes.ping()
  assert.deepEqual(nodes.numbers, [2, 2, 2])
  const { hash } = stateOf(1).policy
  assert.deepEqual([1, 2, 3].map(signsUnder), [hash, hash, hash])
})
