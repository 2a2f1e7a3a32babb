// Approvals of payments at three real nodes: what a platform or a thief of keys can have signed.
import type { CarriedApproval } from '@custody/policy'
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { ask, faster } from '../../testing/amending.ts'
import { TestPolicy } from '../../testing/policy-cluster.ts'
import {
  ETH,
  eth,
  pay,
  refused,
  signed,
  SignerCluster,
  SINK_ETH,
  transfer,
  usdt,
  type Answer,
  type Caller,
  type Json,
  type Workspace,
} from '../../testing/signer-cluster.ts'

const ETHER = 10n ** 18n
const OTHER_ETH = '0x3C44CdDdB6a900fa2b585dd299e03d12FA4293BC'
const PAIRS = [
  [1, 2],
  [2, 3],
  [3, 1],
] as const
/** The caller's key belongs to Frank, who is in `treasury` too. */
const large = {
  id: 'large',
  effect: 'allow',
  match: { action: ['transfer'], assets: 'any' },
  approvals: [{ group: 'treasury', k: 2 }],
}

let cluster: SignerCluster
before(async () => {
  cluster = await SignerCluster.start({ engine: 'double' })
})
after(async () => {
  await cluster.stop()
})

class Approved {
  readonly workspace: Workspace
  readonly caller: Caller
  readonly policy: TestPolicy
  #nonce = 0

  private constructor(workspace: Workspace, caller: Caller, policy: TestPolicy) {
    this.workspace = workspace
    this.caller = caller
    this.policy = policy
  }

  static async start(rules: readonly unknown[] = [large]): Promise<Approved> {
    const workspace = await cluster.workspace()
    const caller = await workspace.caller()
    const policy = new TestPolicy(cluster, workspace, rules, caller.api_key)
    await policy.install()
    return new Approved(workspace, caller, policy)
  }

  request(to = SINK_ETH) {
    return transfer(this.caller, { asset: 'ETH', amount: '1', destination_address: to })
  }

  /** Asks one node to judge a request. */
  async judge(request: object, decisions: object[] = [], node = 1): Promise<Json> {
    const answer = await cluster.post(node, '/policy/judge', { request, decisions })
    signed(answer)
    return answer.body
  }

  /** Requests the signature of a payment of 1 ETH with approvals. */
  async send(
    purpose: unknown,
    approvals: object[],
    { pair = [1, 2] as readonly [number, number], to = SINK_ETH } = {},
  ): Promise<Answer> {
    const answer = await cluster.post(pair[0], '/sign', {
      workspace: this.workspace.name,
      purpose,
      unsigned: eth([1, ETH.chain_index, 0], { value: ETHER, nonce: this.#nonce, to }),
      partner: pair[1],
      ...(approvals.length === 0 ? {} : { policy: { approvals } }),
    })
    if (answer.status === 200) this.#nonce++
    return answer
  }
}

test('a payment that requires two people is signed at every pair once both have approved', async () => {
  const made = await Approved.start()
  const { policy } = made
  for (const pair of PAIRS) {
    const request = await made.request()
    const none = await made.judge(request)
    assert.deepEqual(
      [none.effect, none.via, none.needs, none.refusal.code],
      ['approve', 'large', [{ group: 'treasury', k: 2, have: 0 }], 'POLICY_APPROVAL'],
    )
    assert.equal(none.statement.facts.amount, ETHER.toString())
    const [dan, erin] = ['dan', 'erin'].map((by) => policy.decide(by, none.statement))
    refused(await made.send(pay(request), [], { pair }), 'POLICY_APPROVAL', 17)
    const one = await made.send(pay(request), [dan!], { pair })
    refused(one, 'POLICY_APPROVAL')
    assert.match(one.body.message, /missing: 1 of treasury$/)
    const both = await made.judge(request, [dan!, erin!], pair[0])
    assert.deepEqual(
      [both.effect, both.approved_by, both.refusal],
      ['allow', ['dan', 'erin'], null],
    )
    signed(await made.send(pay(request), [dan!, erin!], { pair }))
  }
})

test('attack: approvals of one person, of the caller or of others are not two people', async () => {
  const made = await Approved.start()
  const { policy } = made
  const request = await made.request()
  const { statement } = await made.judge(request)
  const by = (name: string, fields: Partial<CarriedApproval> = {}) =>
    policy.decide(name, statement, fields)
  const at = Math.floor(Date.now() / 1000)
  const tries: [string, object[]][] = [
    ['the same person twice', [by('dan'), by('dan', { at: at - 1 })]],
    ['the owner of the API key', [by('dan'), by('frank')]],
    ['a member of another group', [by('dan'), by('alice')]],
    ['an expired approval', [by('dan'), by('erin', { at: at - 100, expires: at - 50 })]],
    ['an approval of the future', [by('dan'), by('erin', { at: at + 3600, expires: at + 7200 })]],
    ['a signature of another person', [by('dan'), { ...by('dan'), by: 'erin' }]],
    [
      'a rejection in place of an approval',
      [by('dan'), { ...by('erin', { decision: 'reject' }), decision: 'approve' }],
    ],
  ]
  for (const [name, approvals] of tries)
    for (const pair of PAIRS) {
      const answer = await made.send(pay(request), approvals, { pair })
      assert.equal(answer.body.error, 'POLICY_APPROVAL', `${name}: ${JSON.stringify(answer.body)}`)
    }
  refused(await made.send(pay(request), [by('dan', { decision: 'reject' })]), 'BAD_ORDER')
  refused(await made.send(pay(request), [{ ...by('dan'), extra: 1 }]), 'BAD_ORDER')
  signed(await made.send(pay(request), [by('dan'), by('erin')]))
})

test('attack: approvals hold for the payment that was approved, and for no other', async () => {
  const made = await Approved.start()
  const { policy } = made
  const approved = await made.request()
  const { statement } = await made.judge(approved)
  const approvals = ['dan', 'erin'].map((by) => policy.decide(by, statement))
  const other = await made.request(OTHER_ETH)
  const { statement: shown } = await made.judge(other)
  refused(await made.send(pay(other), approvals, { to: OTHER_ETH }), 'POLICY_APPROVAL')
  const moved = approvals.map((each) => ({ ...each, id: shown.id }))
  const answer = await made.send(pay(other), moved, { to: OTHER_ETH })
  refused(answer, 'POLICY_APPROVAL')
  assert.match(answer.body.message, /The approval of dan does not count: signature/)
  // An approval of facts that the platform has made up is one of another payment.
  const altered = { ...shown, facts: { ...shown.facts, to: SINK_ETH, amount: '1' } }
  const deceived = ['dan', 'erin'].map((by) => policy.decide(by, altered))
  refused(await made.send(pay(other), deceived, { to: OTHER_ETH }), 'POLICY_APPROVAL')
})

test('attack: a speed-up needs the approvals of the payment, also if a node is shown it first', async () => {
  const made = await Approved.start()
  const { policy, caller } = made
  const request = await made.request()
  const { statement } = await made.judge(request)
  const purpose = faster(
    request,
    await ask(
      { api_key: caller.api_key, sub_account: caller.sub_account },
      statement.id,
      'speed-up',
      {},
    ),
  )
  refused(await made.send(purpose, []), 'POLICY_APPROVAL')
  const approvals = ['dan', 'erin'].map((by) => policy.decide(by, statement))
  signed(await made.send(purpose, approvals, { pair: [3, 2] }))
})

test('gas funding requires the approvals of the payment that it is for', async () => {
  const made = await Approved.start()
  const { policy, workspace, caller } = made
  const request = await transfer(caller, {
    asset: 'USDT_ETH',
    amount: '5',
    destination_address: SINK_ETH,
  })
  const { statement } = await made.judge(request)
  const source = workspace.address(ETH, [1, ETH.chain_index, 0])
  const order = (approvals: object[]) => ({
    workspace: workspace.name,
    partner: 2,
    purpose: {
      kind: 'fuel',
      for: pay(request),
      gas: '65000',
      max_fee_per_gas: '2000000000',
    },
    unsigned: eth([0, ETH.chain_index, 0], { to: source, value: 65_000n * 2_000_000_000n }),
    ...(approvals.length === 0 ? {} : { policy: { approvals } }),
  })
  refused(await cluster.post(1, '/sign', order([])), 'POLICY_APPROVAL')
  const approvals = ['dan', 'erin'].map((by) => policy.decide(by, statement))
  signed(await cluster.post(1, '/sign', order(approvals)))
  const unsigned = usdt([1, ETH.chain_index, 0], SINK_ETH, 5_000_000n)
  const payment = { workspace: workspace.name, purpose: pay(request), unsigned, partner: 2 }
  refused(await cluster.post(1, '/sign', payment), 'POLICY_APPROVAL')
  signed(await cluster.post(1, '/sign', { ...payment, policy: { approvals } }))
})

test('a rejection is reported while an approval of the group is missing', async () => {
  const made = await Approved.start()
  const { policy } = made
  const request = await made.request()
  const { statement } = await made.judge(request)
  const dan = policy.decide('dan', statement)
  const rejection = (by: string) => policy.decide(by, statement, { decision: 'reject' })
  const judged = async (...decisions: object[]) =>
    (await made.judge(request, decisions)).rejected_by as string[]
  assert.deepEqual(await judged(dan, rejection('erin')), ['erin'])
  assert.deepEqual(await judged(dan, rejection('alice')), [])
  assert.deepEqual(await judged(dan, policy.decide('erin', statement), rejection('erin')), [])
  const forged = { ...rejection('erin'), by: 'dan' }
  const { rejected_by, ignored } = await made.judge(request, [forged])
  assert.deepEqual([rejected_by, ignored.length], [[], 1])
})

test('judging a request before its transaction exists states why it is refused, and records nothing', async () => {
  const made = await Approved.start([{ ...large, amount: { max: { ETH: '0.5' } } }])
  const { policy } = made
  const height = async () => (await cluster.get(1, '/status')).body.record.height as number
  const recorded = await height()
  const request = await made.request()
  const denied = await made.judge(request)
  assert.deepEqual([denied.effect, denied.refusal.code], ['deny', 'POLICY_DENIED'])
  assert.match(denied.refusal.message, /nearest rule is "large": amount: 1 ETH is above 0.5$/)
  refused(
    await cluster.post(1, '/policy/judge', { request: { ...request, body: '{}' } }),
    'NOT_AUTHENTIC',
  )
  refused(await cluster.post(1, '/policy/judge', { request, extra: 1 }), 'BAD_ORDER')
  refused(await cluster.post(1, '/policy/judge', { request, to_path: [1, 60, 5] }), 'BAD_ORDER')
  assert.equal(await height(), recorded)
  signed(await policy.present(2, policy.stop('carol')))
  refused(await cluster.post(3, '/policy/judge', { request }), 'POLICY_STOPPED')
})

test('a workspace without a policy is judged to have none', async () => {
  const workspace = await cluster.workspace()
  const caller = await workspace.caller()
  const request = await transfer(caller, {
    asset: 'ETH',
    amount: '1',
    destination_address: SINK_ETH,
  })
  const { body } = await cluster.post(1, '/policy/judge', { request })
  assert.deepEqual(body, { policy: null })
})
