// A service that verifies, signs and sends decisions, against a server that verifies each request.
import assert from 'node:assert/strict'
import { generateKeyPairSync } from 'node:crypto'
import { after, before, test } from 'node:test'
import {
  checkDocument,
  compile,
  documentHash,
  verifyStatement,
  type PolicyDocument,
} from '@custody/policy'
import { allow, documentWith, keyOf } from '../../../policy/testing/documents.ts'
import { signWith } from '../../../policy/testing/statements.ts'
import { approvalWith } from '../../testing/approval-fixture.ts'
import { TestServer } from '../../testing/server.ts'
import { CustodyClient, type Trust } from '../index.ts'
import {
  ApprovalError,
  keySigner,
  signDecision,
  type SignedDecision,
  type StatementSigner,
} from './approvals.ts'
import { decisionStatement, placeOf, type DetailedApproval } from './parts.ts'

const NOW_S = 1_900_000_000
const API_KEY = 'api-alice'
const pair = generateKeyPairSync('rsa', { modulusLength: 4096 })
const trust: Trust = {
  version: 1,
  network: 'local',
  workspace: 'acme',
  sub_account: 'main',
  sub_account_index: 1,
  nodes: [1, 2, 3].map((node) => ({
    node,
    identity: generateKeyPairSync('ed25519').publicKey.export({
      type: 'spki',
      format: 'pem',
    }) as string,
  })),
}
const place = await placeOf(trust)
const documentOf = (fields: Parameters<typeof documentWith>[1] = {}): PolicyDocument =>
  checkDocument(
    documentWith([allow('large', { approvals: [{ group: 'compliance', k: 1 }] })], {
      mode: 'local',
      nodes: place.nodes,
      ...fields,
    }),
  )
const document = documentOf()
const approvalOf = (of: PolicyDocument): Promise<DetailedApproval> =>
  approvalWith({
    document: of,
    registry: place.registry,
    apiKey: API_KEY,
    privateKey: pair.privateKey,
    now_s: NOW_S,
    payee: '0xd8dA6BF26964aF9D7eEd9e03E53415D37aA96045',
  })
const approval = {
  ...(await approvalOf(document)),
  needs: [{ group: 'compliance', k: 1, have: 0 }],
}
const pemOf = (name: string): string =>
  keyOf(name).privateKey.export({ type: 'pkcs8', format: 'pem' }) as string

let server: TestServer
let custody: CustodyClient
before(async () => {
  server = await TestServer.start(API_KEY, pair.publicKey)
  custody = new CustodyClient({
    baseUrl: server.url,
    apiKey: API_KEY,
    privateKey: pair.privateKey,
    trust,
  })
})
after(() => server.stop())

const answer = (value: object) => ({ body: JSON.stringify(value) })
const at = { now_s: NOW_S }
const fails = (code: string, work: Promise<unknown>) =>
  assert.rejects(work, (error) => {
    assert.ok(error instanceof ApprovalError, String(error))
    assert.equal(error.code, code, error.message)
    return true
  })

for (const decision of ['approve', 'reject'] as const)
  test(`verifies a transfer and sends a decision to ${decision} that the nodes would count`, async () => {
    const result = { id: approval.id, state: 'approved', needs: [] }
    server.script(answer(approval), answer({ document }), answer(result))
    const verified = await custody.approvals.verify(approval.id, at)
    assert.equal(verified.policy.is_own, false)
    const signer = keySigner(pemOf('compliance'))
    assert.deepEqual(await custody.approvals[decision](verified, signer, at), result)
    const [, , sent] = server.seen
    assert.deepEqual([sent?.method, sent?.url], ['POST', `/dac/v1/approvals/${approval.id}`])
    const { signature, ...fields } = JSON.parse(sent?.body ?? '') as SignedDecision
    assert.deepEqual(fields, {
      by: 'compliance',
      key: 'k1',
      decision,
      at: NOW_S,
      expires: NOW_S + 86_400,
    })
    const { v: _, action, facts, ...base } = approval.statement
    const payment = { base, action, facts } as Parameters<typeof decisionStatement>[0]
    const statement = decisionStatement(payment, fields)
    verifyStatement(
      compile(document, place.registry),
      { statement, signature },
      { now_s: NOW_S, suspended: new Set() },
    )
  })

test('reads the documents that the platform returns, and earlier ones for earlier decisions', async () => {
  const next = documentOf({ number: 2, previous: documentHash(document) })
  const current = await approvalOf(next)
  const { v: _, action, facts, ...base } = approval.statement
  const payment = { base, action, facts } as Parameters<typeof decisionStatement>[0]
  const signer = { by: 'compliance', key: 'k1', decision: 'approve' as const }
  const times = { at: NOW_S - 5, expires: NOW_S + 60 }
  const { signature } = signWith(
    keyOf('compliance'),
    decisionStatement(payment, { ...signer, ...times }),
  )
  const have = [{ ...signer, ...times, signature }]
  const versions = answer({ data: [{ document: next }, { document }], next: null })
  server.script(answer({ ...current, have }), answer({ document: next }), versions)
  const verified = await custody.approvals.verify(current.id, at)
  assert.equal(verified.decisions[0]?.status, 'superseded')
  assert.deepEqual(
    server.seen.map(({ url }) => url),
    [`/dac/v1/approvals/${current.id}`, '/dac/v1/policy', '/dac/v1/policy/versions?limit=20'],
  )
  // The transfer was judged by the earlier document, and the next one is in force.
  server.script(answer(approval), answer({ document: next }), versions)
  await fails('OLDER_DOCUMENT', custody.approvals.verify(approval.id, at))
  server.script(answer(approval), answer({ document: null }), answer({ data: [] }))
  await fails('DOCUMENT', custody.approvals.verify(approval.id, at))
})

test('trusts only the own documents if there are any, and verifies a stored response', async () => {
  server.script()
  const documents = [JSON.stringify(document)]
  const verified = await custody.approvals.verify(approval as never, { ...at, documents })
  assert.equal(verified.policy.is_own, true)
  assert.deepEqual(server.seen, [])
  const other = documentOf({ number: 2, previous: documentHash(document) })
  await fails(
    'DOCUMENT',
    custody.approvals.verify(approval as never, { ...at, documents: [other] }),
  )
  const untrusting = new CustodyClient({
    baseUrl: server.url,
    apiKey: API_KEY,
    privateKey: pair.privateKey,
  })
  await assert.rejects(untrusting.approvals.verify(approval.id), TypeError)
})

test('an empty list of own documents accepts none, also none of the platform', async () => {
  server.script(answer(approval))
  await fails('DOCUMENT', custody.approvals.verify(approval.id, { ...at, documents: [] }))
  assert.equal(server.seen.length, 1)
})

test('reads the trust file again after a failure', async () => {
  const nodes = [...trust.nodes]
  const client = new CustodyClient({
    baseUrl: server.url,
    apiKey: API_KEY,
    privateKey: pair.privateKey,
    trust: { ...trust, nodes },
  })
  const verify = () => client.approvals.verify(approval as never, { ...at, documents: [document] })
  const [last] = nodes.splice(2)
  await assert.rejects(verify(), { code: 'TRUST' })
  nodes.push(last!)
  assert.equal((await verify()).id, approval.id)
})

test('signs nothing for a closed transfer, with another key, or that was not verified', async () => {
  const documents = [document]
  const verified = await custody.approvals.verify(approval as never, { ...at, documents })
  const signer = keySigner(pemOf('compliance'))
  const sign = (by: StatementSigner, more: object = {}) =>
    signDecision(verified, 'approve', by, { ...at, ...more })
  const other = generateKeyPairSync('ed25519').privateKey
  const pem = other.export({ type: 'pkcs8', format: 'pem' }) as string
  await fails('SIGNER', sign(keySigner(pem)))
  await fails('SIGNER', sign(signer, { person: 'alice' }))
  await fails('SIGNER', sign(signer, { valid_s: 8 * 86_400 }))
  // A service that returns the signature of another key.
  await fails('SIGNER', sign({ ...keySigner(pem), spki: signer.spki }))
  await fails('SHAPE', signDecision({ ...verified }, 'approve', signer, at))
  const closed = await custody.approvals.verify({ ...approval, state: 'approved' } as never, {
    documents,
  })
  await fails('CLOSED', signDecision(closed, 'approve', signer, at))
  const { sentences } = await sign(signer)
  assert.match(sentences[0] ?? '', /^compliance approves the following/)
})
