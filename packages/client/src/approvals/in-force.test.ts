// Statements of signer nodes about the document in force, from a platform that lies.
import assert from 'node:assert/strict'
import { generateKeyPairSync, sign, type KeyObject } from 'node:crypto'
import { test } from 'node:test'
import { documentHash, type PolicyDocument } from '@custody/policy'
import { approvalOf, documentOf, NOW_S, trustOf } from '../../testing/approval-question.ts'
import { CustodyClient } from '../client.ts'
import type { ApprovalDetail } from '../types.ts'
import { ApprovalError, verifyPolicy, type PolicyQuestion } from './approvals.ts'
import { placeOf } from './parts.ts'

const identities = [1, 2, 3].map(() => generateKeyPairSync('ed25519'))
const trust = trustOf({
  nodes: identities.map(({ publicKey }, at) => ({
    node: at + 1,
    identity: publicKey.export({ type: 'spki', format: 'pem' }) as string,
  })),
})
const place = await placeOf(trust)
const document = documentOf({ nodes: place.nodes })
const next = documentOf({ nodes: place.nodes, number: 2, previous: documentHash(document) })

/** Signs a statement as a node does. `key`: of another node. */
function stated(
  node: number,
  of: PolicyDocument = document,
  {
    key,
    tag = 'policy-in-force',
    ...fields
  }: { key?: KeyObject; tag?: string; at?: number; [field: string]: unknown } = {},
) {
  const { mode, workspace, nodes } = place
  const word = {
    node,
    mode,
    nodes,
    workspace,
    number: of.number,
    hash: documentHash(of),
    at: NOW_S,
  }
  const signed = { ...word, ...fields }
  const text = `custody/${tag}/v1\n${JSON.stringify(signed)}`
  const identity = key ?? identities[node - 1]!.privateKey
  return { ...signed, signature: sign(null, Buffer.from(text), identity).toString('hex') }
}

const verify = (statements: unknown, more: Partial<PolicyQuestion> = {}, of = document) =>
  verifyPolicy({ policy: { document: of, statements }, trust, now_s: NOW_S, ...more })
const refuses = (code: string, promise: Promise<unknown>, what?: string) =>
  assert.rejects(
    promise,
    (error) => error instanceof ApprovalError && error.code === code,
    what ?? code,
  )

test('returns the document that two signer nodes state, with the time of the older statement', async () => {
  const policy = await verify([stated(3, document, { at: NOW_S - 9 }), stated(1)])
  assert.deepEqual(policy, {
    number: 1,
    hash: documentHash(document),
    document,
    stated_by: [1, 3],
    at: NOW_S - 9,
  })
  // A clock that is a little ahead, and a statement that was returned twice.
  const ahead = await verify([stated(1), stated(2, document, { at: NOW_S + 60 }), stated(2)])
  assert.deepEqual(ahead.stated_by, [1, 2])
})

test('attack: statements that do not prove the document are not counted', async () => {
  const thief = generateKeyPairSync('ed25519').privateKey
  const moved = stated(2, document, { workspace: 'other' })
  for (const [what, second] of Object.entries({
    'the same node': stated(1),
    'an unknown node': { ...stated(1), node: 4 },
    'the signature of another node': { ...stated(1), node: 2 },
    'another key': stated(2, document, { key: thief }),
    'another document': stated(2, next),
    'another document, with the fields of this one': {
      ...stated(2, next),
      number: 1,
      hash: documentHash(document),
    },
    'another workspace': moved,
    'another workspace, with the fields of this one': { ...moved, workspace: place.workspace },
    'another installation': stated(2, document, { nodes: 'ab'.repeat(32) }),
    'another mode': stated(2, document, { mode: 'local' }),
    'a statement of another kind': stated(2, document, { tag: 'policy-held' }),
    'too old': stated(2, document, { at: NOW_S - 301 }),
    'too old, with a later time': { ...stated(2, document, { at: NOW_S - 301 }), at: NOW_S },
    'of the future': stated(2, document, { at: NOW_S + 61 }),
    'a time of another form': { ...stated(2), at: String(NOW_S) },
    'no object': null,
  }))
    await refuses('NOT_STATED', verify([stated(1), second]), what)
  for (const statements of [undefined, null, {}, 'x', []])
    await refuses('NOT_STATED', verify(statements))
})

test('the greatest age is that of the caller', async () => {
  const old = [1, 2].map((node) => stated(node, document, { at: NOW_S - 30 }))
  assert.deepEqual((await verify(old, { max_age_s: 30 })).stated_by, [1, 2])
  await refuses('NOT_STATED', verify(old, { max_age_s: 29 }))
  for (const max_age_s of [-1, 0.5, NaN])
    await assert.rejects(verify(old, { max_age_s }), TypeError)
  await assert.rejects(verify(old, { now_s: 0.5 }), TypeError)
})

test('attack: a document of another installation, or none, is refused', async () => {
  const foreign = documentOf({ nodes: 'ab'.repeat(32) })
  await refuses('OTHER_PLACE', verify([stated(1, foreign), stated(2, foreign)], {}, foreign))
  for (const policy of [null, {}, { document: null }, { document: {} }, { document: 'x' }])
    await refuses('DOCUMENT', verifyPolicy({ policy, trust, now_s: NOW_S }))
})

test('the client verifies the policy, and states with an approval which nodes have its document in force', async () => {
  const detail = (await approvalOf({ document })) as unknown as ApprovalDetail
  const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 4096 })
  const clientOf = (answers: Record<string, unknown>) =>
    new CustodyClient({
      baseUrl: 'http://127.0.0.1',
      apiKey: '4f7bd0a2-6f0e-4b5c-9d3e-2a8f1c5b7e90',
      privateKey: privateKey.export({ type: 'pkcs8', format: 'pem' }) as string,
      trust,
      fetch: async (url: string | URL | Request) => {
        const { pathname } = new URL(url instanceof Request ? url.url : url)
        return Response.json(answers[pathname] ?? {}, { status: pathname in answers ? 200 : 404 })
      },
    })
  const policy = { document, statements: [stated(1), stated(2)] }
  const versions = { data: [{ document }] }
  const client = clientOf({ '/dac/v1/policy': policy })
  assert.deepEqual((await client.policy.verify({ now_s: NOW_S })).stated_by, [1, 2])
  const { is_own, stated_by } = (await client.approvals.verify(detail, { now_s: NOW_S })).policy
  assert.deepEqual([is_own, stated_by], [false, [1, 2]])
  const late = await client.approvals.verify(detail, { now_s: NOW_S + 301 })
  assert.deepEqual(late.policy.stated_by, [])
  const patient = { now_s: NOW_S + 301, max_age_s: 301 }
  assert.deepEqual((await client.approvals.verify(detail, patient)).policy.stated_by, [1, 2])
  // Statements about the next document say nothing about this one.
  const changed = clientOf({
    '/dac/v1/policy': { document, statements: [stated(1, next), stated(2, next)] },
    '/dac/v1/policy/versions': versions,
  })
  assert.deepEqual((await changed.approvals.verify(detail, { now_s: NOW_S })).policy.stated_by, [])
  await refuses('NOT_STATED', changed.policy.verify({ now_s: NOW_S }))
})
