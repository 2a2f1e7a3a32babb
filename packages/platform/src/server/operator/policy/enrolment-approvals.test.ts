// The command "policy approve-enrolment" at three real signer nodes.
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
import { approveEnrolment, unconfirmed } from '../cli/policy-enrolment.ts'
import { show } from '../cli/policy.ts'
import { present } from '../cli/signer-policy.ts'
import type { Outcome, Values } from '../cli/typed.ts'

const workspace = 'acme'
const home = mkdtempSync(join(tmpdir(), 'custody-enrolment-'))
let cluster: SignerCluster
before(async () => {
  cluster = await SignerCluster.start()
  const enrolment = { approvals: [{ group: 'treasury', k: 2 }] }
  await new TestPolicy(cluster, { name: workspace } as Workspace, [], 'api-frank', {
    enrolment,
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
  await assert.rejects(approve(apiKey, 'frank'), /requires no further approvals/)
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
    /^OperatorError: --confirm: the public key enrolled at the signer nodes has the fingerprint [0-9a-f]{64}$/,
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
    /is not a file that "policy approve-enrolment" wrote/,
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

test('outside of the mode local, a person must confirm the fingerprint', () => {
  const fingerprint = 'ab'.repeat(32)
  assert.equal(unconfirmed('local', fingerprint, undefined), null)
  assert.equal(
    unconfirmed('mainnet', fingerprint, undefined),
    `compare the fingerprint with the requester, then repeat the command with --confirm ${fingerprint}`,
  )
  assert.equal(unconfirmed('mainnet', fingerprint, fingerprint), null)
  assert.throws(
    () => unconfirmed('mainnet', fingerprint, 'cd'.repeat(32)),
    /^OperatorError: --confirm: /,
  )
})
