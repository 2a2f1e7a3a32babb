// Persons of enrolments at three real nodes: whose key it is, and whose word about it counts.
import { enrolmentApproval } from '@custody/policy'
import { fingerprintOfKey, parsePublicKey } from '@custody/request-auth'
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { after, before, test } from 'node:test'
import { TestPolicy } from '../../testing/policy-cluster.ts'
import {
  callerPem,
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
import { enrolmentHash } from '../keys/confirmation.ts'

const ETHER = 10n ** 18n
const large = {
  id: 'large',
  effect: 'allow',
  match: { action: ['transfer'], assets: 'any' },
  approvals: [{ group: 'treasury', k: 2 }],
}
const NO_OWNER =
  /the API key has no owner, so the approval of its owner cannot be excluded; enrol a key with --person, or list it in people\[\]\.api_keys/

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

  /** @param listed API key that the document lists for Frank */
  static async start(listed: string = randomUUID(), fields: object = {}): Promise<Owned> {
    const workspace = await cluster.workspace()
    const policy = new TestPolicy(cluster, workspace, [large], listed, fields)
    await policy.install()
    return new Owned(workspace, policy)
  }

  /** Enrols an API key at nodes 1, 2 and 3 with these persons; undefined: without a person. */
  async enrol(
    persons: readonly (string | undefined)[],
    api_key: string = randomUUID(),
  ): Promise<Caller> {
    for (const [at, person] of persons.entries())
      await cluster.enrol(at + 1, {
        api_key,
        workspace: this.workspace.name,
        sub_account: 1,
        ...(person === undefined ? {} : { person }),
      })
    return { api_key, sub_account: 1 }
  }

  request(caller: Caller) {
    return transfer(caller, { asset: 'ETH', amount: '1', destination_address: SINK_ETH })
  }

  async judge(request: object, decisions: object[] = [], node = 1): Promise<Json> {
    const answer = await cluster.post(node, '/policy/judge', { request, decisions })
    signed(answer)
    return answer.body
  }

  async send(
    request: object,
    approvals: object[],
    pair: readonly [number, number] = [1, 2],
    more: object = {},
  ): Promise<Answer> {
    const answer = await cluster.post(pair[0], '/sign', {
      workspace: this.workspace.name,
      purpose: pay(request as Parameters<typeof pay>[0]),
      unsigned: eth([1, ETH.chain_index, 0], { value: ETHER, nonce: this.#nonce }),
      partner: pair[1],
      ...(approvals.length === 0 ? {} : { policy: { approvals } }),
      ...more,
    })
    if (answer.status === 200) this.#nonce++
    return answer
  }
}

test('a key with a person passes rules with approvals, and its person cannot approve', async () => {
  const made = await Owned.start()
  const caller = await made.enrol(['dan', 'dan', 'dan'])
  const request = await made.request(caller)
  const { effect, statement } = await made.judge(request)
  assert.equal(effect, 'approve')
  const by = (name: string) => made.policy.decide(name, statement)
  const own = await made.send(request, [by('dan'), by('erin')])
  refused(own, 'POLICY_APPROVAL')
  assert.match(own.body.message, /missing: 1 of treasury/)
  const judged = await made.judge(request, [by('dan'), by('erin'), by('frank')], 3)
  assert.deepEqual([judged.effect, judged.approved_by], ['allow', ['erin', 'frank']])
  signed(await made.send(request, [by('erin'), by('frank')], [2, 3]))
  const { method, uri, body } = request
  const unsigned = { workspace: made.workspace.name, api_key: caller.api_key, method, uri, body }
  const dryRun = await cluster.post(2, '/policy/evaluate', unsigned)
  assert.equal(dryRun.body.effect, 'approve')
})

test('a key without a person, or of a person who is not in the document, has no owner', async () => {
  const made = await Owned.start()
  for (const person of [undefined, 'stranger']) {
    const caller = await made.enrol([person, person, person])
    const request = await made.request(caller)
    const judged = await made.judge(request)
    assert.equal(judged.effect, 'deny')
    assert.match(judged.refusal.message, NO_OWNER)
    refused(await made.send(request, []), 'POLICY_DENIED')
  }
})

test('attack: an operator alone, whose node has the person, gets no signature', async () => {
  const made = await Owned.start()
  const caller = await made.enrol(['dan', undefined, undefined])
  const request = await made.request(caller)
  const { effect, statement } = await made.judge(request)
  assert.equal(effect, 'approve')
  const both = ['erin', 'frank'].map((name) => made.policy.decide(name, statement))
  assert.equal((await made.judge(request, both)).effect, 'allow')
  for (const pair of [[1, 2] as const, [2, 1] as const, [3, 1] as const])
    refused(await made.send(request, both, pair), 'POLICY_DENIED')
})

test('attack: an operator who states another person cannot make the requester an approver', async () => {
  const made = await Owned.start()
  const caller = await made.enrol(['dan', 'frank', 'dan'])
  const request = await made.request(caller)
  const { statement } = await made.judge(request)
  const by = (name: string) => made.policy.decide(name, statement)
  const danAndErin = [by('dan'), by('erin')]
  assert.equal((await made.judge(request, danAndErin, 2)).effect, 'allow')
  for (const pair of [[1, 2] as const, [2, 1] as const])
    refused(await made.send(request, danAndErin, pair), 'POLICY_APPROVAL')
  signed(await made.send(request, [by('erin'), by('frank')], [3, 1]))
})

test('attack: the word of the platform about a person does not count', async () => {
  const made = await Owned.start()
  const caller = await made.enrol([undefined, undefined, undefined])
  const request = await made.request(caller)
  const claims: object[] = [
    { person: 'dan' },
    { policy: { person: 'dan' } },
    { purpose: Object.assign({}, pay(request), { person: 'dan' }) },
    { purpose: pay({ ...request, person: 'dan' } as typeof request) },
    { purpose: pay({ ...request, enrolment: { person: 'dan' } } as typeof request) },
  ]
  for (const claim of claims) {
    const { status } = await made.send(request, [], [1, 2], claim)
    assert.ok(status >= 400 && status < 500, JSON.stringify(claim))
  }
  const judged = await cluster.post(1, '/policy/judge', { request, person: 'dan' })
  assert.notEqual(judged.body.effect, 'approve')
})

test('peers confirm an enrolment of a backup with the same person only', () => {
  const common = {
    api_key: 'key',
    public_key_pem: callerPem,
    role: 'full' as const,
    workspace: 'acme',
    sub_account: 1,
    sub_account_name: 'main',
    revoked: false,
  }
  const hashes = [undefined, 'dan', 'erin'].map((person) => enrolmentHash({ ...common, person }))
  assert.equal(new Set([...hashes, enrolmentHash(common)]).size, 3)
})

test('a document that lists the key for another person takes precedence', async () => {
  const key = randomUUID()
  const made = await Owned.start(key)
  const caller = await made.enrol(['dan', 'dan', 'dan'], key)
  const request = await made.request(caller)
  const { statement } = await made.judge(request)
  const by = (name: string) => made.policy.decide(name, statement)
  refused(await made.send(request, [by('frank'), by('erin')]), 'POLICY_APPROVAL')
  signed(await made.send(request, [by('dan'), by('erin')]))
})

test('an enrolment cannot get, lose or change its person', async () => {
  const made = await Owned.start()
  const common = {
    public_key_pem: callerPem,
    role: 'full',
    workspace: made.workspace.name,
    sub_account: 'sub-1',
  }
  for (const [first, others] of [
    ['dan', ['erin', undefined]],
    [undefined, ['dan']],
  ] as const) {
    const { api_key } = await made.enrol([first])
    for (const person of others)
      refused(
        await cluster.operator(1, 'enrol', { ...common, api_key, person }),
        'ENROLMENT_CONFLICT',
      )
    const again = await cluster.operator(1, 'enrol', { ...common, api_key, person: first })
    assert.deepEqual([again.status, again.body.new, again.body.person], [200, false, first])
  }
  const wrong = { ...common, api_key: randomUUID(), person: 'Dan Brown' }
  assert.equal((await cluster.operator(1, 'enrol', wrong)).status, 400)
})

test('people approve the person of an enrolment, and approvals of another person do not count', async () => {
  const enrolment = { approvals: [{ group: 'treasury', k: 2 }] }
  const made = await Owned.start(randomUUID(), { enrolment })
  const { api_key } = await made.enrol(['dan', 'dan', 'dan'])
  const fingerprint = fingerprintOfKey(parsePublicKey(callerPem))
  const facts = { api_key, fingerprint, role: 'full', sub_account: 'sub-1' } as const
  const { document, hash } = made.policy
  const present = (shown: object) => {
    const meaning = enrolmentApproval({ document, hash } as never, { ...facts, ...shown })
    const approvals = ['erin', 'frank'].map((by) => made.policy.statement(by, meaning))
    const item = { kind: 'approved', workspace: made.workspace.name, approvals }
    return cluster.post(1, '/policy/present', { item })
  }
  const view = async (): Promise<Json> =>
    (await cluster.post(1, '/policy', { workspace: made.workspace.name })).body
  const before = await view()
  assert.deepEqual(before.enrolments, [{ ...facts, person: 'dan' }])
  assert.deepEqual(before.persons, [{ api_key, person: 'dan' }])
  for (const other of [{}, { person: 'erin' }]) {
    await present(other)
    assert.equal((await view()).enrolments.length, 1, JSON.stringify(other))
  }
  signed(await present({ person: 'dan' }))
  assert.deepEqual((await view()).enrolments, [])
})
