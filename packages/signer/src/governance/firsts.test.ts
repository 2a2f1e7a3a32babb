import assert from 'node:assert/strict'
import { afterEach, beforeEach, test } from 'node:test'
import { canonicalText } from '@custody/policy'
import { policyWith } from '../../../policy/testing/documents.ts'
import { possessionsOf } from '../../../policy/testing/governance.ts'
import { PolicyNodes, type PolicyNode } from '../../testing/policy-nodes.ts'
import { uninstallPolicy } from '../operator/policy.ts'
import { FirstDocuments } from './firsts.ts'
import { sizeOfItem, type ItemOf } from './items.ts'

let nodes: PolicyNodes
beforeEach(() => {
  nodes = new PolicyNodes()
})
afterEach(() => {
  nodes.stop()
})

function first(workspace = 'acme'): ItemOf<'first'> {
  const { document } = policyWith([], { workspace })
  const possessions = possessionsOf(document).map((each) => JSON.stringify(each))
  return { kind: 'first', workspace, document: canonicalText(document), possessions }
}

/** What node 3 computes from the first documents that its peers send. */
const firstsAt = ({ policies, store }: PolicyNode, limits?: object): FirstDocuments =>
  new FirstDocuments({ node: 3, policies, store }, limits as never)

test('a peer that sends the first document with damaged proofs does not prevent it', () => {
  const item = first()
  const damaged = { ...item, possessions: item.possessions.slice(1) }
  for (const [one, other] of [
    [damaged, item],
    [item, damaged],
  ] as const) {
    const node = nodes.node(3)
    node.lose()
    const firsts = firstsAt(node)
    assert.equal(firsts.add(1, one), false)
    assert.equal(node.number, 0)
    assert.equal(firsts.add(2, other), true)
    assert.equal(node.number, 1)
    // Another copy changes nothing.
    assert.equal(firsts.add(1, damaged), false)
  }
  // If both copies are damaged, the fault is stated.
  const node = nodes.node(3)
  node.lose()
  const firsts = firstsAt(node)
  firsts.add(1, damaged)
  assert.throws(() => firsts.add(2, damaged), { code: 'POSSESSION' })
  assert.equal(node.number, 0)
})

test('a peer that sends many first documents does not displace those of the other', () => {
  const limits = { workspaces: 2, characters: 3 * sizeOfItem(first('w-1')) }
  const node = nodes.node(3)
  const firsts = firstsAt(node, limits)
  for (const workspace of ['w-1', 'w-2', 'w-3']) firsts.add(1, first(workspace))
  assert.deepEqual(
    ['w-1', 'w-2', 'w-3'].map((workspace) => firsts.of(workspace).map((each) => each.node)),
    [[1], [1], []],
  )
  firsts.add(2, first('w-3'))
  assert.deepEqual(
    firsts.of('w-3').map((each) => each.node),
    [2],
  )
  // The size is limited too; a document that is in force needs no room.
  const small = firstsAt(node, { ...limits, characters: sizeOfItem(first('w-1')) })
  assert.equal(small.add(1, first('w-1')), false)
  small.add(1, first('w-2'))
  assert.deepEqual(small.of('w-2'), [])
  assert.equal(small.add(2, first('w-1')), true)
  small.add(2, first('w-1'))
  small.add(1, first('w-1'))
  small.add(1, first('w-2'))
  assert.deepEqual(
    small.of('w-2').map((each) => each.node),
    [1],
  )
  assert.equal(small.add(2, first('w-2')), true)
})

test('a policy that is removed at all nodes does not come back before an operator enters it', async () => {
  const item = first()
  for (const node of [1, 2]) nodes.node(node).exchange.type(item)
  await nodes.ping()
  await nodes.ping()
  assert.deepEqual(nodes.numbers, [1, 1, 1])
  assert.equal(nodes.node(3).exchange.remove('acme'), true)
  assert.equal(nodes.node(3).exchange.remove('acme'), false)
  assert.equal(nodes.node(3).exchange.remove('other'), false)
  await nodes.ping()
  assert.deepEqual(nodes.numbers, [1, 1, 0])
  for (const node of [1, 2]) nodes.node(node).exchange.remove('acme')
  await nodes.ping()
  for (const node of nodes.all) node.start()
  await nodes.ping()
  await nodes.ping()
  assert.deepEqual(nodes.numbers, [0, 0, 0])
  for (const { exchange, policies } of nodes.all) {
    assert.deepEqual(exchange.firstsOf('acme'), [])
    assert.equal(policies.current('acme'), null)
    assert.deepEqual(policies.forBackup(), [])
  }
  // Two operators enter it again; the third node, which removed it, needs its own operator.
  for (const node of [1, 2]) nodes.node(node).exchange.type(item)
  await nodes.ping()
  await nodes.ping()
  assert.deepEqual(nodes.numbers, [1, 1, 0])
  nodes.node(3).exchange.type(item)
  await nodes.ping()
  assert.deepEqual(nodes.numbers, [1, 1, 1])
})

test('a policy is not removed in another mode than local', async () => {
  const { store, policies, exchange } = nodes.node(1)
  exchange.type(first())
  const parts = { config: { mode: 'mainnet', node: 1 }, store, governance: { policies, exchange } }
  const body = { workspace: 'acme' }
  await assert.rejects(uninstallPolicy(parts as never, body), { code: 'NOT_ALLOWED' })
  assert.equal(exchange.firstsOf('acme').length, 1)
  parts.config.mode = 'local'
  const { is_new } = (await uninstallPolicy(parts as never, body)) as { is_new: boolean }
  assert.deepEqual([is_new, exchange.firstsOf('acme')], [true, []])
})
