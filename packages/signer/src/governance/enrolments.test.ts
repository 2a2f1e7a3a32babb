import assert from 'node:assert/strict'
import { afterEach, beforeEach, test } from 'node:test'
import {
  enrolmentApproval,
  PolicyError,
  type EnrolmentFacts,
  type Governance,
} from '@custody/policy'
import { fingerprintOfKey } from '@custody/request-auth'
import { newKey } from '../../../policy/testing/documents.ts'
import { DAY_S, signedBy } from '../../../policy/testing/governance.ts'
import { signWith } from '../../../policy/testing/statements.ts'
import { rsaPair } from '../../../request-auth/testing/support.ts'
import { PolicyNodes } from '../../testing/policy-nodes.ts'
import type { Enrolment } from '../store/state-content.ts'
import { assertApproved, lacksApproval } from './enrolments.ts'
import type { Item, ItemOf } from './items.ts'

/** Approvals of enrolments on the records of three nodes, with real records and policies. */
const workspace = 'acme'
let nodes: PolicyNodes
beforeEach(() => {
  nodes = new PolicyNodes()
})
afterEach(() => {
  nodes.stop()
})

const quorum = (k: number) => ({ approvals: [{ group: 'treasury', k }] })
const { publicKey } = rsaPair()
const facts: EnrolmentFacts = {
  api_key: 'key-1',
  fingerprint: fingerprintOfKey(publicKey),
  role: 'full',
  sub_account: 'main',
}
const enrolled = (fields: Partial<Enrolment> = {}): Enrolment => ({
  api_key: 'key-1',
  public_key_pem: publicKey.export({ type: 'spki', format: 'pem' }) as string,
  role: 'full',
  workspace,
  sub_account: 1,
  sub_account_name: 'main',
  approval_policy: 1,
  revoked: false,
  ...fields,
})

const installed = (fields: object = { enrolment: quorum(2) }): Promise<Governance> =>
  nodes.install(fields)
const inForce = (node = 1): Governance => nodes.inForce(node)

/** Approvals of an enrolment by people, signed now under the document in force. */
function approved(
  people: readonly string[],
  shown: Partial<EnrolmentFacts> = {},
  fields: object = {},
): ItemOf<'approved'> {
  const governance = inForce()
  const times = { at: nodes.now, expires: nodes.now + 3600 }
  const meaning = enrolmentApproval(governance.policy, { ...facts, ...shown })
  const approvals = people.map((by) =>
    JSON.stringify(signedBy(governance, by, 'approval', { ...times, ...meaning, ...fields })),
  )
  return { kind: 'approved', workspace, approvals }
}

/** Whether the API key signs, by node. */
const signs = (fields: Partial<Enrolment> = {}): boolean[] =>
  nodes.all.map(({ policies }) => !lacksApproval(policies.held(workspace), enrolled(fields)))

const ALL = [true, true, true]
const NONE = [false, false, false]

const refusal = (item: Item, node = 1): string | null => nodes.refusal(item, node)

/** Presents an item to node 1, and returns the text of its refusal without the path. */
function refusalText(item: Item): string {
  try {
    nodes.node(1).exchange.present(item)
  } catch (error) {
    assert.ok(error instanceof PolicyError)
    return error.message.replace(`${error.path}: `, '').replace(`${error.path} `, '')
  }
  return ''
}

test('an enrolment signs nothing until its approvals are at the node, and then after restarts too', async () => {
  await installed()
  assert.deepEqual(signs(), NONE)
  // Enrolments from before the policy require nothing.
  assert.deepEqual(signs({ approval_policy: undefined }), ALL)
  nodes.cut(1)
  nodes.node(1).exchange.present(approved(['dan', 'erin']))
  assert.deepEqual(signs(), [true, false, false])
  nodes.node(1).start()
  nodes.connect(1)
  await nodes.ping()
  assert.deepEqual(signs(), ALL)
  nodes.now += 30 * DAY_S
  for (const node of nodes.all) node.start()
  await nodes.ping()
  assert.deepEqual(signs(), ALL)
})

test('attack: the approvals of an enrolment hold for no other key, role, sub-account or API key', async () => {
  await installed()
  nodes.node(1).exchange.present(approved(['dan', 'erin']))
  await nodes.ping()
  const other = rsaPair().publicKey.export({ type: 'spki', format: 'pem' })
  for (const fields of [
    { api_key: 'key-2' },
    { public_key_pem: other as string },
    { role: 'read-only' },
    { sub_account_name: 'other' },
    { sub_account_name: null },
    // Enrolled under a later policy.
    { approval_policy: 2 },
  ] as const)
    assert.deepEqual(signs(fields), NONE, JSON.stringify(fields))
  assert.deepEqual(signs(), ALL)
})

test('attack: refuses too few people, other statements, forged and expired ones, and records nothing', async () => {
  await installed()
  const [dan] = approved(['dan']).approvals
  const two = approved(['dan', 'erin'])
  const heights = nodes.all.map(({ store }) => store.record.height)
  const mixed = approved(['erin'], { role: 'read-only' })
  const forged = signWith(newKey('k1'), JSON.parse(two.approvals[1]!).statement)
  const tries: [string, Item, string][] = [
    ['one person', approved(['dan']), 'NOT_ALLOWED approvals'],
    ['the same person twice', { ...two, approvals: [dan!, dan!] }, 'NOT_ALLOWED approvals'],
    ['another group', approved(['dan', 'alice']), 'NOT_ALLOWED approvals'],
    [
      'two enrolments',
      { ...two, approvals: [dan!, ...mixed.approvals] },
      'OTHER_STATEMENT approvals[1]',
    ],
    ['rejections', approved(['dan', 'erin'], {}, { decision: 'reject' }), 'SHAPE approvals[0]'],
    ['forged', { ...two, approvals: [dan!, JSON.stringify(forged)] }, 'SIGNATURE signature'],
    [
      'expired',
      approved(['dan', 'erin'], {}, { at: nodes.now - 100, expires: nodes.now }),
      'EXPIRED expires',
    ],
    [
      'another policy',
      approved(['dan', 'erin'], {}, { policy: { number: 1, hash: '12'.repeat(32) } }),
      'OTHER_POLICY policy',
    ],
    ['another ID', approved(['dan', 'erin'], {}, { id: 'key-2' }), 'SHAPE statement.id'],
    [
      'another subject',
      approved(['dan', 'erin'], {}, { subject: '12'.repeat(32) }),
      'SHAPE statement.subject',
    ],
  ]
  for (const [name, item, code] of tries) assert.equal(refusal(item), code, name)
  await nodes.ping()
  assert.deepEqual(
    nodes.all.map(({ store }) => store.record.height),
    heights,
  )
  assert.deepEqual(signs(), NONE)
})

test('refuses approvals if the policy requires none', async () => {
  await installed({})
  assert.equal(refusal(approved(['dan', 'erin'])), 'NOT_ALLOWED approvals')
})

test('records an approved enrolment once, whichever people approved it', async () => {
  await installed()
  nodes.node(1).exchange.present(approved(['dan', 'erin']))
  await nodes.ping()
  const heights = (): number[] => nodes.all.map(({ store }) => store.record.height)
  const before = heights()
  assert.equal(nodes.node(3).exchange.present(approved(['dan', 'erin'])), false)
  assert.equal(nodes.node(2).exchange.present(approved(['erin', 'frank'])), false)
  for (let times = 0; times < 3; times++) await nodes.ping()
  assert.deepEqual(heights(), before)
})

test('suspensions and changes of the document after the approval do not end it', async () => {
  await installed()
  nodes.node(1).exchange.present(approved(['dan', 'erin']))
  const target = { person: 'erin', key: 'k1' }
  const times = { at: nodes.now, expires: nodes.now + 3600 }
  const signed = JSON.stringify(signedBy(inForce(), 'alice', 'suspend', { ...times, target }))
  nodes.node(1).exchange.present({ kind: 'statement', workspace, signed })
  assert.equal(refusal(approved(['dan', 'erin'], { api_key: 'key-2' })), 'KEY_SUSPENDED key')
  await nodes.ping()
  assert.deepEqual(signs(), ALL)
  const { people, groups } = inForce().policy.document
  await nodes.change({
    people: people.filter(({ id }) => id !== 'erin'),
    groups: { ...groups, treasury: ['dan', 'frank'] },
  })
  assert.deepEqual(nodes.numbers, [2, 2, 2])
  assert.deepEqual(signs(), ALL)
})

test('approvals from before a change of the document are refused after it', async () => {
  await installed()
  const item = approved(['dan', 'erin'], {}, { expires: nodes.now + 3 * DAY_S })
  await nodes.change({ enrolment: quorum(3) })
  assert.equal(refusal(item), 'OTHER_POLICY policy')
  assert.equal(refusal(approved(['dan', 'erin'])), 'NOT_ALLOWED approvals')
  assert.equal(refusal(approved(['dan', 'erin', 'frank'])), null)
  await nodes.ping()
  assert.deepEqual(signs({ approval_policy: 2 }), ALL)
})

test('a node that was away accepts expired approvals from both peers, and from one alone never', async () => {
  await installed()
  nodes.cut(3)
  nodes.node(1).exchange.present(approved(['dan', 'erin']))
  await nodes.ping()
  await nodes.change({ enrolment: undefined })
  nodes.connect(3, [1])
  await nodes.ping()
  assert.deepEqual(signs(), [true, true, false])
  nodes.connect(3)
  await nodes.ping()
  await nodes.ping()
  assert.deepEqual(nodes.numbers, [2, 2, 2])
  assert.deepEqual(signs(), ALL)
})

test('a node that was away accepts them although each peer has recorded those of other people', async () => {
  await installed()
  nodes.cut(3)
  nodes.cut(1)
  nodes.node(1).exchange.present(approved(['dan', 'erin']))
  nodes.node(2).exchange.present(approved(['erin', 'frank']))
  nodes.connect(1, [2])
  await nodes.ping()
  nodes.now += DAY_S
  nodes.connect(3)
  await nodes.ping()
  assert.deepEqual(signs(), ALL)
})

test('a node with an empty record reads the approvals from both peers', async () => {
  await installed()
  nodes.node(1).exchange.present(approved(['dan', 'erin']))
  await nodes.ping()
  await nodes.change({ stop: { group: 'treasury' } })
  nodes.node(3).lose()
  await nodes.ping()
  await nodes.ping()
  assert.deepEqual(signs(), ALL)
})

test('attack: one hostile peer cannot make a node accept expired or insufficient approvals', async () => {
  await installed()
  const [two, one] = [approved(['dan', 'erin']), approved(['dan'])]
  nodes.now += DAY_S
  const sent = (item: Item, height: number) => ({
    height,
    seen_at_s: nodes.now - DAY_S,
    is_held: true,
    item,
  })
  nodes.node(1).altered = (call) =>
    call === 'ping'
      ? { generation: 0, height: 99 }
      : { generation: 0, to: 99, is_last: true, items: [sent(two, 98), sent(one, 99)] }
  await nodes.ping()
  assert.deepEqual(signs().slice(1), [false, false])
})

test('approvals count no more at a node that replaced their document by that of its peers', () => {
  const chain = [{ hash: 'ab'.repeat(32), before: null }]
  const approval = { number: 1, policy: 'ab'.repeat(32), facts: '' }
  const enrolment = enrolled()
  const { api_key, role } = enrolment
  const text = JSON.stringify({
    api_key,
    fingerprint: facts.fingerprint,
    role,
    sub_account: 'main',
  })
  const enrolments = new Map([[api_key, [{ ...approval, facts: text }]]])
  assert.equal(lacksApproval({ governance: null, chain, enrolments }, enrolment), false)
  const other = [{ hash: 'cd'.repeat(32), before: null }]
  assert.equal(lacksApproval({ governance: null, chain: other, enrolments }, enrolment), true)
})

test('a refusal states what is missing, or that the enrolment must be entered again', async () => {
  await installed()
  assert.deepEqual(
    [refusalText(approved(['dan'])), refusalText(approved(['dan', 'erin'], {}, { id: 'key-2' }))],
    ['Approvals are missing: 1 of treasury', 'must be key-1, by the facts'],
  )
  const [one] = approved(['dan']).approvals
  const [other] = approved(['erin'], { role: 'read-only' }).approvals
  assert.equal(
    refusalText({ kind: 'approved', workspace, approvals: [one!, other!] }),
    'must approve the same enrolment under the same document as the first approval',
  )
  const held = nodes.node(1).policies.held(workspace)
  assert.throws(() => {
    assertApproved(held, enrolled())
  }, /^Refusal: The enrolment of the API key key-1 requires approvals .*"policy approve-enrolment"$/)
  assert.throws(() => {
    assertApproved({ ...held, governance: null }, enrolled())
  }, /^Refusal: The enrolment of the API key key-1 was never approved, .*enter the enrolment again/)
  nodes.node(1).exchange.present(approved(['dan', 'erin']))
  assertApproved(nodes.node(1).policies.held(workspace), enrolled())
})

test('a refusal names each group whose approvals are missing, and no other', async () => {
  const approvals = [
    { group: 'admins', k: 1 },
    { group: 'treasury', k: 2 },
    { group: 'compliance', k: 1 },
  ]
  await installed({ enrolment: { approvals } })
  assert.equal(
    refusalText(approved(['alice', 'dan'])),
    'Approvals are missing: 1 of compliance and 1 of treasury',
  )
})
