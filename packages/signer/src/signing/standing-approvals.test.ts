// Approvals of standing rules for forwards at three real nodes: what a platform can have signed.
import type { CarriedApproval } from '@custody/policy'
import { signRequest, type SignedRequest } from '@custody/request-auth'
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { after, before, test } from 'node:test'
import { TestPolicy } from '../../testing/policy-cluster.ts'
import {
  callerKey,
  ETH,
  eth,
  pay,
  refused,
  signed,
  SignerCluster,
  SINK_ETH,
  transfer,
  type Answer,
  type Caller,
  type Json,
  type Workspace,
} from '../../testing/signer-cluster.ts'

const ETHER = 10n ** 18n
const DAY_S = 86_400
const PAIRS = [
  [1, 2],
  [2, 3],
  [3, 1],
] as const
/** The caller's key belongs to Frank, who is in `treasury` too. */
const rules = [
  {
    id: 'forwards',
    effect: 'allow',
    match: { action: ['forward'], assets: 'any' },
    amount: { max: { ETH: '10' } },
    approvals: [{ group: 'treasury', k: 2 }],
  },
  {
    id: 'transfers',
    effect: 'allow',
    match: { action: ['transfer'], assets: 'any' },
    approvals: [{ group: 'treasury', k: 2 }],
  },
]

let cluster: SignerCluster
before(async () => {
  cluster = await SignerCluster.start({ engine: 'double' })
})
after(async () => {
  await cluster.stop()
})

class Forwarding {
  readonly workspace: Workspace
  readonly caller: Caller
  readonly policy: TestPolicy
  #nonce = 0

  constructor(workspace: Workspace, caller: Caller, policy: TestPolicy) {
    this.workspace = workspace
    this.caller = caller
    this.policy = policy
  }

  static async start(): Promise<Forwarding> {
    const workspace = await cluster.workspace()
    const caller = await workspace.caller()
    const policy = new TestPolicy(cluster, workspace, rules, caller.api_key)
    await policy.install()
    return new Forwarding(workspace, caller, policy)
  }

  /** Creates a rule, which all nodes receive. */
  async rule(fields: object = {}): Promise<SignedRequest> {
    const expires_at = new Date(Date.now() + cluster.aheadMs + 30 * DAY_S * 1000).toISOString()
    const request = await signRequest({
      apiKey: this.caller.api_key,
      privateKey: callerKey,
      method: 'POST',
      uri: '/dac/v1/auto-forwarding',
      nonce: randomUUID(),
      now: Math.floor((Date.now() + cluster.aheadMs) / 1000),
      body: JSON.stringify({
        asset: 'ETH',
        min_amount: '1',
        daily_cap: '100',
        destination_address: SINK_ETH,
        expires_at,
        ...fields,
      }),
    })
    for (const node of [1, 2, 3]) signed(await cluster.post(node, '/receipt', { request }))
    return request
  }

  /** Asks one node to judge a request. */
  async judge(request: object, more: object = {}, node = 1): Promise<Json> {
    const answer = await cluster.post(node, '/policy/judge', { request, ...more })
    signed(answer)
    return answer.body
  }

  /** Approvals of a rule by people. @param shown fields of the statement; default: those of a node */
  async approve(
    request: object,
    people: readonly string[],
    shown?: object,
    fields: Partial<CarriedApproval> = {},
  ): Promise<string[]> {
    const statement = shown ?? (await this.judge(request)).statement
    const at = Math.floor((Date.now() + cluster.aheadMs) / 1000)
    return people.map((by) => {
      const decision = { decision: 'approve', at, expires: at + 3600, ...fields }
      return this.policy.statement(by, { kind: 'approval', ...statement, ...decision })
    })
  }

  /** Presents approvals to one node, as the platform does. */
  present(node: number, approvals: readonly string[]): Promise<Answer> {
    const item = { kind: 'approved', workspace: this.workspace.name, approvals }
    return cluster.post(node, '/policy/present', { item })
  }

  /** Requests the signature of one forward. */
  async forward(
    rule: SignedRequest,
    {
      pair = [1, 2] as readonly [number, number],
      value = ETHER,
      policy = undefined as object | undefined,
    } = {},
  ): Promise<Answer> {
    const answer = await cluster.post(pair[0], '/sign', {
      workspace: this.workspace.name,
      purpose: { kind: 'forward', id: randomUUID(), rule },
      unsigned: eth([1, ETH.chain_index, 0], { value, nonce: this.#nonce, to: SINK_ETH }),
      partner: pair[1],
      ...(policy === undefined ? {} : { policy }),
    })
    if (answer.status === 200) this.#nonce++
    return answer
  }
}

test('a rule that was approved once forwards at every pair, whichever node was shown the approvals', async () => {
  const made = await Forwarding.start()
  const rule = await made.rule()
  const shown = await made.judge(rule)
  assert.deepEqual(
    [shown.effect, shown.needs, shown.refusal.code, shown.statement.action],
    ['approve', [{ group: 'treasury', k: 2, have: 0 }], 'POLICY_APPROVAL', 'forward'],
  )
  assert.equal(shown.statement.facts.amount, null)
  assert.equal(shown.statement.facts.standing.daily_cap, String(100n * ETHER))
  for (const pair of PAIRS) refused(await made.forward(rule, { pair }), 'POLICY_APPROVAL', 17)
  // A hostile platform shows them to one node only.
  const presented = await made.present(3, await made.approve(rule, ['dan', 'erin']))
  signed(presented)
  assert.deepEqual(presented.body.told.toSorted(), [1, 2])
  for (let times = 0; times < 10; times++)
    signed(await made.forward(rule, { pair: PAIRS[times % 3]! }))
  const allowed = await made.judge(rule)
  assert.deepEqual([allowed.effect, allowed.approved_by], ['allow', ['dan', 'erin']])
})

test('each forward is judged by the limits of the document, and none is approved by itself', async () => {
  const made = await Forwarding.start()
  const rule = await made.rule()
  signed(await made.present(1, await made.approve(rule, ['dan', 'erin'])))
  refused(await made.forward(rule, { value: 11n * ETHER }), 'POLICY_DENIED', 17)
  const judged = await made.judge(rule, { amount: String(11n * ETHER) })
  assert.equal(judged.refusal.code, 'POLICY_DENIED')
  const above = { request: rule, amount: String(101n * ETHER) }
  refused(await cluster.post(1, '/policy/judge', above), 'BAD_REQUEST_FIELD')
  const payment = await transfer(made.caller, { asset: 'ETH', amount: '1' })
  refused(
    await cluster.post(1, '/policy/judge', { request: payment, amount: String(ETHER) }),
    'BAD_REQUEST_FIELD',
  )
  signed(await made.forward(rule))
})

test('attack: approvals of another rule or of a transfer, of too few people, or altered ones', async () => {
  const made = await Forwarding.start()
  const [rule, other] = [await made.rule(), await made.rule({ daily_cap: '90' })]
  const { statement } = await made.judge(rule)
  const payment = await transfer(made.caller, {
    asset: 'ETH',
    amount: '1',
    destination_address: SINK_ETH,
  })
  const ofPayment = (await made.judge(payment)).statement
  const two = ['dan', 'erin']
  const altered = { ...statement.facts.standing, daily_cap: String(90n * ETHER) }
  const at = Math.floor(Date.now() / 1000)
  const expired = { at: at - 100, expires: at - 50 }
  const ofForward = { ...ofPayment, action: 'forward' }
  const tries: [string, string[], string | null][] = [
    ['of another rule', await made.approve(other, two), null],
    ['of a transfer', await made.approve(payment, two), 'BAD_POLICY'],
    ['of a transfer as a forward', await made.approve(payment, two, ofForward), 'BAD_POLICY'],
    [
      'with other facts',
      await made.approve(rule, two, {
        ...statement,
        facts: { ...statement.facts, standing: altered },
      }),
      null,
    ],
    ['of one person', await made.approve(rule, ['dan']), null],
    ['of the owner of the API key', await made.approve(rule, ['dan', 'frank']), null],
    ['of another group', await made.approve(rule, ['dan', 'alice']), null],
    ['rejections', await made.approve(rule, two, statement, { decision: 'reject' }), 'BAD_POLICY'],
    ['expired', await made.approve(rule, two, statement, expired), 'BAD_POLICY'],
  ]
  for (const [name, approvals, code] of tries) {
    const answer = await made.present(1, approvals)
    if (code === null) assert.equal(answer.status, 200, `${name}: ${JSON.stringify(answer.body)}`)
    else assert.equal(answer.body.error, code, `${name}: ${JSON.stringify(answer.body)}`)
    const forward = await made.forward(rule)
    assert.equal(forward.body.error, 'POLICY_APPROVAL', `${name}: ${JSON.stringify(forward.body)}`)
  }
  // One person in one record and another one in another record are not two people who approved it.
  signed(await made.present(1, await made.approve(rule, ['erin'])))
  refused(await made.forward(rule), 'POLICY_APPROVAL', 17)
  signed(await made.present(1, await made.approve(rule, two)))
  signed(await made.forward(rule))
  // The approvals of the rule approve no transfer.
  refused(
    await cluster.post(1, '/sign', {
      workspace: made.workspace.name,
      purpose: pay(payment),
      unsigned: eth([1, ETH.chain_index, 0], { value: ETHER, nonce: 1, to: SINK_ETH }),
      partner: 2,
    }),
    'POLICY_APPROVAL',
  )
})

test('a judgement states whether a larger forward of a denied rule could be allowed', async () => {
  const workspace = await cluster.workspace()
  const caller = await workspace.caller()
  const large = { ...rules[0], amount: { min: { ETH: '2' }, max: { ETH: '10' } } }
  const policy = new TestPolicy(cluster, workspace, [large], caller.api_key)
  await policy.install()
  const made = new Forwarding(workspace, caller, policy)
  const judged = await made.judge(await made.rule())
  assert.deepEqual([judged.effect, judged.fits_above], ['deny', true])
  const other = await made.judge(await made.rule({ asset: 'USDT_ETH' }))
  assert.deepEqual([other.effect, other.fits_above], ['deny', false])
})

test('gas funding for a forward requires the approvals of its rule too', async () => {
  const made = await Forwarding.start()
  const { workspace } = made
  const rule = await made.rule()
  const price = 2_000_000_000n
  const purpose = {
    kind: 'fuel',
    for: { kind: 'forward', id: randomUUID(), rule },
    gas: '21000',
    max_fee_per_gas: String(price),
  }
  const to = workspace.address(ETH, [1, ETH.chain_index, 0])
  const unsigned = eth([0, ETH.chain_index, 0], { to, value: 21_000n * price, nonce: 0 })
  for (const pair of PAIRS)
    refused(await workspace.sign(purpose, unsigned, pair), 'POLICY_APPROVAL', 17)
  signed(await made.present(2, await made.approve(rule, ['dan', 'erin'])))
  signed(await workspace.sign(purpose, unsigned, [1, 3]))
})

test('an order may carry the approvals of the rule, which count until they expire', async () => {
  const made = await Forwarding.start()
  const rule = await made.rule()
  const { statement } = await made.judge(rule)
  const approvals = ['dan', 'erin'].map((by) => made.policy.decide(by, statement))
  signed(await made.forward(rule, { policy: { approvals } }))
  refused(await made.forward(rule), 'POLICY_APPROVAL')
})

test('the suspension of an approver pauses the rule, and its end continues it', async (t) => {
  const made = await Forwarding.start()
  const rule = await made.rule()
  signed(await made.present(1, await made.approve(rule, ['dan', 'erin'])))
  signed(await made.forward(rule))
  const target = { person: 'erin', key: 'k1' }
  const suspension = made.policy.statement('alice', { kind: 'suspend', target, reason: 'Lost' })
  signed(await made.policy.present(2, suspension))
  for (const pair of PAIRS) refused(await made.forward(rule, { pair }), 'POLICY_APPROVAL', 17)
  t.after(() => {
    cluster.aheadMs = 0
  })
  cluster.aheadMs = (7 * DAY_S + 60) * 1000
  for (const pair of PAIRS) signed(await made.forward(rule, { pair }))
})
