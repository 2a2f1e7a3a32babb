// Proposed policy changes over real PostgreSQL and three nodes with the real rules of governance,
// which can be silent or lose what they were told.
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { beforeEach, test } from 'node:test'
import { loadRegistry } from '@custody/chains'
import { checkDocument, documentHash, type PolicyDocument, type Statement } from '@custody/policy'
import {
  allow,
  keyOf,
  newKey,
  policyWith,
  type TestKey,
} from '../../../../../policy/testing/documents.ts'
import { newPasskey, signWithPasskey } from '../../../../../policy/testing/passkeys.ts'
import { signWith } from '../../../../../policy/testing/statements.ts'
import { testEmittedEvents } from '../../../../testing/event-assertions.ts'
import { useDatabase } from '../../../../testing/deposits-support.ts'
import { ManualClock } from '../../../../testing/manual-clock.ts'
import { GovernedNodes } from '../../../../testing/governed-nodes.ts'
import { ApiError } from '../../../core/errors.ts'
import { readBody } from '../../../core/http/validate.ts'
import { giveApproval } from '../../approvals/give-approval.ts'
import { listApprovals } from '../../approvals/list-approvals.ts'
import { readApproval } from '../../approvals/read-approval.ts'
import { changeApprovalsOf } from './change-approvals.ts'
import { createPolicyChange } from './create-change.ts'
import { listPolicyChanges } from './list-changes.ts'
import { policyChangesLoop } from './loop.ts'
import { provePolicyKey } from './prove-possession.ts'
import { readPolicyChange } from './read-change.ts'

const clock = new ManualClock()
const database = useDatabase({ clock })
const registry = loadRegistry('local')
const RULE = { ...allow('pay'), match: { action: ['transfer'], assets: ['ETH'], to: 'any' } }
const DELAY_S = 600
const FIRST = policyWith([RULE], {
  mode: 'local',
  change: { approvals: [{ group: 'admins', k: 2 }], delay_s: DELAY_S, veto: 'admins' },
})
// oxlint-disable-next-line typescript/no-explicit-any -- the handlers are called without a server
type Any = any

const nowS = () => Math.floor(clock.now() / 1000)
const governed = new GovernedNodes(nowS)
const { signers } = governed

const services = () => {
  const common = { database: database.get(), registry, signers }
  return {
    ...common,
    checkout: { base: 'https://custody.example' },
    environment: { uuid: () => randomUUID(), now: clock.now },
    policies: {},
    policyChanges: changeApprovalsOf(common),
  }
}

let caller: Any
let other: Any

async function addCaller(name: string): Promise<Any> {
  const db = database.get()
  const workspace = await db.one<{ id: string }>(
    'insert into workspaces (name) values ($1) returning id',
    [name],
  )
  return {
    workspace: name,
    workspaceId: workspace?.id,
    subAccountId: randomUUID(),
    apiKey: 'key',
    role: 'full',
  }
}

beforeEach(async () => {
  await database.started
  // The rows of earlier tests stay, because the last test reads all events.
  await database.get().query('update workspaces set name = $1 || id::text', ['earlier-'])
  await database.get().query('update policy_changes set is_due = false')
  governed.begin(FIRST.document)
  caller = await addCaller('acme')
  other = await addCaller('other')
})

/** Calls an endpoint with a body as the server reads it. */
const bodyOf = async (
  { handler, body: schema }: { handler: Any; body?: Any },
  { body, ...request }: { body?: object; [more: string]: unknown },
  by: Any = caller,
): Promise<Any> => {
  const read = body === undefined ? {} : { body: readBody(schema, JSON.stringify(body)) }
  return (await handler({ caller: by, query: {}, ...request, ...read }, services())).body
}
const fails = (code: string, field?: string) => (error: unknown) =>
  error instanceof ApiError && error.code === code && error.field === field

const nextDocument = (fields: object = {}): PolicyDocument =>
  checkDocument({
    ...FIRST.document,
    number: 2,
    previous: FIRST.hash,
    rules: [{ ...RULE, id: 'other' }],
    ...fields,
  })
const create = (document: object = nextDocument(), more: object = {}) =>
  bodyOf(createPolicyChange, { body: { document, comment: 'why', ...more } })
const read = (id: string): Promise<Any> => bodyOf(readPolicyChange, { params: { id } })
const list = async (state = 'open', by: Any = caller): Promise<Any[]> =>
  (await bodyOf(listApprovals, { query: { state, limit: 50 } }, by)).data

/** Returns the body of a decision that a person has signed. */
function decisionOf(change: Any, by: string, decision = 'approve', key: TestKey = keyOf(by)): Any {
  const { v, mode, workspace, nodes: place, policy, next, acts_at } = change.statement
  const times = { at: nowS(), expires: nowS() + 3600 }
  const common = { v, mode, workspace, nodes: place, by, key: key.key.id, ...times, policy, next }
  const statement =
    decision === 'approve' ? { kind: 'change', ...common, acts_at } : { kind: 'veto', ...common }
  const { signature } = signWith(key, statement as Statement)
  return { decision, by, key: key.key.id, ...times, signature }
}
const give = (id: string, body: object): Promise<Any> =>
  bodyOf(giveApproval, { params: { id }, body })
const tick = () => policyChangesLoop(services() as Any).run(new AbortController().signal)
const states = () =>
  governed.nodes.map(({ governance: { policy, next } }) => [
    policy.document.number,
    next?.policy.hash,
  ])

test('a proposal states the API keys of the workspace that have no owner', async () => {
  const db = database.get()
  const account = await db.one<{ id: string }>(
    `insert into sub_accounts (workspace_id, name, path_index) values ($1, 'main', 1) returning id`,
    [caller.workspaceId],
  )
  const robot = randomUUID()
  await db.query(
    `insert into api_users (api_key, sub_account_id, role, public_key_pem)
      values ($1, $2, 'full', 'x'), ($3, $2, 'read-only', 'x')`,
    [robot, account?.id, randomUUID()],
  )
  const { warnings } = await create()
  const ownerless = warnings.filter(({ message }: Any) => message.includes('lists the API key'))
  assert.equal(ownerless.length, 1)
  assert.match(ownerless[0].message, new RegExp(robot))
})

test('a proposed change is approved, held by the nodes, and in force after its delay', async () => {
  const document = nextDocument()
  const change = await create(document)
  assert.deepEqual(
    [change.state, change.needs, change.missing],
    ['open', [{ group: 'admins', k: 2, have: 0 }], []],
  )
  assert.equal(change.statement.acts_at, nowS() + DELAY_S)
  assert.deepEqual(
    change.changes.map(({ path }: Any) => path),
    ['rules.other', 'rules.pay'],
  )
  const [listed] = await list()
  assert.deepEqual(
    [listed.id, listed.action, listed.facts, listed.change.hash],
    [change.id, 'policy_change', null, documentHash(document)],
  )
  const detail = await bodyOf(readApproval, { params: { id: change.id } })
  assert.deepEqual(detail.statement, change.statement)

  const first = await give(change.id, decisionOf(change, 'alice'))
  assert.deepEqual(first, {
    id: change.id,
    state: 'open',
    needs: [{ group: 'admins', k: 2, have: 1 }],
  })
  assert.deepEqual(
    states(),
    [1, 2, 3].map(() => [1, undefined]),
    'nothing is presented too early',
  )
  const last = decisionOf(change, 'bob')
  assert.equal((await give(change.id, last)).state, 'approved')
  const held = await read(change.id)
  assert.deepEqual([held.state, held.held, held.reason], ['held', [1, 2, 3], null])
  assert.equal(new Date(held.acts_at).getTime() / 1000, change.statement.acts_at)
  assert.equal((await give(change.id, last)).state, 'approved', 'the same decision changes nothing')
  await assert.rejects(give(change.id, decisionOf(change, 'carol')), fails('APPROVAL_CLOSED', 'id'))
  assert.deepEqual(await list(), [])
  assert.deepEqual((await list('approved')).length, 1)

  await tick()
  assert.equal((await read(change.id)).state, 'held')
  clock.advance(DELAY_S * 1000)
  await tick()
  assert.equal((await read(change.id)).state, 'in_force')
})

test('what was collected before a crash is presented by the background job, once nodes respond', async () => {
  const change = await create()
  await give(change.id, decisionOf(change, 'alice'))
  governed.nodes[1]!.isAway = true
  governed.nodes[2]!.isAway = true
  await assert.rejects(give(change.id, decisionOf(change, 'bob')), fails('SIGNERS_UNAVAILABLE'))
  governed.nodes[1]!.isAway = false
  // The process ends between the commit of the last approval and the call of a node.
  governed.isCut = true
  assert.equal((await give(change.id, decisionOf(change, 'bob'))).state, 'approved')
  assert.equal((await read(change.id)).state, 'approved')
  governed.isCut = false
  await tick()
  assert.deepEqual((await read(change.id)).held, [1, 2])
  const counts = governed.nodes.map(({ presented }) => presented)
  await tick()
  assert.deepEqual(
    governed.nodes.map(({ presented }) => presented),
    counts,
    'a held change is not presented again',
  )
})

test('a rejection ends the change, and the nodes refuse it from then on', async () => {
  const document = nextDocument()
  const change = await create(document)
  await give(change.id, decisionOf(change, 'alice'))
  governed.nodes[0]!.isAway = true
  const given = await give(change.id, decisionOf(change, 'bob', 'reject'))
  assert.equal(given.state, 'rejected')
  const after = await read(change.id)
  assert.deepEqual([after.state, after.reason], ['rejected', 'bob has vetoed it'])
  await assert.rejects(give(change.id, decisionOf(change, 'carol')), fails('APPROVAL_CLOSED', 'id'))
  // The same document can be proposed again, and the nodes state why they refuse it.
  const again = await create(document)
  assert.notEqual(again.id, change.id)
  for (const name of ['alice', 'carol']) await give(again.id, decisionOf(again, name))
  const refused = await read(again.id)
  assert.equal(refused.state, 'vetoed')
  assert.match(refused.reason, /^signer 2: VETOED: .*; signer 3: VETOED: /)
})

test('a veto of a change that the nodes hold ends it there', async () => {
  const change = await create()
  for (const name of ['alice', 'bob']) await give(change.id, decisionOf(change, name))
  assert.equal((await read(change.id)).state, 'held')
  await give(change.id, decisionOf(change, 'carol', 'reject'))
  assert.equal((await read(change.id)).state, 'vetoed')
  assert.deepEqual(
    states(),
    [1, 2, 3].map(() => [1, undefined]),
  )
})

test('a person whom the change removes cannot end it alone', async () => {
  const people = FIRST.document.people.filter(({ id }) => id !== 'carol')
  const groups = { ...FIRST.document.groups, admins: ['alice', 'bob', 'dan'] }
  const change = await create(nextDocument({ people, groups }))
  const given = await give(change.id, decisionOf(change, 'carol', 'reject'))
  assert.equal(given.state, 'open')
})

test('new keys prove that they are held, by a key and by a passkey', async () => {
  const [key, passkey] = [newKey('k2'), newPasskey('p1')]
  const people = FIRST.document.people.map((each) =>
    each.id === 'dan' ? { ...each, keys: [...each.keys, key.key, passkey.key] } : each,
  )
  const change = await create(nextDocument({ people }))
  assert.deepEqual(change.missing, [
    { person: 'dan', key: 'k2' },
    { person: 'dan', key: 'p1' },
  ])
  const { v, mode, workspace, nodes: place, next } = change.statement
  const common = { v, mode, workspace, nodes: place, by: 'dan', policy: next }
  const statement = (id: string) => ({ kind: 'possession', ...common, key: id }) as Statement
  const prove = (body: object) =>
    bodyOf(provePolicyKey, { params: { id: change.id }, body }) as Promise<Any>
  const { signature } = signWith(key, statement('k2'))
  await assert.rejects(
    prove({ by: 'dan', key: 'p1', signature }),
    fails('APPROVAL_REFUSED', 'passkey'),
  )
  await assert.rejects(
    prove({ by: 'erin', key: 'k2', signature }),
    fails('APPROVAL_REFUSED', 'key'),
  )
  assert.deepEqual((await prove({ by: 'dan', key: 'k2', signature })).missing.length, 1)
  for (const name of ['alice', 'bob']) await give(change.id, decisionOf(change, name))
  assert.equal((await read(change.id)).state, 'open', 'a proof is still missing')
  const { passkey: assertion } = signWithPasskey(passkey, statement('p1'))
  const proved = await prove({ by: 'dan', key: 'p1', passkey: assertion })
  assert.deepEqual([proved.state, proved.missing], ['held', []])
})

test('invalid proposals name the field and create nothing', async () => {
  const document = nextDocument()
  for (const [value, field] of [
    [{ ...document, number: 3 }, 'document.number'],
    [{ ...document, previous: 'ab'.repeat(32) }, 'document.previous'],
    [{ ...document, workspace: 'other' }, 'document.workspace'],
    [{ ...document, nodes: 'cd'.repeat(32) }, 'document.nodes'],
    [{ ...document, mode: 'mainnet' }, 'document.mode'],
    [{ ...document, extra: 1 }, 'document.extra'],
    [{ ...document, groups: {} }, 'document.change.veto'],
    [{}, 'document.kind'],
  ] as const)
    await assert.rejects(create(value), (error: unknown) => {
      assert.ok(error instanceof ApiError, String(error))
      assert.deepEqual([error.status, error.field], [400, field], error.message)
      return true
    })
  await assert.rejects(
    create(document, { possessions: [{ statement: {} }] }),
    fails('INVALID_REQUEST', 'possessions[0]'),
  )
  assert.deepEqual((await bodyOf(listPolicyChanges, { query: { limit: 50 } })).data, [])
})

test('a workspace has at most four open changes, and a document is proposed once', async () => {
  const numbered = (at: number) => nextDocument({ rules: [{ ...RULE, id: `rule-${at}` }] })
  const ids = []
  for (const at of [1, 2, 3, 4]) ids.push((await create(numbered(at))).id)
  await assert.rejects(create(numbered(5)), fails('POLICY_CHANGE_LIMIT'))
  assert.equal((await create(numbered(2))).id, ids[1])
  clock.advance(7 * 86_400_000)
  await tick()
  assert.deepEqual(await list(), [])
  assert.equal((await list('expired')).length, 4)
  assert.equal((await create(numbered(5))).state, 'open')
})

test('the next change ends those that are still open', async () => {
  const loser = await create(nextDocument({ rules: [] }))
  const winner = await create()
  for (const name of ['alice', 'bob']) await give(winner.id, decisionOf(winner, name))
  clock.advance(DELAY_S * 1000)
  await tick()
  const { state, reason } = await read(loser.id)
  assert.equal(state, 'ended')
  assert.match(reason, /^policy 2 with hash [0-9a-f]{64} came into force$/)
  await assert.rejects(give(loser.id, decisionOf(loser, 'alice')), fails('APPROVAL_CLOSED', 'id'))
})

test('a second complete change waits until the pending one is decided', async () => {
  const [first, second] = [await create(), await create(nextDocument({ rules: [] }))]
  for (const change of [first, second])
    for (const name of ['alice', 'bob']) await give(change.id, decisionOf(change, name))
  const waiting = await read(second.id)
  assert.equal(waiting.state, 'approved')
  assert.match(waiting.reason, /PENDING/)
  await give(first.id, decisionOf(first, 'carol', 'reject'))
  await tick()
  assert.deepEqual(
    [(await read(first.id)).state, (await read(second.id)).state],
    ['vetoed', 'held'],
  )
})

test('a change of people whose changes were vetoed three times waits until the nodes accept it', async () => {
  const variant = (at: number) => nextDocument({ rules: [{ ...RULE, id: `rule-${at}` }] })
  const approved = async (at: number) => {
    const change = await create(variant(at))
    for (const name of ['alice', 'bob']) await give(change.id, decisionOf(change, name))
    return change
  }
  for (const at of [1, 2, 3]) {
    const change = await approved(at)
    await give(change.id, decisionOf(change, 'carol', 'reject'))
    assert.equal((await read(change.id)).state, 'vetoed')
  }
  const { id } = await approved(4)
  const waiting = await read(id)
  assert.equal(waiting.state, 'approved')
  assert.match(waiting.reason, /NOT_YET/)
  clock.advance(DELAY_S * 1000)
  await tick()
  assert.equal((await read(id)).state, 'held')
})

test('signatures that do not count are refused, and other workspaces see nothing', async () => {
  const change = await create()
  const { id } = change
  const wrong = { ...decisionOf(change, 'alice'), signature: decisionOf(change, 'carol').signature }
  await assert.rejects(give(id, wrong), fails('APPROVAL_REFUSED', 'signature'))
  await assert.rejects(give(id, decisionOf(change, 'dan')), fails('APPROVAL_REFUSED', 'by'))
  await assert.rejects(
    give(id, decisionOf(change, 'dan', 'reject')),
    fails('APPROVAL_REFUSED', 'by'),
  )
  const late = { ...change, statement: { ...change.statement, acts_at: 1 } }
  await assert.rejects(give(id, decisionOf(late, 'alice')), fails('APPROVAL_REFUSED', 'signature'))
  assert.deepEqual((await read(id)).have, [])

  assert.deepEqual(await list('open', other), [])
  for (const endpoint of [readPolicyChange, readApproval])
    await assert.rejects(bodyOf(endpoint, { params: { id } }, other), fails('NOT_FOUND', 'id'))
  await assert.rejects(
    bodyOf(giveApproval, { params: { id }, body: decisionOf(change, 'alice') }, other),
    fails('NOT_FOUND', 'id'),
  )
})

testEmittedEvents(database.get, ['policy.proposed', 'policy.vetoed', 'policy.in_force'])
