// The owner of an API key, as the operators of three real nodes state it: what a requester, an operator
// alone, or a platform can have approved.
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { after, before, test } from 'node:test'
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
  type Answer,
  type Caller,
  type Json,
  type Workspace,
} from '../../testing/signer-cluster.ts'

const ETHER = 10n ** 18n
/** `treasury` has Dan, Erin and Frank. */
const rules = [
  {
    id: 'large',
    effect: 'allow',
    match: { action: ['transfer'], assets: 'any' },
    approvals: [{ group: 'treasury', k: 2 }],
  },
]
type Pair = readonly [number, number]
const PAIRS: readonly Pair[] = [
  [1, 2],
  [2, 3],
  [3, 1],
]

let cluster: SignerCluster
before(async () => {
  cluster = await SignerCluster.start({ engine: 'double' })
})
after(async () => {
  await cluster.stop()
})

class Owned {
  readonly workspace: Workspace
  readonly policy: TestPolicy
  #nonce = 0

  private constructor(workspace: Workspace, policy: TestPolicy) {
    this.workspace = workspace
    this.policy = policy
  }

  /** @param owner API key that the document lists for Frank */
  static async start(owner: string = randomUUID()): Promise<Owned> {
    const workspace = await cluster.workspace()
    const policy = new TestPolicy(cluster, workspace, rules, owner)
    await policy.install()
    return new Owned(workspace, policy)
  }

  /** Enrols an API key, with the person that the operator of each node names; null: none. */
  async enrol(persons: readonly (string | null)[], api_key: string = randomUUID()) {
    for (const [at, person] of persons.entries())
      await cluster.enrol(at + 1, {
        api_key,
        workspace: this.workspace.name,
        sub_account: 1,
        ...(person === null ? {} : { person }),
      })
    return { api_key, sub_account: 1 }
  }

  async judge(caller: Caller, decisions: object[] = [], node = 1): Promise<Json> {
    const request = await this.#request(caller)
    const answer = await cluster.post(node, '/policy/judge', { request, decisions })
    signed(answer)
    return { ...answer.body, request }
  }

  #request = (caller: Caller) =>
    transfer(caller, { asset: 'ETH', amount: '1', destination_address: SINK_ETH })

  /** Requests the signature of a payment that these people have approved. */
  async send(caller: Caller, people: readonly string[], pair: Pair = [1, 2]): Promise<Answer> {
    const { statement, request } = await this.judge(caller, [], pair[0])
    const approvals = people.map((by) => this.policy.decide(by, statement))
    const answer = await cluster.post(pair[0], '/sign', {
      workspace: this.workspace.name,
      purpose: pay(request),
      unsigned: eth([1, ETH.chain_index, 0], { value: ETHER, nonce: this.#nonce, to: SINK_ETH }),
      partner: pair[1],
      policy: { approvals },
    })
    if (answer.status === 200) this.#nonce++
    return answer
  }
}

test('the person of an enrolment owns the key, and cannot approve what it requests', async () => {
  const made = await Owned.start()
  const caller = await made.enrol(['dan', 'dan', 'dan'])
  for (const pair of PAIRS) {
    refused(await made.send(caller, ['dan', 'erin'], pair), 'POLICY_APPROVAL')
    signed(await made.send(caller, ['erin', 'frank'], pair))
  }
})

test('a key without a person, or with one who is not in the document, has no owner', async () => {
  const made = await Owned.start()
  for (const person of [null, 'zoe']) {
    const caller = await made.enrol([person, person, person])
    const { effect, refusal } = await made.judge(caller)
    assert.deepEqual([effect, refusal.code], ['deny', 'POLICY_DENIED'])
    assert.match(refusal.message, /the API key has no owner.*enrol a key with --person/)
    refused(await made.send(caller, ['erin', 'frank']), 'POLICY_DENIED')
  }
})

test('the document comes first: the person of an enrolment never replaces its owner', async () => {
  const owner = randomUUID()
  const made = await Owned.start(owner)
  const caller = await made.enrol(['dan', 'dan', 'dan'], owner)
  for (const pair of PAIRS) {
    refused(await made.send(caller, ['dan', 'frank'], pair), 'POLICY_APPROVAL')
    signed(await made.send(caller, ['dan', 'erin'], pair))
  }
})

test('attack: one operator cannot name the owner, or another one, for all nodes', async () => {
  const made = await Owned.start()
  const half = await made.enrol(['dan', null, null])
  for (const pair of PAIRS.filter((each) => each.includes(1)))
    refused(await made.send(half, ['erin', 'frank'], pair), 'POLICY_DENIED')
  // Dan's own operator names another person, so that Dan could approve.
  const moved = await made.enrol(['erin', 'dan', 'dan'])
  for (const pair of PAIRS)
    refused(await made.send(moved, ['dan', 'frank'], pair), 'POLICY_APPROVAL')
})

test('an enrolment cannot be repeated with another person, and says its own', async () => {
  const made = await Owned.start()
  const { api_key } = await made.enrol(['dan', 'dan', 'dan'])
  for (const person of ['erin', null])
    await assert.rejects(made.enrol([person], api_key), /ENROLMENT_CONFLICT/)
  await assert.rejects(made.enrol(['Not A Person']), /BAD_ORDER.*person/)
  await made.enrol(['dan'], api_key)
  const [answer] = await cluster.everywhere('enrolment', { api_key })
  assert.equal(answer?.body.person, 'dan')
  const view = await cluster.post(1, '/policy', { workspace: made.workspace.name })
  assert.deepEqual(view.body.persons, { [api_key]: 'dan' })
})
