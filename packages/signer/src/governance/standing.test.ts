import assert from 'node:assert/strict'
import { afterEach, beforeEach, test } from 'node:test'
import { factsOf, type Act, type Governance } from '@custody/policy'
import { actWith, keyOf, newKey } from '../../../policy/testing/documents.ts'
import { DAY_S, signedBy } from '../../../policy/testing/governance.ts'
import { registry } from '../../../policy/testing/registry.ts'
import { signWith } from '../../../policy/testing/statements.ts'
import { PolicyNodes } from '../../testing/policy-nodes.ts'
import type { Item, ItemOf } from './items.ts'
import { approvalsOnRecord } from './standing.ts'

/** Approvals of standing rules on the records of three nodes, with real records and policies. */
const workspace = 'acme'
let nodes: PolicyNodes
beforeEach(() => {
  nodes = new PolicyNodes()
})
afterEach(() => {
  nodes.stop()
})

const RULE = '11111111-1111-4111-8111-111111111111'
const standing = { min_amount: 1n, daily_cap: 10n, ends_at: 2_000_000_000 }
const forwardOf = (fields: Partial<Act> = {}): Act =>
  actWith({ id: RULE, action: 'forward', standing, ...fields })

const installed = (fields: object = {}): Promise<Governance> => nodes.install(fields)
const inForce = (node = 1): Governance => nodes.inForce(node)

/** Approvals of a rule by people, signed now under the document in force. */
function approved(people: readonly string[], act = forwardOf(), fields: object = {}): Item {
  const governance = inForce()
  const times = { at: nodes.now, expires: nodes.now + 3600 }
  const { id, subject, action } = act
  const meaning = { action, id, subject, facts: factsOf(act, registry) }
  const approvals = people.map((by) =>
    JSON.stringify(signedBy(governance, by, 'approval', { ...times, ...meaning, ...fields })),
  )
  return { kind: 'approved', workspace, approvals }
}

/** People whose approvals of a rule a node has on record, by record, the latest first. */
function onRecord(node: number, act = forwardOf()): string[][] {
  const held = nodes.node(node).policies.held(workspace)
  return approvalsOnRecord(held, held.approved, act).map((all) => all.map(({ by }) => by))
}

const everywhere = (expected: string[][], act?: Act): void => {
  for (const node of [1, 2, 3]) assert.deepEqual(onRecord(node, act), expected, `node ${node}`)
}

const refusal = (item: Item, node = 1): string | null => nodes.refusal(item, node)

test('approvals that one node was shown reach all nodes, and stay after a restart', async () => {
  await installed()
  nodes.node(2).exchange.present(approved(['dan', 'erin']))
  await nodes.ping()
  everywhere([['dan', 'erin']])
  // Their times have passed, and the nodes are started again.
  nodes.now += 30 * DAY_S
  for (const node of nodes.all) node.start()
  await nodes.ping()
  everywhere([['dan', 'erin']])
  const [[approval] = []] = approvalsOnRecord(
    nodes.node(3).policies.held(workspace),
    nodes.node(3).policies.held(workspace).approved,
    forwardOf(),
  )
  assert.equal(approval!.recorded_at, nodes.now - 30 * DAY_S)
})

test('approvals at a node that ends before it could inform its peers reach them after its start', async () => {
  await installed()
  nodes.cut(1)
  nodes.node(1).exchange.present(approved(['dan', 'erin']))
  nodes.node(1).start()
  assert.deepEqual([onRecord(1), onRecord(2)], [[['dan', 'erin']], []])
  nodes.connect(1)
  await nodes.ping()
  everywhere([['dan', 'erin']])
})

test('records the same approvals, or a part of them, once', async () => {
  await installed()
  const item = approved(['dan', 'erin'])
  const heights = () => nodes.all.map(({ store }) => store.record.height)
  nodes.node(1).exchange.present(item)
  await nodes.ping()
  const before = heights()
  assert.equal(nodes.node(3).exchange.present(item), false)
  const [part] = (item as ItemOf<'approved'>).approvals
  assert.equal(
    nodes.node(2).exchange.present({ kind: 'approved', workspace, approvals: [part!] }),
    false,
  )
  for (let times = 0; times < 3; times++) await nodes.ping()
  assert.deepEqual(heights(), before)
})

test('refuses what is not an approval of one forwarding rule by keys of the document in force', async () => {
  await installed()
  const two = approved(['dan', 'erin']) as ItemOf<'approved'>
  const other = approved(['erin'], forwardOf({ id: `${RULE.slice(0, -1)}2` })) as ItemOf<'approved'>
  const mixed = { ...two, approvals: [two.approvals[0]!, other.approvals[0]!] }
  assert.equal(refusal(mixed), 'OTHER_STATEMENT approvals[1]')
  assert.equal(refusal(approved(['dan'], actWith())), 'SHAPE approvals[0]')
  assert.equal(
    refusal(approved(['dan'], forwardOf(), { decision: 'reject' })),
    'SHAPE approvals[0]',
  )
  const expired = { at: nodes.now - 100, expires: nodes.now }
  assert.equal(refusal(approved(['dan'], forwardOf(), expired)), 'EXPIRED expires')
  const policy = { number: 1, hash: '12'.repeat(32) }
  assert.equal(refusal(approved(['dan'], forwardOf(), { policy })), 'OTHER_POLICY policy')
  const forged = signWith(newKey('k1'), JSON.parse(two.approvals[0]!).statement)
  assert.equal(refusal({ ...two, approvals: [JSON.stringify(forged)] }), 'SIGNATURE signature')
  everywhere([])
})

test('approvals hold for the rule that was approved, and for no other', async () => {
  await installed()
  nodes.node(1).exchange.present(approved(['dan', 'erin']))
  await nodes.ping()
  for (const fields of [
    { id: `${RULE.slice(0, -1)}2` },
    { subject: '12'.repeat(32) },
    { standing: { ...standing, daily_cap: 11n } },
    { to: { address: 'bc1qother', tag: null, own: null } },
    { action: 'transfer', standing: null } as const,
  ])
    everywhere([], forwardOf(fields))
  // What one forward moves is not approved.
  everywhere([['dan', 'erin']], forwardOf({ amount: 7n, step: 'another' }))
})

test('a node that was away accepts expired approvals from both peers, and from one alone never', async () => {
  await installed()
  nodes.cut(3)
  nodes.node(1).exchange.present(approved(['dan', 'erin']))
  await nodes.ping()
  const recordedAt = nodes.now
  nodes.now += DAY_S
  nodes.connect(3, [1])
  await nodes.ping()
  assert.deepEqual(onRecord(3), [])
  nodes.connect(3)
  await nodes.ping()
  everywhere([['dan', 'erin']])
  const held = nodes.node(3).policies.held(workspace)
  assert.equal(approvalsOnRecord(held, held.approved, forwardOf())[0]![0]!.recorded_at, recordedAt)
})

test('a node that was away during a change of the document accepts the approvals from before it', async () => {
  await installed()
  nodes.cut(3)
  nodes.node(1).exchange.present(approved(['dan', 'erin']))
  await nodes.ping()
  await nodes.change({ stop: { group: 'treasury' } })
  nodes.connect(3)
  await nodes.ping()
  await nodes.ping()
  assert.deepEqual(nodes.numbers, [2, 2, 2])
  everywhere([['dan', 'erin']])
})

test('one hostile peer cannot make a node accept approvals after they have expired', async () => {
  await installed()
  const item = approved(['dan', 'erin'])
  nodes.now += DAY_S
  const { altered } = nodes.node(1)
  nodes.node(1).altered = (call) =>
    call === 'ping'
      ? { generation: 0, height: 99 }
      : {
          generation: 0,
          to: 99,
          is_last: true,
          items: [{ height: 99, seen_at_s: nodes.now - DAY_S, is_held: true, item }],
        }
  await nodes.ping()
  assert.deepEqual([onRecord(2), onRecord(3)], [[], []])
  nodes.node(1).altered = altered
})

test('a node with an empty record reads the approvals from both peers', async () => {
  await installed()
  nodes.node(1).exchange.present(approved(['dan', 'erin']))
  await nodes.ping()
  await nodes.change({ stop: { group: 'treasury' } })
  nodes.node(3).lose()
  await nodes.ping()
  await nodes.ping()
  assert.deepEqual(onRecord(3), [['dan', 'erin']])
})

test('an approval ends for good with the first document that does not list its key', async () => {
  await installed()
  nodes.node(1).exchange.present(approved(['dan', 'erin']))
  await nodes.ping()
  const { people, groups } = inForce().policy.document
  await nodes.change({
    people: people.filter(({ id }) => id !== 'erin'),
    groups: { ...groups, treasury: ['dan', 'frank'] },
  })
  everywhere([['dan']])
  // The same key is listed again.
  await nodes.change({ people, groups }, (person) => (person === 'erin' ? [keyOf('erin')] : []))
  assert.deepEqual(nodes.numbers, [3, 3, 3])
  everywhere([['dan']])
  nodes.node(2).exchange.present(approved(['dan', 'erin']))
  await nodes.ping()
  everywhere([['dan', 'erin'], ['dan']])
})

test('a key with the same ID in place of another one does not continue its approvals', async () => {
  await installed()
  nodes.node(1).exchange.present(approved(['dan', 'erin']))
  await nodes.ping()
  const next = newKey('k1')
  const people = inForce().policy.document.people.map((person) =>
    person.id === 'erin' ? { ...person, keys: [next.key] } : person,
  )
  await nodes.change({ people }, (person) => (person === 'erin' ? [next] : []))
  assert.deepEqual(nodes.numbers, [2, 2, 2])
  everywhere([['dan']])
})

test('a suspended key approves no rule', async () => {
  await installed()
  const signed = JSON.stringify(
    signedBy(inForce(), 'alice', 'suspend', {
      at: nodes.now,
      expires: nodes.now + 3600,
      target: { person: 'erin', key: 'k1' },
    }),
  )
  nodes.node(1).exchange.present({ kind: 'statement', workspace, signed })
  assert.equal(refusal(approved(['dan', 'erin'])), 'KEY_SUSPENDED key')
  assert.equal(refusal(approved(['dan'])), null)
})

test('a peer can add a limited number of records about a rule, which leaves room for those of others', async () => {
  await installed()
  // Each approval is signed by a person, so only people can make so many.
  for (let second = 1; second <= 64; second++) {
    assert.equal(refusal(approved(['dan'], forwardOf(), { expires: nodes.now + second })), null)
  }
  assert.equal(refusal(approved(['dan', 'erin'])), 'NOT_ALLOWED approvals')
  await nodes.ping()
  nodes.node(2).exchange.present(approved(['dan', 'erin']))
  await nodes.ping()
  assert.deepEqual(onRecord(1)[0], ['dan', 'erin'])
})
