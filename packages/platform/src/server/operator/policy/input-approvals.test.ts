// The commands "policy approve-enrolment" and "policy approve-order" at three real signer nodes.
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { keyOf } from '../../../../../policy/testing/documents.ts'
import { TestPolicy } from '../../../../../signer/testing/policy-cluster.ts'
import {
  callerPem,
  SignerCluster,
  type Workspace,
} from '../../../../../signer/testing/signer-cluster.ts'
import { enrol } from '../cli/api-user.ts'
import { approveEnrolment, approveOrder, unconfirmed } from '../cli/policy-inputs.ts'
import { show } from '../cli/policy.ts'
import { present } from '../cli/signer-policy.ts'
import type { Outcome, Values } from '../cli/typed.ts'

const workspace = 'acme'
const home = mkdtempSync(join(tmpdir(), 'custody-inputs-'))
let cluster: SignerCluster
before(async () => {
  cluster = await SignerCluster.start({ engine: 'double' })
  const enrolment = { approvals: [{ group: 'treasury', k: 2 }] }
  await new TestPolicy(cluster, { name: workspace } as Workspace, [], 'api-frank', {
    enrolment,
    orders: enrolment,
  }).install()
  mkdirSync(join(home, 'signers', 'platform'), { recursive: true })
  writeFileSync(join(home, 'signers', 'platform', 'peers.json'), JSON.stringify(cluster.peers))
  for (const name of ['dan', 'erin', 'frank', 'alice'])
    writeFileSync(
      join(home, `${name}.pem`),
      keyOf(name).privateKey.export({ type: 'pkcs8', format: 'pem' }),
    )
  writeFileSync(join(home, 'caller.pub'), callerPem)
})
after(async () => {
  await cluster.stop()
  rmSync(home, { recursive: true, force: true })
})

const textOf = ({ text = '' }: Outcome): string => [text].flat().join('\n')
const approve = async (apiKey: string, as: string, values: Values = {}): Promise<Outcome> =>
  approveEnrolment({
    home,
    words: [],
    values: { workspace, 'api-key': apiKey, as, key: join(home, `${as}.pem`), ...values },
  })

/** Enrols a new API key at all nodes, and returns the key and what the operator reads. */
async function enrolled(fields: Values = {}): Promise<{ apiKey: string; text: string }> {
  const apiKey = randomUUID()
  const outcome = await enrol({
    home,
    words: [],
    values: {
      workspace,
      'sub-account': 'main',
      role: 'full',
      'public-key': join(home, 'caller.pub'),
      'api-key': apiKey,
      ...fields,
    },
  })
  return { apiKey, text: textOf(outcome) }
}
const shown = async (): Promise<string> =>
  textOf(await show({ home, words: [], values: { workspace } }))

test('an enrolment is approved at all nodes by the last approval that it requires', async () => {
  const { apiKey, text } = await enrolled()
  assert.match(text, /signer 2: .*, NOT APPROVED$/m)
  assert.match(text, new RegExp(`policy approve-enrolment --workspace acme --api-key ${apiKey}`))
  const line = new RegExp(
    `^NOT APPROVED at signer 1, signer 2, signer 3: API key ${apiKey}, full, sub-account main, public key SHA-256 [0-9a-f]{64}$`,
    'm',
  )
  assert.match(await shown(), line)
  const first = await approve(apiKey, 'dan')
  assert.equal(first.result['state'], 'waiting')
  assert.match(textOf(first), /approvals so far: 1 of 2 of treasury/)
  // The same person again is no second one.
  assert.equal((await approve(apiKey, 'dan')).result['state'], 'waiting')
  assert.match(await shown(), line)
  const last = await approve(apiKey, 'erin')
  assert.deepEqual([last.result['state'], last.result['approved']], ['approved', [1, 2, 3]])
  assert.doesNotMatch(await shown(), /NOT APPROVED/)
  await assert.rejects(approve(apiKey, 'frank'), /no signer node requires further approvals/)
  // The operator of a node can present the same file.
  const file = String(last.result['file'])
  const [node] = cluster.peers.nodes
  const again = await present({ home, words: [], values: { home: node!.home, file } })
  assert.match(textOf(again), /had it on record already/)
})

test('a wrong fingerprint, person or API key is refused, and nothing is written', async () => {
  const { apiKey } = await enrolled()
  const file = join(home, 'none.json')
  await assert.rejects(
    approve(apiKey, 'dan', { file, confirm: 'ab'.repeat(32) }),
    /^OperatorError: --confirm: the signer nodes have [0-9a-f]{64} on record$/,
  )
  await assert.rejects(approve(apiKey, 'zoe', { file, key: join(home, 'dan.pem') }), /--as: /)
  await assert.rejects(approve(randomUUID(), 'dan', { file }), /--api-key: .* is not enrolled/)
  await assert.rejects(approve('x', 'dan', { file }), /--api-key: must be a UUID/)
  assert.throws(() => readFileSync(file), /ENOENT/)
  // An approval of another group does not count.
  assert.match(textOf(await approve(apiKey, 'alice', { file })), /0 of 2 of treasury/)
})

test('approvals of another enrolment in the file do not count', async () => {
  const [one, two] = [await enrolled(), await enrolled({ 'sub-account': 'other' })]
  const file = join(home, 'shared.json')
  await approve(one.apiKey, 'dan', { file })
  const second = await approve(two.apiKey, 'erin', { file })
  assert.equal(second.result['state'], 'waiting')
  await assert.rejects(
    approve(two.apiKey, 'dan', { file: join(home, 'dan.pem') }),
    /--file: .* is not valid JSON/,
  )
  writeFileSync(file, JSON.stringify({ kind: 'resumed', approvals: [] }))
  await assert.rejects(
    approve(two.apiKey, 'dan', { file }),
    /is not a file that "policy approve-enrolment" or "policy approve-order" wrote/,
  )
})

test('nodes that have enrolled different values are reported, and nothing is signed', async () => {
  const apiKey = randomUUID()
  const common = { api_key: apiKey, public_key_pem: callerPem, workspace, sub_account: 'main' }
  for (const [node, role] of [
    [1, 'full'],
    [2, 'full'],
    [3, 'read-only'],
  ] as const)
    assert.equal((await cluster.operator(node, 'enrol', { ...common, role })).status, 200)
  await assert.rejects(
    approve(apiKey, 'dan'),
    /--api-key: signer 3 has role read-only, but signer 1/,
  )
})

const TO = '0x70997970C51812dc3A010C7d01b50e0d17dc79C8'
const approveOf = async (order: string, as: string, values: Values = {}): Promise<Outcome> =>
  approveOrder({
    home,
    words: [],
    values: { workspace, order, as, key: join(home, `${as}.pem`), ...values },
  })

/** Enters an order to drain the gas tank of ETH at all nodes. */
async function drained(fields: object = {}): Promise<string> {
  const order = randomUUID()
  const entered = { workspace, network: 'ETH', to_address: TO, order }
  for (const node of [1, 2, 3])
    assert.equal(
      (await cluster.operator(node, 'drain', { ...entered, ...(node === 3 ? fields : {}) })).status,
      200,
    )
  return order
}

test('an order is approved at all nodes by the last approval that it requires', async () => {
  const order = await drained()
  const line = `NOT APPROVED at signer 1, signer 2, signer 3: order ${order}: Send the whole balance of the gas tank of ETH, in ETH, to ${TO} without tag.`
  assert.ok((await shown()).split('\n').includes(line))
  const first = await approveOf(order, 'dan')
  assert.deepEqual([first.result['state'], first.result['to']], ['waiting', TO])
  assert.match(
    textOf(first),
    new RegExp(`^the order ${order} signs nothing yet: .*1 of 2 of treasury`),
  )
  const last = await approveOf(order, 'erin')
  assert.deepEqual([last.result['state'], last.result['approved']], ['approved', [1, 2, 3]])
  assert.doesNotMatch(await shown(), /NOT APPROVED at .*: order/)
  await assert.rejects(approveOf(order, 'frank'), /--order: no signer node requires further/)
})

test('an unknown order, one of another workspace, and one that the nodes do not agree on are refused', async () => {
  await assert.rejects(approveOf('none', 'dan'), /--order: no signer node .* has the order none/)
  const order = await drained({ to_address: '0x3C44CdDdB6a900fa2b585dd299e03d12FA4293BC' })
  await assert.rejects(approveOf(order, 'dan'), /--order: signer 3 has to_approve /)
  const foreign = { workspace: 'other', network: 'ETH', to_address: TO, order: 'foreign' }
  await cluster.operator(1, 'drain', foreign)
  await assert.rejects(approveOf('foreign', 'dan'), /--order: signer 1 has workspace other/)
  await assert.rejects(
    approveOf(await drained(), 'dan', { confirm: `${TO.slice(0, -1)}9` }),
    new RegExp(`--confirm: the signer nodes have ${TO} on record`),
  )
  const unstake = { workspace, network: 'TRX', action: 'unstake', resource: 'ENERGY', amount: '5' }
  await cluster.operator(1, 'tank-stake', { ...unstake, order: 'unstake' })
  await assert.rejects(approveOf('unstake', 'dan'), /--order: no signer node requires further/)
})

test('a node that has not been given an enrolment is not counted as one that approved it', async () => {
  const apiKey = randomUUID()
  const common = { public_key_pem: callerPem, workspace, sub_account: 'main', role: 'full' }
  for (const node of [1, 2])
    assert.equal(
      (await cluster.operator(node, 'enrol', { api_key: apiKey, ...common })).status,
      200,
    )
  await approve(apiKey, 'dan')
  const { result, text } = await approve(apiKey, 'erin')
  assert.deepEqual(result['approved'], [1, 2])
  assert.equal(text, `the API key ${apiKey} is approved at signer 1, signer 2`)
})

test('outside of the mode local, a person must confirm what only its source can confirm', () => {
  const value = 'ab'.repeat(32)
  const confirm = { value, with: 'the fingerprint with the requester' }
  assert.equal(unconfirmed('local', confirm, undefined), null)
  assert.equal(
    unconfirmed('mainnet', confirm, undefined),
    `compare the fingerprint with the requester, then repeat the command with --confirm ${value}`,
  )
  assert.equal(unconfirmed('mainnet', confirm, value), null)
  assert.throws(
    () => unconfirmed('mainnet', confirm, 'cd'.repeat(32)),
    /^OperatorError: --confirm: /,
  )
})
