// A restored node receives items that its peers recorded long ago, under earlier documents, and is
// started again. Ends of stops name stops, which are verified too.
import assert from 'node:assert/strict'
import { afterEach, beforeEach, test } from 'node:test'
import {
  enrolmentApproval,
  factsOf,
  statementHash,
  type Governance,
  type SignedStatement,
  type Statement,
} from '@custody/policy'
import { actWith, newKey } from '../../../policy/testing/documents.ts'
import { DAY_S, signedBy } from '../../../policy/testing/governance.ts'
import { registry } from '../../../policy/testing/registry.ts'
import { signWith } from '../../../policy/testing/statements.ts'
import { PolicyNodes } from '../../testing/policy-nodes.ts'
import type { Item } from './items.ts'
import { approvalsOnRecord } from './standing.ts'

const workspace = 'acme'
let nodes: PolicyNodes
beforeEach(() => {
  nodes = new PolicyNodes()
})
afterEach(() => {
  nodes.stop()
})

const times = (): { at: number; expires: number } => ({ at: nodes.now, expires: nodes.now + 3600 })
const text = (signed: SignedStatement): string => JSON.stringify(signed)
const statementOf = (signed: SignedStatement): Item => ({
  kind: 'statement',
  workspace,
  signed: text(signed),
})
const stateOf = (node: number): Governance => nodes.node(node).policies.held(workspace).governance!

/** Presents an item to node 1, and lets all nodes read it. */
async function present(item: Item): Promise<void> {
  assert.equal(nodes.node(1).exchange.present(item), true)
  await nodes.ping()
}

const rule = actWith({
  id: '11111111-1111-4111-8111-111111111111',
  action: 'forward',
  standing: { min_amount: 1n, daily_cap: 10n, ends_at: 2_000_000_000 },
})
const facts = {
  api_key: 'key-1',
  fingerprint: 'ab'.repeat(32),
  role: 'full',
  sub_account: 'main',
} as const

/** Approvals by members of treasury under the document in force, of a rule or of an enrolment. */
function approved(meaning: object): Item {
  const approvals = ['dan', 'erin'].map((by) =>
    text(signedBy(nodes.inForce(), by, 'approval', { ...times(), ...meaning })),
  )
  return { kind: 'approved', workspace, approvals }
}
const ofRule = (): Item => {
  const { action, id, subject } = rule
  return approved({ action, id, subject, facts: factsOf(rule, registry) })
}
const ofEnrolment = (): Item => approved(enrolmentApproval(nodes.inForce().policy, facts))

/** Loses the record of a node, and restores it from a backup that was made just before. */
async function restore(node: number): Promise<void> {
  const each = nodes.node(node)
  const known = each.policies.forBackup()
  each.lose()
  each.store.appendAll(known.map((body) => ({ kind: 'policy-known' as const, body })))
  await nodes.ping()
  await nodes.ping()
}

/** What node 3 holds, which must be the same after its next start. */
async function assertReadAgain(): Promise<void> {
  nodes.node(3).assertAsRecorded()
  nodes.node(3).start()
  await nodes.ping()
  assert.deepEqual(nodes.numbers, [2, 2, 2])
  assert.ok(!nodes.node(3).logged.some((line) => line.includes('cannot be read')))
}

test('a restored node reads approvals under each document again after its next start', async () => {
  await nodes.install({ enrolment: { approvals: [{ group: 'treasury', k: 2 }] } })
  await present(ofRule())
  await present(ofEnrolment())
  nodes.now += DAY_S
  await nodes.change({ stop: { group: 'treasury' } })
  await present(ofRule())
  await present(ofEnrolment())
  nodes.now += 10 * DAY_S
  await restore(3)
  const { approved: rules, enrolments } = nodes.node(3).policies.held(workspace)
  assert.deepEqual(
    [...rules.values(), ...enrolments.values()].map(({ length }) => length),
    [2, 2],
  )
  await assertReadAgain()
  const held = nodes.node(3).policies.held(workspace)
  assert.deepEqual(
    approvalsOnRecord(held, held.approved, rule).map((all) => all.map(({ by }) => by)),
    [
      ['dan', 'erin'],
      ['dan', 'erin'],
    ],
  )
})

test('a restored node reads an expired stop of a later document again after its next start', async () => {
  await nodes.install()
  await nodes.change({ stop: { group: 'treasury' } })
  await present(statementOf(signedBy(stateOf(1), 'dan', 'stop', times())))
  nodes.now += 10 * DAY_S
  await restore(3)
  assert.deepEqual(stateOf(3).stops, stateOf(1).stops)
  assert.equal(stateOf(3).stops.length, 1)
  await assertReadAgain()
})

test('a restored node reads the expired end of a stop again after its next start', async () => {
  await nodes.install()
  await nodes.change({ resume: { approvals: [{ group: 'treasury', k: 2 }] } })
  const stopped = signedBy(stateOf(1), 'alice', 'stop', times())
  await present(statementOf(stopped))
  nodes.now += 60
  await present(endOf(stopped, ['dan', 'erin']))
  nodes.now += 10 * DAY_S
  await restore(3)
  assert.deepEqual([stateOf(3).stops, stateOf(3).resumedUpTo], [[], stateOf(1).resumedUpTo])
  await assertReadAgain()
})

/** The end of a stop, which people have approved. */
function endOf(stopped: SignedStatement, by: readonly string[] = ['alice', 'bob']): Item {
  const { hash } = hashed(stopped.statement)
  const approvals = by.map((person) =>
    text(signedBy(nodes.inForce(), person, 'resume', { ...times(), stop: hash })),
  )
  return { kind: 'resumed', workspace, stop: text(stopped), approvals }
}
const hashed = (statement: Statement): { hash: string } => ({ hash: statementHash(statement) })

test('attack: the end of a post-dated stop is refused, so later stops hold', async () => {
  const governance = await nodes.install()
  await present(statementOf(signedBy(governance, 'carol', 'stop', times())))
  const at = 9_999_990_000
  const later = signedBy(governance, 'carol', 'stop', { at, expires: at + 3600 })
  assert.equal(nodes.refusal(endOf(later)), 'NOT_YET stop.at')
  const soon = nodes.now + 61
  const aMinute = signedBy(governance, 'carol', 'stop', { at: soon, expires: soon + 3600 })
  assert.equal(nodes.refusal(endOf(aMinute)), 'NOT_YET stop.at')
  nodes.now += 100
  await present(statementOf(signedBy(governance, 'bob', 'stop', times())))
  assert.deepEqual(
    stateOf(3).stops.map(({ by }) => by),
    ['bob'],
  )
})

test('attack: the end of a stop that its signer did not sign or may not sign is refused', async () => {
  const governance = await nodes.install()
  const forged = signWith(newKey('k1'), signedBy(governance, 'carol', 'stop', times()).statement)
  assert.equal(nodes.refusal(endOf(forged)), 'SIGNATURE stop.signature')
  const { signature: _signature, ...unsigned } = signedBy(governance, 'carol', 'stop', times())
  assert.equal(nodes.refusal(endOf(unsigned)), 'SIGNATURE stop.signature')
  const byDan = signedBy(governance, 'dan', 'stop', times())
  assert.equal(nodes.refusal(endOf(byDan)), 'NOT_ALLOWED stop.by')
  const elsewhere = signedBy(governance, 'carol', 'stop', { ...times(), workspace: 'beta' })
  assert.equal(nodes.refusal(endOf(elsewhere)), 'OTHER_WORKSPACE stop.workspace')
  assert.deepEqual(stateOf(1).resumedUpTo, new Map())
})

test('a node accepts the stop of a person who is new in a document that it does not have in force yet', async () => {
  const governance = await nodes.install()
  nodes.cut(3)
  const { people, groups } = governance.policy.document
  const gina = newKey('k1')
  await nodes.change(
    {
      people: [...people, { id: 'gina', name: 'Gina', api_keys: [], keys: [gina.key] }],
      groups: { ...groups, admins: [...groups['admins']!, 'gina'] },
    },
    (person) => (person === 'gina' ? [gina] : []),
  )
  // Node 3 hears of the stop from node 1 only, and before it has the document in force.
  nodes.cut(1, [2])
  await present(statementOf(signedBy(stateOf(1), 'gina', 'stop', times(), gina)))
  nodes.connect(3, [1])
  await nodes.ping()
  assert.deepEqual([stateOf(3).policy.document.number, stateOf(3).stops.length], [1, 0])
  nodes.connect(3)
  await nodes.ping()
  assert.deepEqual([stateOf(3).policy.document.number, stateOf(3).stops.length], [2, 1])
})

test('peers read the policies of a node that cannot read the one of another workspace', async () => {
  const governance = await nodes.install()
  nodes.cut(1)
  const other = { workspace: 'beta', document: '{}', possessions: [], approvals: [] }
  nodes.node(1).store.append('policy-change', { ...other, at_s: nodes.now, witnesses: null })
  nodes.node(1).exchange.present(statementOf(signedBy(governance, 'carol', 'stop', times())))
  assert.throws(() => nodes.node(1).policies.held('beta'), { code: 'RECORD_UNREADABLE' })
  nodes.connect(1)
  await nodes.ping()
  assert.deepEqual([stateOf(2).stops.length, stateOf(3).stops.length], [1, 1])
})
