import assert from 'node:assert/strict'
import { generateKeyPairSync, randomBytes, randomUUID } from 'node:crypto'
import { after, before, test } from 'node:test'
import { transactionId } from '@custody/request-auth'
import { CustodyClient, type FailureProof, type Transaction, type Void } from './index.ts'
import { Nodes } from '../testing/certified.ts'
import { TestServer, type Canned, type Seen } from '../testing/server.ts'

const API_KEY = '4f7bd0a2-6f0e-4b5c-9d3e-2a8f1c5b7e90'
const pair = generateKeyPairSync('rsa', { modulusLength: 4096 })
const nodes = new Nodes((bytes) => new Uint8Array(randomBytes(bytes)))
const NONCE = 'n-1'
const ID = transactionId(API_KEY, NONCE)
let server: TestServer

before(async () => {
  server = await TestServer.start(API_KEY, pair.publicKey)
})
after(() => server.stop())

const client = () =>
  new CustodyClient({
    baseUrl: server.url,
    apiKey: API_KEY,
    privateKey: pair.privateKey,
    trust: nodes.trust(),
  })
const json = (value: unknown): Canned => ({ body: JSON.stringify(value) })

function record(node: number, more: Partial<Void['record']> = {}): Void['record'] {
  return {
    node,
    intent: JSON.stringify(['pay', 'nonce', API_KEY, NONCE]),
    transaction_id: ID,
    rule: null,
    height: 7,
    voided_at: 1_700_000_000,
    signed: [],
    unfinished: 0,
    ...more,
  }
}
function signedVoid(
  node: number,
  more: Partial<Void['record']> = {},
  by = nodes,
  signer = node,
): Void {
  const failure = record(node, more)
  return {
    record: failure,
    signature: by.sign(signer, `custody/void/v2\n${JSON.stringify(failure)}`),
  }
}
const failed = (voids: unknown, more: Partial<Transaction> = {}) =>
  ({ id: ID, status: 'failed', sub_status: 'FAILED', hash: null, voids, ...more }) as Transaction
const own = { nonce: NONCE }

async function unproven(transaction: Transaction, what: string): Promise<FailureProof> {
  const proof = await client().verifyFailed(transaction, own)
  assert.equal(proof.proven, false, what)
  assert.ok(proof.reason, what)
  return proof
}

test('voids signed by two pinned nodes prove that a transaction failed', async () => {
  assert.deepEqual(await client().verifyFailed(failed([signedVoid(1), signedVoid(3)]), own), {
    proven: true,
    nodes: [1, 3],
    signed: [],
    reason: null,
  })
  assert.equal(
    (await client().verifyFailed(failed([signedVoid(1), signedVoid(2), signedVoid(3)]), { id: ID }))
      .proven,
    true,
  )
  await assert.rejects(
    new CustodyClient({
      baseUrl: server.url,
      apiKey: API_KEY,
      privateKey: pair.privateKey,
    }).verifyFailed(failed([]), own),
    TypeError,
  )
})

test('does not accept a failure without voids, with one void, or with a repeated void', async () => {
  const lists = [
    [],
    [signedVoid(1)],
    [signedVoid(1), signedVoid(1)],
    [signedVoid(1), signedVoid(1, { height: 8 })],
    undefined,
    null,
    'x',
    [null, {}, { record: null }, { record: {} }],
  ]
  for (const voids of lists) {
    await unproven(failed(voids), JSON.stringify(voids))
  }
})

test('refuses voids that are changed, of foreign nodes, or of a node under another number', async () => {
  const strangers = new Nodes((bytes) => new Uint8Array(randomBytes(bytes)))
  const changed = signedVoid(2, { signed: ['0xaa'] })
  const cases: Record<string, unknown> = {
    strangers: [signedVoid(1, {}, strangers), signedVoid(2, {}, strangers)],
    'another number': [signedVoid(1), signedVoid(2, {}, nodes, 1)],
    changed: [signedVoid(1), { ...changed, record: { ...changed.record, signed: [] } }],
    'a node that is not pinned': [signedVoid(1), signedVoid(4, {}, nodes, 1)],
  }
  for (const [what, voids] of Object.entries(cases)) await unproven(failed(voids), what)
})

test('refuses voids of another transaction, an unknown forward, or an unreadable request', async () => {
  const other = transactionId(API_KEY, 'n-2')
  await unproven(
    failed([signedVoid(1, { transaction_id: other }), signedVoid(2, { transaction_id: other })]),
    'another',
  )
  await unproven(
    failed([signedVoid(1, { transaction_id: other }), signedVoid(2, { transaction_id: other })], {
      id: other,
    }),
    'another, and called so',
  )
  const rule = randomUUID()
  const forged = { rule, intent: JSON.stringify(['forward', rule, ID]) }
  await unproven(failed([signedVoid(1, forged), signedVoid(2, forged)]), 'a forward')
  const unread = { intent: JSON.stringify(['request', API_KEY, NONCE]) }
  await unproven(failed([signedVoid(1, unread), signedVoid(2, unread)]), 'unread')
  assert.equal(
    (await client().verifyFailed(failed([signedVoid(1, forged), signedVoid(2, forged)]), { rule }))
      .proven,
    true,
    "a rule's own forward",
  )
  assert.equal(
    (
      await client().verifyFailed(failed([signedVoid(1, forged), signedVoid(2, forged)]), {
        rule: randomUUID(),
      })
    ).proven,
    false,
    "another rule's",
  )
})

test('a signature that a node withheld before the voids, or a hash, disproves the failure', async () => {
  assert.deepEqual(
    (
      await unproven(
        failed([
          signedVoid(1, { signed: ['0xaa'] }),
          signedVoid(2, { signed: ['0xaa'] }),
          signedVoid(3),
        ]),
        'signed',
      )
    ).signed,
    ['0xaa'],
  )
  await unproven(failed([signedVoid(1, { unfinished: 1 }), signedVoid(3)]), 'unfinished')
  assert.deepEqual(
    (await unproven(failed([signedVoid(1), signedVoid(2)], { hash: '0xbb' }), 'sent')).signed,
    ['0xbb'],
  )
  assert.match(
    (await unproven(failed([], { status: 'pending' }), 'pending')).reason as string,
    /pending/,
  )
})

test('the client verifies failures of its own requests against the service automatically', async () => {
  const custody = client()
  let id = ''
  let nonce = ''
  const create = (seen: Seen): Canned =>
    json({ id: transactionId(API_KEY, String(seen.claims?.nonce)), status: 'pending' })
  server.script(create)
  const created = await custody.createTransaction(
    { asset: 'ETH', amount: '1', destination_address: '0x' },
    { onSigned: (request) => ({ id, nonce } = request) },
  )
  assert.deepEqual([created.id, transactionId(API_KEY, nonce)], [id, id])
  const voids = [1, 2].map((node) =>
    signedVoid(node, {
      transaction_id: id,
      intent: JSON.stringify(['pay', 'nonce', API_KEY, nonce]),
    }),
  )
  const stranger = { ...failed([signedVoid(1), signedVoid(2)]), failure_proof: { proven: true } }
  server.script(
    json(failed(voids, { id })),
    json(failed([], { id })),
    json({
      data: [failed(voids, { id }), stranger, { ...stranger, status: 'pending' }],
      page: 1,
      limit: 50,
      total: 3,
    }),
    json(stranger),
  )
  assert.equal((await custody.transaction(id)).failure_proof?.proven, true)
  assert.equal((await custody.waitForTransaction(id)).failure_proof?.proven, false)
  assert.deepEqual(
    (await custody.transactions()).data.map((each) => each.failure_proof?.proven),
    [true, false, undefined],
    'only own requests, and no word of the service',
  )
  assert.equal(
    (await custody.transaction(id)).failure_proof?.proven,
    false,
    'another transaction was given in its place',
  )
})
