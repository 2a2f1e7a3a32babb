// The calls of the page with a platform in this process.
import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { mkdtempSync, readdirSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { decisionStatement } from '@custody/client/approvals/parts'
import { documentHash, type Statement } from '@custody/policy'
import { assertionOf, newPasskey, UP, UV, BE } from '../../../policy/testing/passkeys.ts'
import {
  alice,
  approvalOf,
  documentOf,
  NOW_S,
  place,
  TestPlatform,
  trust,
} from '../../testing/fixture.ts'
import { ApproverError } from '../errors.ts'
import { verifyApproval } from '../verify/approval.ts'
import { possessionStatement } from '../verify/document.ts'
import { Documents } from '../verify/documents.ts'
import type {
  ApprovalDetailView,
  ChallengeView,
  CreatedView,
  CreationView,
  DocumentView,
} from '../views.ts'
import { callsOf } from './calls.ts'

const document = documentOf()
const approval = await approvalOf(document)
const { id } = approval

function start(o: { policy?: unknown } = {}) {
  const platform = new TestPlatform(structuredClone(approval))
  platform.inForce = 'policy' in o ? o.policy : document
  const dir = mkdtempSync(join(tmpdir(), 'custody-approver-'))
  let now = NOW_S * 1000
  const documents = new Documents(dir, null)
  const calls = callsOf({
    config: {
      version: 1,
      person: 'alice',
      platform: 'http://platform.example',
      api_key: '',
      private_key_file: '',
      trust_file: '',
      document_file: null,
      origin: 'http://localhost:24873',
      host: null,
      port: 24_873,
    },
    place,
    trust,
    documents,
    platform,
    now: () => now,
  })
  const call = async <T>(name: string, input: object = {}): Promise<T> =>
    (await calls.get(name)?.(input as Record<string, unknown>)) as T
  /** Reads the transfer as the page does, and asks for the challenge of a decision. */
  const begin = async (fields: object = {}) => {
    const { review } = await call<ApprovalDetailView>('approval', { id })
    return call<ChallengeView>('challenge', {
      id,
      key: 'a1',
      decision: 'approve',
      review: review ?? '',
      ...fields,
    })
  }
  return { platform, documents, dir, call, begin, pass: (ms: number) => (now += ms) }
}

const fails = (code: string, work: Promise<unknown>) =>
  assert.rejects(work, (error) => {
    assert.ok(error instanceof ApproverError, String(error))
    assert.equal(error.code, code, error.message)
    return true
  })

function decision(choice: 'approve' | 'reject'): Statement {
  const documents = new Documents(tmpdir(), null)
  documents.add(document)
  const verified = verifyApproval(place, documents, id, approval)
  const fields = { by: 'alice', key: 'a1', decision: choice, at: NOW_S, expires: NOW_S + 86_400 }
  return decisionStatement(verified, fields)
}

for (const choice of ['approve', 'reject'] as const)
  test(`sends a decision to ${choice} with the passkey's assertion`, async () => {
    const { platform, call, begin } = start()
    const challenge = await begin({ decision: choice })
    assert.match(challenge.sentences[0] ?? '', new RegExp(`^alice ${choice}s the following`))
    assert.deepEqual(
      [challenge.credential, challenge.rp_id],
      [alice.key.credential, alice.key.rp_id],
    )
    const assertion = assertionOf(alice, decision(choice))
    const client = JSON.parse(Buffer.from(assertion.client_data, 'base64url').toString()) as {
      challenge: string
    }
    assert.equal(client.challenge, challenge.challenge)
    const result = await call<{ state: string }>('decide', {
      attempt: challenge.attempt,
      ...assertion,
    })
    assert.equal(result.state, choice === 'approve' ? 'open' : 'rejected')
    assert.deepEqual(platform.given, [
      {
        by: 'alice',
        key: 'a1',
        decision: choice,
        at: NOW_S,
        expires: NOW_S + 86_400,
        passkey: assertion,
      },
    ])
    await fails('ATTEMPT', call('decide', { attempt: challenge.attempt, ...assertion }))
  })

test('sends nothing if the assertion is not of this statement and passkey', async () => {
  const { platform, call, begin } = start()
  const other = newPasskey('a1')
  for (const [assertion, code] of [
    [assertionOf(alice, decision('reject')), 'PASSKEY'],
    [assertionOf(other, decision('approve')), 'SIGNATURE'],
    [assertionOf(alice, decision('approve'), { flags: UP }), 'PASSKEY'],
    [assertionOf(alice, decision('approve'), { flags: UP | UV | BE }), 'PASSKEY'],
    [
      assertionOf(alice, decision('approve'), { client: { origin: 'http://localhost:3000' } }),
      'PASSKEY',
    ],
  ] as const) {
    const { attempt } = await begin()
    await fails(code, call('decide', { attempt, ...assertion }))
  }
  assert.deepEqual(platform.given, [])
})

test('attack: a transfer that changes after the page displayed it is not signed', async () => {
  for (const fields of [
    { payee: '0x70997970C51812dc3A010C7d01b50e0d17dc79C8' },
    { body: { amount: '0.7' } },
    { document: documentOf(undefined, { number: 2, previous: documentHash(document) }) },
  ]) {
    const { platform, documents, call } = start()
    const other = await approvalOf(document, fields)
    assert.equal(other.id, id)
    for (const each of [document, fields.document]) documents.add(each)
    const { review, refusal } = await call<ApprovalDetailView>('approval', { id })
    assert.equal(refusal, null)
    platform.approval = other
    for (const choice of ['approve', 'reject'])
      await fails('CHANGED', call('challenge', { id, key: 'a1', decision: choice, review }))
    // The other transfer can be signed only after it was displayed.
    const again = await call<ApprovalDetailView>('approval', { id })
    assert.equal(again.refusal, null)
    await call('challenge', { id, key: 'a1', decision: 'approve', review: again.review })
  }
})

test('signs nothing that the page has not displayed in the last hour', async () => {
  const { call, begin, pass } = start()
  await fails('INPUT', begin({ review: undefined }))
  await fails('REVIEW', begin({ review: 'unknown' }))
  const { review } = await call<ApprovalDetailView>('approval', { id })
  pass(60 * 60_000)
  await begin({ review })
  pass(1)
  await fails('REVIEW', begin({ review }))
  const first = await call<ApprovalDetailView>('approval', { id })
  for (let count = 0; count < 50; count += 1) await call('approval', { id })
  await fails('REVIEW', begin({ review: first.review }))
})

test('returns no handle of a transfer that was refused', async () => {
  const { call } = start({ policy: null })
  const { review, refusal } = await call<ApprovalDetailView>('approval', { id })
  assert.match(refusal ?? '', /is missing here/)
  assert.equal(review, null)
})

test('refuses a closed transfer, unknown keys and late decisions', async () => {
  const { platform, call, begin: ask, pass } = start()
  await fails('NO_PASSKEY', ask({ key: 'b1' }))
  await fails('INPUT', ask({ decision: 'maybe' }))
  await fails('INPUT', ask({ id: '../policy' }))
  const { attempt } = await ask()
  pass(11 * 60_000)
  await fails('ATTEMPT', call('decide', { attempt, ...assertionOf(alice, decision('approve')) }))
  platform.approval = { ...platform.approval, state: 'approved' }
  await fails('APPROVAL_CLOSED', ask())
  platform.failure = new ApproverError('UNREACHABLE', 'the platform did not respond')
  await fails('UNREACHABLE', ask())
})

test('a document that the person keeps is used if the platform returns none', async () => {
  const { call, dir } = start({ policy: null })
  const before = await call<{ refusal: string | null }>('approval', { id })
  assert.match(before.refusal ?? '', /is missing here/)
  await call('keep', { text: JSON.stringify({ document }) })
  assert.equal((await call<{ refusal: string | null }>('approval', { id })).refusal, null)
  assert.deepEqual(readdirSync(join(dir, 'documents')), [`${documentHash(document)}.json`])
  const again = new Documents(dir, null)
  assert.notEqual(again.find(documentHash(document)), undefined)
})

test('adds a proof of possession to a policy file, in place of an earlier one', async () => {
  const { call } = start()
  let text = JSON.stringify(document)
  for (const _ of [1, 2]) {
    const view = await call<DocumentView>('document', { text })
    assert.equal(view.refusal, null)
    const { attempt, sentences } = await call<ChallengeView>('possession', { text, key: 'a1' })
    assert.match(sentences[0] ?? '', /^alice holds the key a1/)
    const statement = possessionStatement(document, documentHash(document), 'alice', 'a1')
    const signed = await call<{ text: string; document: DocumentView }>('signed', {
      attempt,
      ...assertionOf(alice, statement),
    })
    ;({ text } = signed)
    const [a] = signed.document.people
    assert.equal(a?.keys[0]?.proof, null)
    assert.equal((JSON.parse(text) as { possessions: unknown[] }).possessions.length, 1)
  }
})

test('refuses documents of another installation, with errors, or of another form', async () => {
  const { call } = start()
  const foreign = documentOf(undefined, { nodes: 'ab'.repeat(32) })
  const view = await call<DocumentView>('document', { text: JSON.stringify(foreign) })
  assert.match(view.refusal ?? '', /its nodes is/)
  for (const name of ['possession', 'keep'])
    await fails('DOCUMENT', call(name, { text: JSON.stringify(foreign), key: 'a1' }))
  await fails('FILE', call('document', { text: '{"document":1,"document":2}' }))
  await fails('FILE', call('document', { text: '[]' }))
  await fails('FILE', call('document', { text: JSON.stringify({ document, other: 1 }) }))
})

test('names of people are displayed with invisible and reordering characters as code points', async () => {
  const { call } = start()
  const [first, ...others] = document.people
  const people = [{ ...first, name: 'Al\u202eice\u200b (Bob)' }, ...others]
  const view = await call<DocumentView>('document', {
    text: JSON.stringify({ ...document, people }),
  })
  assert.deepEqual(
    view.people.map(({ name }) => name),
    [String.raw`"Al\u{202e}ice\u{200b} (Bob)"`, '"Bob"', '"Carol"'],
  )
})

/** Returns what a browser returns of a new passkey. */
function created(challenge: string, o: { flags?: number; type?: string; rpId?: string } = {}) {
  const spki = newPasskey('a1').key.spki
  const data = Buffer.concat([
    createHash('sha256')
      .update(o.rpId ?? 'localhost')
      .digest(),
    Buffer.from([o.flags ?? UP | UV]),
    Buffer.alloc(4),
  ])
  const client = {
    type: o.type ?? 'webauthn.create',
    challenge,
    origin: 'http://localhost:24873',
  }
  return {
    id: 'phone',
    credential: Buffer.from('credential-of-phone').toString('base64url'),
    spki: Buffer.from(spki, 'base64').toString('base64url'),
    algorithm: -7,
    client_data: Buffer.from(JSON.stringify(client)).toString('base64url'),
    authenticator_data: data.toString('base64url'),
  }
}

test('returns a new passkey as the entry of a document, which is valid there', async () => {
  const { call } = start()
  for (const [flags, isBound] of [
    [UP | UV, true],
    [UP | UV | BE, false],
  ] as const) {
    const { attempt, challenge } = await call<CreationView>('creation')
    const { key } = await call<CreatedView>('created', {
      attempt,
      ...created(challenge, { flags }),
    })
    const entry = JSON.parse(key) as { device_bound: boolean; rp_id: string }
    assert.deepEqual([entry.device_bound, entry.rp_id], [isBound, 'localhost'])
    documentOf(entry)
  }
})

test('refuses a new passkey without user verification, of another page or with another key', async () => {
  const { call } = start()
  for (const fields of [
    { flags: UP },
    { rpId: 'attacker.example' },
    { type: 'webauthn.get' },
  ] as const) {
    const { attempt, challenge } = await call<CreationView>('creation')
    await fails('PASSKEY', call('created', { attempt, ...created(challenge, fields) }))
  }
  for (const [algorithm, text] of [
    [-257, /RS256.*ES256 or Ed25519.*a phone, a security key/],
    [-37, /COSE algorithm -37/],
  ] as const) {
    const { attempt, challenge } = await call<CreationView>('creation')
    await assert.rejects(
      call('created', { attempt, ...created(challenge), algorithm }),
      (error: Error) => text.test(error.message),
    )
  }
  for (const fields of [{ algorithm: -257 }, { algorithm: -8 }, { id: 'A B' }, { spki: 'AAAA' }]) {
    const { attempt, challenge } = await call<CreationView>('creation')
    await fails('PASSKEY', call('created', { attempt, ...created(challenge), ...fields }))
  }
  const { attempt } = await call<CreationView>('creation')
  await fails('PASSKEY', call('created', { attempt, ...created('other') }))
})
