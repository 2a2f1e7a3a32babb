// The command "policy reset" at three real signer nodes, whose clocks are moved.
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { canonicalText, documentHash, type PolicyDocument } from '@custody/policy'
import { documentWith } from '../../../../../policy/testing/documents.ts'
import { possessionsOf } from '../../../../../policy/testing/governance.ts'
import { TestPolicy } from '../../../../../signer/testing/policy-cluster.ts'
import { SignerCluster, type Workspace } from '../../../../../signer/testing/signer-cluster.ts'
import { showAt } from '../cli/policy.ts'
import type { Outcome, Values } from '../cli/typed.ts'
import { nodeAt } from '../nodes.ts'
import type { PolicyView } from './nodes.ts'
import { resetLines } from './reset-lines.ts'
import { resetAt } from './reset.ts'

const DAY_S = 86_400
const WEEK_S = 7 * DAY_S
const workspace = 'acme'
const folder = mkdtempSync(join(tmpdir(), 'custody-reset-'))
let cluster: SignerCluster
let policy: TestPolicy
before(async () => {
  cluster = await SignerCluster.start({ engine: 'double' })
  policy = new TestPolicy(cluster, { name: workspace } as Workspace, [], 'api-frank')
  await policy.install()
})
after(async () => {
  await cluster.stop()
  rmSync(folder, { recursive: true, force: true })
})

const nodesAt = (...nodes: number[]) =>
  nodes.map((node) => nodeAt(cluster.peers.nodes[node - 1]!.home))
const textOf = ({ text = '' }: Outcome): string => [text].flat().join('\n')

/** Writes a policy file with the document that replaces the one in force. */
function fileOf(name: string, fields: object = {}): { file: string; document: PolicyDocument } {
  const { document: inForce, hash } = policy
  const { rules, ...rest } = inForce
  const groups = { ...inForce.groups, admins: ['dan', 'erin', 'frank'] }
  const next = { ...rest, number: 2, previous: hash, groups, ...fields }
  const document = documentWith(rules, next) as unknown as PolicyDocument
  const file = join(folder, name)
  writeFileSync(file, JSON.stringify({ document, possessions: possessionsOf(document) }))
  return { file, document }
}
const reset = (nodes: number[], values: Values): Promise<Outcome> =>
  resetAt(nodesAt(...nodes), { workspace, ...values })
const show = (...nodes: number[]): Promise<Outcome> => showAt(nodesAt(...nodes), workspace)

/** Repeats a call until its result meets a condition. Nodes ping each other every few seconds. */
async function until<T>(call: () => Promise<T>, meets: (value: T) => boolean): Promise<T> {
  for (let times = 0; ; times++) {
    const value = await call()
    if (meets(value)) return value
    assert.ok(times < 600, JSON.stringify(value))
    await pause(100)
  }
}

test('policy reset refuses a file that does not follow the policy in force', async () => {
  const { file } = fileOf('other.json', { previous: 'ab'.repeat(32) })
  await assert.rejects(reset([1], { file }), /--file: previous: signer 1 has policy 1 with hash/)
  const foreign = fileOf('foreign.json', { workspace: 'beta' }).file
  await assert.rejects(reset([1], { file: foreign }), /the document is for the workspace beta/)
  await assert.rejects(reset([1], {}), /--file is required/)
  await assert.rejects(reset([1], { cancel: true }), /no reset of acme was entered at signer 1/)
  await assert.rejects(reset([1], { cancel: true, file }), /without --file and --confirm/)
  const { document } = fileOf('unproven.json')
  writeFileSync(join(folder, 'unproven.json'), JSON.stringify(document))
  const unproven = reset([1], { file: join(folder, 'unproven.json') })
  await assert.rejects(unproven, /the proof of k1 of alice is missing/)
  const { file: right } = fileOf('right.json')
  await assert.rejects(
    reset([1], { file: right, confirm: 'ab'.repeat(32) }),
    /--confirm: the document/,
  )
  assert.deepEqual((await show(1, 2, 3)).result['resets'], [])
})

test('the platform cannot present a reset to a node', async () => {
  const { document } = fileOf('right.json')
  const possessions = possessionsOf(document).map((each) => JSON.stringify(each))
  const hash = documentHash(document)
  const words = [1, 2, 3].map((node) => ({
    node,
    workspace,
    number: 2,
    hash,
    given_at: 0,
    signature: 'ab'.repeat(64),
  }))
  const item = { kind: 'reset', workspace, document: canonicalText(document), possessions, words }
  const { status, body } = await cluster.post(1, '/policy/present', { item })
  assert.equal(`${status} ${body.error} ${body.code}`, '422 BAD_POLICY SIGNATURE')
})

test('a reset that the operators of all nodes enter is in force after seven days, also in the mode local', async () => {
  const { file, document } = fileOf('reset.json')
  const hash = documentHash(document)
  const one = await reset([1], { file })
  assert.match(
    textOf(one),
    /RESET: entered at signer 1, .* it waits for the operator of signer 2, signer 3$/,
  )
  await reset([2], { file })
  assert.match(textOf(await reset([2], { cancel: true })), /was withdrawn at signer 2/)
  await reset([2, 3], { file })
  const shown = await until(
    () => show(1, 2, 3),
    (outcome) => /in force from/.test(textOf(outcome)),
  )
  const [first] = shown.result['resets'] as { hash: string; acts_at: number; given_by: object[] }[]
  const since = first!.acts_at - WEEK_S
  assert.equal(first!.hash, hash)
  assert.equal(first!.given_by.length, 3)
  assert.ok(Math.abs(since - Date.now() / 1000) < 600)
  const { body } = await cluster.get(2, '/status')
  assert.equal(body.policy_resets, 1)

  // A node that is started again continues to wait.
  await cluster.restartHere(3)
  cluster.aheadMs = (WEEK_S - DAY_S) * 1000
  for (const node of [1, 2, 3])
    assert.equal((await cluster.post(node, '/policy', { workspace })).body.number, 1)
  cluster.aheadMs = (WEEK_S + 600) * 1000
  const after = await until(
    () => show(1, 2, 3),
    ({ result, exitCode }) => result['number'] === 2 && exitCode === 0,
  )
  assert.deepEqual(after.result['resets'], [])
  assert.deepEqual(after.result['held'], [1, 2, 3])
  assert.equal(after.result['hash'], hash)
  assert.equal((await cluster.get(2, '/status')).body.policy_resets, 0)
})

test('lists different resets separately', () => {
  const [one, other] = ['11'.repeat(32), '22'.repeat(32)]
  const viewOf = (node: number, hash: string): Pick<PolicyView, 'reset'> => ({
    reset: { number: 2, hash, given_by: [{ node, hash, given_at: 1 }], acts_at: null },
  })
  assert.deepEqual(resetLines([viewOf(1, one!), viewOf(2, other!), { reset: null }, {}]), [
    `RESET: entered at signer 1, to the policy with hash ${one}; it waits for the operator of signer 2, signer 3`,
    `RESET: entered at signer 2, to the policy with hash ${other}; it waits for the operator of signer 1, signer 3`,
  ])
})
