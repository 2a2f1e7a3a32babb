// Forwarding rules that wait for approvals: what the platform does with what the signer nodes say.
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { before, beforeEach, test } from 'node:test'
import { signRequest } from '@custody/request-auth'
import type { CarriedApproval } from '@custody/policy'
import { testEmittedEvents } from '../../../testing/event-assertions.ts'
import { useApi } from '../../../testing/api-support.ts'
import { call, PRIVATE_KEY } from '../../../testing/harness.ts'
import { NodeUnavailable } from '../../core/signing/nodes.ts'
import { closeRequest } from '../approvals/requests.ts'
import type { Details, Outcome } from '../approvals/workspace-policies.ts'
import { endRules } from './end-rules.ts'
import { noteIncoming } from './incoming.ts'
import { judgeRulesLoop } from './judge-rules.ts'
import { autoForwardingLoop } from './loop.ts'
import { expireRules, type RuleRow } from './rule.ts'

const api = useApi()
const TO = 'bcrt1qw508d6qejxtdg4y5r3zarvary0c5xw7kygt080'
const DAY_MS = 86_400_000
let user: Awaited<ReturnType<typeof api.user>>
let wallet: { id: string }

/** The nodes: what they require and have recorded, and which of them respond. */
const nodes = {
  isGoverned: true,
  required: 2,
  /** People whose approvals are on their records, by rule. */
  recorded: new Map<string, string[]>(),
  presented: [] as string[][],
  isAway: false,
  voided: 0,
  hash: 'ab'.repeat(32),
}
const facts = {
  sub_account: 'main',
  asset: 'BTC',
  network: 'BTC',
  contract: null,
  decimals: 8,
  amount: null,
  to: TO,
  tag: null,
  fee_asset: 'BTC',
  fee_decimals: 8,
  fee_max: null,
  standing: { min_amount: '1', daily_cap: '10', ends_at: 4_000_000_000 },
  resource: null,
}
const idOf = (token: string): string =>
  (JSON.parse(Buffer.from(token.split('.')[1]!, 'base64url').toString()) as { nonce: string }).nonce

async function judge(
  _workspace: string,
  { token }: { token: string },
  detailsOf: () => Promise<Details>,
): Promise<Outcome> {
  if (!nodes.isGoverned) return { kind: 'none' }
  const id = idOf(token)
  const { decisions = [] } = await detailsOf()
  const recorded = nodes.recorded.get(id) ?? []
  const people = (kind: CarriedApproval['decision']) =>
    decisions.filter(({ decision }) => decision === kind).map(({ by }) => by)
  const approved = recorded.length >= nodes.required ? recorded : people('approve')
  const isAllowed = approved.length >= nodes.required
  const message = 'The policy 1 requires approvals that are missing'
  const judgement = {
    policy: { number: 1, hash: nodes.hash },
    issued_at: 1,
    statement: {
      v: 1 as const,
      mode: 'local',
      workspace: 'rules',
      nodes: 'cd'.repeat(32),
      policy: { number: 1, hash: nodes.hash },
      id,
      subject: 'ef'.repeat(32),
      action: 'forward' as const,
      facts,
    },
    effect: 'approve' as const,
    via: 'forwards',
    needs: [
      { group: 'treasury', k: nodes.required, have: Math.min(approved.length, nodes.required) },
    ],
    approved_by: approved,
    rejected_by: people('reject'),
    tried: [],
    ignored: [],
    refusal: isAllowed ? null : { code: 'POLICY_APPROVAL', message, frees_at: null },
  }
  return { kind: isAllowed ? 'allowed' : 'approval', judgement }
}

/** A call of a node by the platform. */
async function callNode(node: number, _method: string, path: string, body: object) {
  if (nodes.isAway) throw new NodeUnavailable(node, 'no response')
  if (path === '/policy/present') {
    const { approvals } = (body as { item: { approvals: string[] } }).item
    const statements = approvals.map(
      (text) => (JSON.parse(text) as { statement: { id: string; by: string } }).statement,
    )
    if (node === 1) nodes.presented.push(statements.map(({ by }) => by))
    nodes.recorded.set(
      statements[0]!.id,
      statements.map(({ by }) => by),
    )
    return {}
  }
  if (path === '/void') nodes.voided++
  return { signed_hashes: [], record: {} }
}

before(async () => {
  await api.started
  user = await api.user('rules')
  const made = await call<{ id: string }>(user, 'POST', '/dac/v1/create-wallet', { asset: 'BTC' })
  wallet = made.body
  Object.assign(api.services, {
    policies: { judge, isGoverned: () => nodes.isGoverned, noteGoverned: () => undefined },
  })
  Object.assign(api.services.signers, { call: callNode, isPenalised: () => false })
})
beforeEach(async () => {
  api.now = Date.now
  Object.assign(nodes, { isGoverned: true, isAway: false, voided: 0, presented: [], required: 2 })
  await api.database.query(`update forward_rules set state = 'ENDED', next_run_at = null`)
})

/** Writes a rule whose forwards are judged. */
async function write(state: string, fields: { waiting?: number; expires_at?: string } = {}) {
  const nonce = randomUUID()
  const request = await signRequest({
    apiKey: user.apiKey,
    privateKey: PRIVATE_KEY,
    method: 'POST',
    uri: '/dac/v1/auto-forwarding',
    body: '{}',
    nonce,
  })
  // The stub of the nodes takes the nonce for the public ID.
  await api.database.query(
    `insert into forward_rules (id, workspace_id, sub_account_id, wallet_id, asset, network,
       min_amount, daily_cap, destination, expires_at, state, request, waiting, next_run_at, created_at)
     values ($1, $2, $3, $4, 'BTC', 'BTC', 1000000, 100000000, $5, $6, $7, $8, $9, now(), now())`,
    [
      nonce,
      user.workspaceId,
      user.subAccountId,
      wallet.id,
      TO,
      fields.expires_at ?? '2099-01-01',
      state,
      JSON.stringify(request),
      fields.waiting ?? 0,
    ],
  )
  return nonce
}

interface Shown {
  status: string
  reason: string | null
  needs?: { have: string }[]
  waiting: string
}
const show = async (id: string) =>
  (await call<Shown>(user, 'GET', `/dac/v1/auto-forwarding/${id}`)).body
const requestOf = async (id: string) =>
  (
    await call<{ state: string; needs: { have: string }[]; expires_at: string }>(
      user,
      'GET',
      `/dac/v1/approvals/${id}`,
    )
  ).body
const row = async (id: string) =>
  (await api.database.one<RuleRow>('select * from forward_rules where id = $1', [id])) as RuleRow
const decide = (id: string, by: string, decision = 'approve') => {
  const at = Math.floor(Date.now() / 1000)
  const signature = Buffer.alloc(64, 1).toString('base64')
  const body = { decision, by, key: 'k1', at, expires: at + 3600, signature }
  return call<{ state: string; code?: string }>(user, 'POST', `/dac/v1/approvals/${id}`, body)
}
/** Runs the loops once, whatever is due. */
async function run(): Promise<void> {
  await api.database.query(
    `update forward_rules set next_run_at = now() where state in ('APPROVAL', 'ENDING')`,
  )
  const loop = autoForwardingLoop(api.services as never)
  await loop.run(new AbortController().signal)
}
const judgeAll = () => judgeRulesLoop(api.services as never).run(new AbortController().signal)

test('an active rule appears in the inbox without funds, and forwards after the approvals are recorded', async () => {
  const id = await write('ACTIVE')
  await judgeAll()
  const waiting = await show(id)
  assert.deepEqual([waiting.status, waiting.needs?.[0]?.have], ['awaiting_approval', '0'])
  assert.match(waiting.reason ?? '', /requires approvals that are missing/)
  const { expires_at: expires } = await requestOf(id)
  assert.equal(expires, '2099-01-01T00:00:00.000Z', 'it waits until the rule expires')
  assert.equal((await decide(id, 'dan')).body.state, 'open')
  await run()
  assert.deepEqual([(await show(id)).needs?.[0]?.have, nodes.presented], ['1', []])
  assert.equal((await decide(id, 'erin')).body.state, 'approved')
  await run()
  assert.deepEqual(
    nodes.presented.map((people) => people.toSorted()),
    [['dan', 'erin']],
  )
  assert.equal((await show(id)).status, 'awaiting_approval', 'the records of the nodes decide')
  await run()
  assert.deepEqual([(await show(id)).status, (await show(id)).needs], ['active', undefined])
  assert.equal((await requestOf(id)).state, 'approved')
  // A key is revoked: the same rule waits again, and its request is open again.
  nodes.recorded.delete(id)
  await judgeAll()
  assert.equal((await show(id)).status, 'awaiting_approval')
  assert.equal((await requestOf(id)).state, 'open')
})

test('a rule of a workspace without a policy is active, also if it has waited before', async () => {
  const id = await write('ACTIVE')
  nodes.isGoverned = false
  await judgeAll()
  assert.equal((await show(id)).status, 'active')
  nodes.isGoverned = true
  await judgeAll()
  assert.equal((await show(id)).status, 'awaiting_approval')
  nodes.isGoverned = false
  await run()
  assert.equal((await show(id)).status, 'active')
  assert.equal((await requestOf(id)).state, 'ended')
})

test('approvals are presented again after the process ended before the nodes had them', async () => {
  const id = await write('ACTIVE')
  await judgeAll()
  for (const by of ['dan', 'erin']) await decide(id, by)
  nodes.isAway = true
  await run()
  assert.equal((await show(id)).status, 'awaiting_approval')
  assert.match((await show(id)).reason ?? '', /fewer than two signer nodes have recorded/)
  const { environment } = api.services
  const { checkpoint } = environment
  Object.assign(environment, {
    checkpoint: (name: string) => {
      if (name === 'rule.presenting') throw new Error('the process ends')
    },
  })
  nodes.isAway = false
  await run()
  Object.assign(environment, { checkpoint })
  assert.deepEqual(nodes.presented, [])
  await run()
  await run()
  assert.equal(nodes.presented.length, 1)
  assert.equal((await show(id)).status, 'active')
})

test('a rejection ends the rule at the nodes, with the reason', async () => {
  const id = await write('ACTIVE')
  await judgeAll()
  await decide(id, 'dan')
  assert.equal((await decide(id, 'erin', 'reject')).body.state, 'rejected')
  assert.equal((await decide(id, 'frank')).body.code, 'APPROVAL_CLOSED')
  await run()
  await endRules(api.services as never)
  const ended = await show(id)
  assert.deepEqual(
    [ended.status, ended.reason],
    ['deleted', 'APPROVAL_REJECTED: erin rejected the rule'],
  )
  assert.equal((await requestOf(id)).state, 'rejected')
  assert.equal(nodes.voided, 3)
  assert.deepEqual(nodes.presented, [])
})

test('the request of a new rule expires after six days, and the rule ends', async () => {
  const id = await write('ACTIVE')
  await judgeAll()
  await api.database.query(
    `update approval_requests set expires_at = now() + interval '6 days' where transaction_id = $1`,
    [id],
  )
  api.now = () => Date.now() + 6 * DAY_MS + 60_000
  await run()
  await endRules(api.services as never)
  api.now = Date.now
  const ended = await show(id)
  assert.deepEqual([ended.status, ended.reason?.slice(0, 17)], ['deleted', 'APPROVAL_EXPIRED:'])
  assert.equal((await requestOf(id)).state, 'expired')
})

test('the request is closed if the rule expires or is deleted while it waits', async () => {
  const expiring = await write('ACTIVE')
  await judgeAll()
  await api.database.transaction((tx) => expireRules(tx, new Date('2099-01-02')))
  assert.equal((await requestOf(expiring)).state, 'ended')
  assert.equal((await row(expiring)).state, 'EXPIRED')
  const deleted = await write('ACTIVE')
  await judgeAll()
  await call(user, 'DELETE', `/dac/v1/auto-forwarding/${deleted}`, {})
  assert.equal((await requestOf(deleted)).state, 'ended')
  await api.database.transaction((tx) =>
    closeRequest(tx, { workspace_id: user.workspaceId, id: deleted }, 'approved'),
  )
  assert.equal((await requestOf(deleted)).state, 'ended', 'it was closed once')
})

test('funds that arrive while a rule waits are counted, and no second rule can be created', async () => {
  const id = await write('ACTIVE')
  await judgeAll()
  const deposit = {
    id: randomUUID(),
    kind: 'DEPOSIT',
    wallet_id: wallet.id,
    workspace_id: user.workspaceId,
    amount: '5000000',
    created_at: new Date(Date.now() + 1000),
    plan: {},
  }
  await api.database.query(
    `insert into transactions (id, kind, workspace_id, sub_account_id, wallet_id, asset, network, amount,
       fee_asset, source_type, destination_type, state, status)
     values ($1, 'DEPOSIT', $2, $3, $4, 'BTC', 'BTC', 5000000, 'BTC', 'EXTERNAL', 'INTERNAL', 'CREDITED',
       'confirmed')`,
    [deposit.id, user.workspaceId, user.subAccountId, wallet.id],
  )
  await api.database.transaction((tx) => noteIncoming(tx, deposit as never, new Date()))
  assert.deepEqual(
    [(await show(id)).status, (await show(id)).waiting],
    ['awaiting_approval', '0.05'],
  )
  await assert.rejects(write('PENDING'), /forward_rules_one/)
  const paused = await call<{ code: string }>(
    user,
    'POST',
    `/dac/v1/auto-forwarding/${id}/pause`,
    {},
  )
  assert.equal(paused.body.code, 'RULE_FINAL')
})

testEmittedEvents(
  () => api.database,
  ['approval.requested', 'approval.updated', 'approval.closed', 'auto_forwarding.deleted'],
)
