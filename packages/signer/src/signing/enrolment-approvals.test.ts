// Approvals of enrolments at three real nodes: what an operator alone, or a platform, can have signed.
import { enrolmentApproval, type EnrolmentFacts } from '@custody/policy'
import { fingerprintOfKey, parsePublicKey } from '@custody/request-auth'
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { after, before, test } from 'node:test'
import { TestPolicy } from '../../testing/policy-cluster.ts'
import { restartRestored } from '../../testing/restored-record.ts'
import {
  callerPem,
  ETH,
  eth,
  now,
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
import { restoreHome } from '../setup.ts'

const ETHER = 10n ** 18n
const PAIRS = [
  [1, 2],
  [2, 3],
  [3, 1],
] as const
const rules = [{ id: 'all', effect: 'allow', match: { action: ['transfer'], assets: 'any' } }]
const enrolment = { approvals: [{ group: 'treasury', k: 2 }] }
const fingerprint = fingerprintOfKey(parsePublicKey(callerPem))

let cluster: SignerCluster
before(async () => {
  cluster = await SignerCluster.start()
})
after(async () => {
  await cluster.stop()
})

class Enrolling {
  readonly workspace: Workspace
  /** Enrolled before the policy. */
  readonly earlier: Caller
  readonly policy: TestPolicy
  #nonce = 0

  private constructor(workspace: Workspace, earlier: Caller, policy: TestPolicy) {
    this.workspace = workspace
    this.earlier = earlier
    this.policy = policy
  }

  static async start(fields: object = { enrolment }): Promise<Enrolling> {
    const workspace = await cluster.workspace()
    const earlier = await workspace.caller()
    const policy = new TestPolicy(cluster, workspace, rules, earlier.api_key, fields)
    await policy.install()
    return new Enrolling(workspace, earlier, policy)
  }

  /** Approvals of an API key by people, as the tests enrol it. */
  approve(
    { api_key }: Caller,
    people: readonly string[],
    shown: Partial<EnrolmentFacts> = {},
    fields: object = {},
  ): string[] {
    const { document, hash } = this.policy
    const own = { api_key, fingerprint, role: 'full', sub_account: 'sub-1' } as const
    const meaning = enrolmentApproval({ document, hash } as never, { ...own, ...shown })
    return people.map((by) => this.policy.statement(by, { ...meaning, ...fields }))
  }

  /** Presents approvals to one node, as the platform does. */
  present(node: number, approvals: readonly string[]): Promise<Answer> {
    const item = { kind: 'approved', workspace: this.workspace.name, approvals }
    return cluster.post(node, '/policy/present', { item })
  }

  /** Requests the signature of a transfer. */
  async sign(caller: Caller, pair: readonly [number, number] = [1, 2]): Promise<Answer> {
    const payment = { asset: 'ETH', amount: 1, destination_address: SINK_ETH }
    const unsigned = eth([caller.sub_account, ETH.chain_index, 0], {
      value: ETHER,
      nonce: this.#nonce,
    })
    const answer = await this.workspace.sign(pay(await transfer(caller, payment)), unsigned, pair)
    if (answer.status === 200) this.#nonce++
    return answer
  }

  async refusedByAll(caller: Caller): Promise<void> {
    for (const pair of PAIRS) refused(await this.sign(caller, pair), 'ENROLMENT_APPROVAL', 1)
  }

  /** What a node states about the API keys that lack approvals. */
  async pending(node: number): Promise<Json> {
    const { body } = await cluster.post(node, '/policy', { workspace: this.workspace.name })
    return body.enrolments
  }
}

test('a key that the operators enrol signs once people have approved it, whichever node was shown that', async () => {
  const made = await Enrolling.start()
  const caller = await made.workspace.caller()
  await made.refusedByAll(caller)
  const facts = { api_key: caller.api_key, fingerprint, role: 'full', sub_account: 'sub-1' }
  assert.deepEqual(await made.pending(1), [facts])
  const { body: shown } = await cluster.operator(2, 'enrolment', { api_key: caller.api_key })
  assert.equal(shown.needs_approval, true)
  // Keys from before the policy sign as before.
  signed(await made.sign(made.earlier))
  const presented = await made.present(3, made.approve(caller, ['dan', 'erin']))
  signed(presented)
  assert.deepEqual(presented.body.told.toSorted(), [1, 2])
  for (const pair of PAIRS) signed(await made.sign(caller, pair))
  for (const node of [1, 2, 3]) assert.deepEqual(await made.pending(node), [])
  const { body } = await cluster.operator(2, 'enrolment', { api_key: caller.api_key })
  assert.equal(body.needs_approval, false)
})

test('a key without approvals passes no judgement in advance and no dry run', async () => {
  const made = await Enrolling.start()
  const caller = await made.workspace.caller()
  const payment = { asset: 'ETH', amount: 1, destination_address: SINK_ETH }
  const request = await transfer(caller, payment)
  refused(await cluster.post(1, '/policy/judge', { request }), 'ENROLMENT_APPROVAL', 1)
  const { method, uri, body } = request
  const { api_key } = caller
  const dryRun = { workspace: made.workspace.name, api_key, method, uri, body }
  refused(await cluster.post(1, '/policy/evaluate', dryRun), 'ENROLMENT_APPROVAL', 1)
})

test('attack: approvals of another key, role, sub-account, of too few people, or expired ones', async () => {
  const made = await Enrolling.start()
  const [caller, other] = [await made.workspace.caller(), await made.workspace.caller()]
  const two = ['dan', 'erin']
  const at = Math.floor(Date.now() / 1000)
  const tries: [string, string[], string | null][] = [
    ['of another API key', made.approve(other, two), null],
    ['of another public key', made.approve(caller, two, { fingerprint: 'ab'.repeat(32) }), null],
    ['of another role', made.approve(caller, two, { role: 'read-only' }), null],
    ['of another sub-account', made.approve(caller, two, { sub_account: 'sub-2' }), null],
    ['of one person', made.approve(caller, ['dan']), 'BAD_POLICY'],
    ['of one person twice', made.approve(caller, ['dan', 'dan']), 'BAD_POLICY'],
    ['of another group', made.approve(caller, ['dan', 'alice']), 'BAD_POLICY'],
    [
      'with the ID of the API key only',
      made.approve(other, two, {}, { id: caller.api_key }),
      'BAD_POLICY',
    ],
    ['expired', made.approve(caller, two, {}, { at: at - 100, expires: at - 50 }), 'BAD_POLICY'],
    ['of another workspace', made.approve(caller, two, {}, { workspace: 'other' }), 'BAD_POLICY'],
    ['of another place', made.approve(caller, two, {}, { nodes: 'ab'.repeat(32) }), 'BAD_POLICY'],
  ]
  for (const [name, approvals, code] of tries) {
    const answer = await made.present(1, approvals)
    if (code === null) assert.equal(answer.status, 200, `${name}: ${JSON.stringify(answer.body)}`)
    else assert.equal(answer.body.error, code, `${name}: ${JSON.stringify(answer.body)}`)
    const payment = await made.sign(caller)
    assert.equal(
      payment.body.error,
      'ENROLMENT_APPROVAL',
      `${name}: ${JSON.stringify(payment.body)}`,
    )
  }
  signed(await made.present(1, made.approve(caller, two)))
  signed(await made.sign(caller))
})

test('attack: an operator alone cannot let a key sign by entering it again or by another name', async () => {
  const made = await Enrolling.start()
  const caller = await made.workspace.caller()
  for (const node of [1, 2, 3])
    await cluster.enrol(node, { ...caller, workspace: made.workspace.name })
  await made.refusedByAll(caller)
  signed(await made.present(1, made.approve(caller, ['dan', 'erin'])))
  const other = await made.workspace.caller(2)
  await made.refusedByAll(other)
})

test('a revoked key stays revoked, with approvals from before and after', async () => {
  const made = await Enrolling.start()
  const caller = await made.workspace.caller()
  await cluster.everywhere('revoke', { api_key: caller.api_key })
  signed(await made.present(1, made.approve(caller, ['dan', 'erin'])))
  for (const pair of PAIRS) refused(await made.sign(caller, pair), 'NOT_ENROLLED', 1)
  const again = await cluster.operator(1, 'enrol', {
    api_key: caller.api_key,
    public_key_pem: callerPem,
    role: 'full',
    workspace: made.workspace.name,
    sub_account: 'sub-1',
  })
  refused(again, 'ENROLMENT_CONFLICT')
})

test('a key that was never approved is entered again after the policy no longer requires it', async () => {
  const made = await Enrolling.start()
  const caller = await made.workspace.caller()
  // Without the policy, as the mode local permits.
  await cluster.everywhere('policy-uninstall', { workspace: made.workspace.name })
  refused(await made.sign(caller), 'ENROLMENT_APPROVAL', 1)
  for (const node of [1, 2, 3])
    await cluster.enrol(node, { ...caller, workspace: made.workspace.name })
  signed(await made.sign(caller))
})

test('a node restored from a backup has the same enrolments without approvals, and reads approvals', async () => {
  const made = await Enrolling.start()
  const [pending, approved] = [await made.workspace.caller(), await made.workspace.caller()]
  const file = join(cluster.home, `backup-${randomUUID()}.json`)
  signed(await cluster.operator(3, 'backup', { file }))
  signed(await made.present(1, made.approve(approved, ['dan', 'erin'])))
  await cluster.stopHere(3)
  const { home } = cluster.peers.nodes[2]!
  rmSync(home, { recursive: true })
  const recoverySecretFile = join(cluster.home, 'recovery-3')
  await restoreHome({ home, file, recoverySecretFile, print: null })
  await cluster.runHere(3)
  signed(await cluster.operator(3, 'restore', { file, recovery_secret_file: recoverySecretFile }))
  // It reads the document and the approvals from its peers.
  for (let left = 600; (await made.pending(3)).length !== 1; left--) {
    assert.ok(left > 0, 'the restored node did not read the approvals')
    await pause(100)
  }
  // Requests are dated by full seconds, and those from before the restoration are refused.
  for (const restored = now(); now() <= restored;) await pause(100)
  refused(await made.sign(pending, [3, 1]), 'ENROLMENT_APPROVAL', 1)
  signed(await made.sign(approved, [3, 1]))
  signed(await made.sign(approved, [2, 3]))
  refused(await made.sign(pending, [2, 3]), 'ENROLMENT_APPROVAL', 1)
})

test('a restored node that has not read its peers enrols nothing for a workspace with a policy', async () => {
  const made = await Enrolling.start()
  const caller = { api_key: randomUUID(), sub_account: 1 }
  await cluster.stopHere(1)
  await restartRestored(cluster, 2)
  await assert.rejects(
    cluster.enrol(2, { ...caller, workspace: made.workspace.name }),
    /POLICY_BEHIND/,
  )
  await cluster.runHere(1)
  await cluster.enrol(2, { ...caller, workspace: made.workspace.name })
  const { body } = await cluster.operator(2, 'enrolment', { api_key: caller.api_key })
  assert.equal(body.needs_approval, true)
})
