// What the page refuses to sign: everything that the platform returns may be false.
import assert from 'node:assert/strict'
import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { decisionStatement, type DetailedApproval } from '@custody/client/approvals/parts'
import { canonicalText } from '@custody/policy'
import { assertionOf } from '../../../policy/testing/passkeys.ts'
import { alice, approvalOf, documentOf, NOW_S, PAYEE, place } from '../../testing/fixture.ts'
import { detailView, listedView, verifyApproval } from './approval.ts'
import { Documents } from './documents.ts'

const document = documentOf()
const approval = await approvalOf(document)
const own = {
  person: 'alice',
  origin: 'http://localhost:24873',
  now_s: NOW_S,
  review: () => 'handle',
}

function documentsWith(...values: unknown[]): Documents {
  const documents = new Documents(mkdtempSync(join(tmpdir(), 'custody-approver-')), null)
  for (const value of values) documents.add(value)
  return documents
}
const documents = documentsWith(document)

const viewOf = (detail: DetailedApproval, known = documents) =>
  detailView(place, known, approval.id, detail, own)
const withStatement = (fields: object): DetailedApproval => ({
  ...approval,
  statement: { ...approval.statement, ...fields },
})
const withFacts = (fields: object) =>
  withStatement({ facts: { ...(approval.statement.facts as object), ...fields } })

test('returns verified facts, sentences and the passkeys of the person', () => {
  const view = viewOf(approval)
  assert.equal(view.refusal, null)
  assert.match(view.sentences[0] ?? '', /^Transfer 0\.6 ETH from sub-account "main" to 0xd8dA/)
  assert.deepEqual(
    view.facts.find(({ kind }) => kind === 'address'),
    { name: 'Destination', value: PAYEE, kind: 'address' },
  )
  const rows = Object.fromEntries(view.facts.map(({ name, value }) => [name, value]))
  assert.deepEqual([rows['Sub-account'], rows['Tag']], ['"main"', 'none'])
  assert.deepEqual(view.keys, [{ id: 'a1', alg: 'ES256', credential: alice.key.credential }])
  assert.deepEqual(listedView(place, approval).sentences, view.sentences)
})

test('a document is accepted from any source, as value or text, if its hash is the one in the statement', () => {
  for (const value of [document, canonicalText(document)])
    assert.equal(viewOf(approval, documentsWith(value)).refusal, null)
  const other = documentOf(undefined, { number: 2, previous: 'ab'.repeat(32) })
  for (const known of [documentsWith(), documentsWith(other), documentsWith('{}', 5, null)])
    assert.match(
      viewOf(approval, known).refusal ?? '',
      /policy document 1 with hash \w+ is missing/,
    )
})

test('attack: a transfer with changed facts is refused', () => {
  for (const [fields, expected] of [
    [{ amount: '700000000000000000' }, /the amount differs/],
    [{ to: '0x70997970C51812dc3A010C7d01b50e0d17dc79C8' }, /the destination differs/],
    [{ to: PAYEE.toLowerCase() }, /destination is/],
    [{ to: 'not an address' }, /fields that are not known here/],
    [{ tag: '7' }, /the tag differs/],
    [{ asset: 'BTC' }, /network is ETH there and BTC here/],
    [{ asset: 'NONE' }, /not known to this installation/],
    [{ sub_account: 'other' }, /another sub-account/],
    [{ label: 'Known payee' }, /fields that are not known here/],
  ] as const) {
    const view = viewOf(withFacts(fields))
    assert.match(view.refusal ?? 'accepted', expected, JSON.stringify(fields))
    assert.deepEqual([view.sentences, view.facts, view.keys], [[], [], []])
  }
})

test('attack: facts that differ from the registry of this installation are refused', () => {
  for (const [fields, expected] of [
    [{ decimals: 17 }, /decimals is 17 there and 18 here/],
    [{ fee_decimals: 17 }, /decimals of the fee asset is 17/],
    [{ contract: PAYEE }, /contract is/],
    [{ network: 'OP_ETH' }, /network is OP_ETH/],
    [{ fee_asset: 'BTC', fee_decimals: 8 }, /fee asset is BTC/],
  ] as const) {
    assert.match(viewOf(withFacts(fields)).refusal ?? 'accepted', expected, JSON.stringify(fields))
    const listed = { ...approval, facts: { ...(approval.facts as object), ...fields } }
    assert.match(listedView(place, listed).refusal ?? 'accepted', expected)
  }
})

test('attack: a statement or document of another installation is refused', async () => {
  for (const field of ['mode', 'workspace', 'nodes'])
    assert.match(
      viewOf(withStatement({ [field]: 'other' })).refusal ?? 'accepted',
      /is for another installation/,
    )
  const foreign = documentOf(undefined, { nodes: 'ab'.repeat(32) })
  const claimed = await approvalOf(foreign)
  assert.match(
    viewOf(
      { ...claimed, statement: { ...claimed.statement, nodes: place.nodes } },
      documentsWith(foreign),
    ).refusal ?? 'accepted',
    /the policy document is for another installation: its nodes/,
  )
  assert.match(
    viewOf(withStatement({ policy: { ...approval.statement.policy, number: 2 } })).refusal ?? '',
    /the number of the policy document/,
  )
})

test('attack: another transfer, or a request that does not belong to it, is refused', () => {
  const id = '7c9e6679-7425-40de-944b-e07fc1f90ae7'
  const request = (fields: object) => ({ ...approval, request: { ...approval.request, ...fields } })
  for (const [detail, expected] of [
    [{ ...approval, id }, /another transfer/],
    [withStatement({ id }), /another transfer/],
    [withStatement({ v: 2 }), /a version/],
    [withStatement({ subject: 'ef'.repeat(32) }), /the hash of its content differs/],
    [request({ body: approval.request.body.replace('0.6', '0.7') }), /the body differs/],
    [request({ uri: '/dac/v1/other' }), /the path differs/],
    [request({ method: 'GET' }), /the path differs/],
    [request({ token: 'x' }), /the token differs/],
  ] as const)
    assert.match(viewOf(detail as DetailedApproval).refusal ?? 'accepted', expected)
  const other = { ...approval, id, statement: { ...approval.statement, id } }
  assert.match(detailView(place, documents, id, other, own).refusal ?? '', /the ID differs/)
})

test('a refund is compared with the request of its invoice', async () => {
  const uri = `/dac/v1/invoices/inv_${'0a'.repeat(16)}/refund`
  const refund = await approvalOf(document, { action: 'refund', uri })
  const view = viewOf(refund)
  assert.equal(view.refusal, null)
  // A transfer that is stated to be a refund, and a refund to another address.
  const stated = { ...withStatement({ action: 'refund' }), action: 'refund' }
  assert.match(viewOf(stated).refusal ?? 'accepted', /the path differs/)
  const facts = { ...(refund.facts as object), to: '0x70997970C51812dc3A010C7d01b50e0d17dc79C8' }
  const other = { ...refund, statement: { ...refund.statement, facts } }
  assert.match(viewOf(other).refusal ?? 'accepted', /the destination differs/)
})

test('only decisions whose signatures verify are displayed', () => {
  const verified = verifyApproval(place, documents, approval.id, approval)
  const fields = {
    by: 'alice',
    key: 'a1',
    decision: 'approve',
    at: NOW_S - 5,
    expires: NOW_S + 60,
  } as const
  const passkey = assertionOf(alice, decisionStatement(verified, fields))
  const view = viewOf({
    ...approval,
    have: [
      { ...fields, passkey },
      { ...fields, by: 'bob', key: 'b1', passkey },
      { ...fields, at: NOW_S - 6, passkey },
      { ...fields, by: 'carol', key: 'c1', signature: 'AAAA' },
    ],
  })
  assert.deepEqual(view.decisions, [{ by: 'alice', decision: 'approve' }])
})

test('attack: more decisions than an approval can have, and numbers of another form, are refused', () => {
  const have = Array.from({ length: 17 }, () => ({ by: 'alice' }) as never)
  assert.match(viewOf({ ...approval, have }).refusal ?? '', /more than 16 decisions/)
  const { hash } = approval.statement.policy
  const odd = withStatement({ policy: { number: { toString: 1 }, hash } })
  assert.match(viewOf(odd).refusal ?? '', /statement is not complete/)
  assert.match(viewOf(withFacts({ fee_max: '1' })).refusal ?? '', /largest fee is 1 there/)
})

test('the planned fee stands beside the largest fee, and one of another form is left out', () => {
  const rowOf = (planned_fee: unknown) =>
    viewOf({ ...approval, planned_fee }).facts.find(({ name }) => name === 'Planned fee')?.value
  assert.equal(rowOf('420000000000000'), '0.00042 ETH, as the platform states; not signed')
  for (const odd of [undefined, null, 1, '', '-1', '1.5', '0x1', '9'.repeat(79), '<b>'])
    assert.equal(rowOf(odd), undefined)
})

test('memo and requester are displayed as words of the platform, which no approval signs', () => {
  const rowsOf = (stated: object) =>
    viewOf({ ...approval, ...stated })
      .facts.filter(({ name }) => name === 'Memo' || name === 'Requested by')
      .map(({ name, value }) => [name, value.replace(', as the platform states; not signed', '')])
  const api_key = '4f7bd0a2-6f0e-4b5c-9d3e-2a8f1c5b7e90'
  assert.deepEqual(rowsOf({ memo: 'supplier 2', requested_by: { api_key, name: 'Ada Byron' } }), [
    ['Memo', '"supplier 2"'],
    ['Requested by', '"Ada Byron"'],
  ])
  assert.deepEqual(rowsOf({ requested_by: { api_key, name: null } }), [
    ['Requested by', `"${api_key}"`],
  ])
  // Text cannot leave its quotation marks, change its direction, or displace the facts.
  const [[, memo = ''] = []] = rowsOf({ memo: `a" signed\u202e${'x'.repeat(500)}` })
  assert.match(memo, /^"a\\u\{22\} signed\\u\{202e\}x+"$/)
  assert.ok(memo.length < 250)
  for (const odd of [{}, { memo: '' }, { memo: 1 }, { memo: null }, { requested_by: { name: 5 } }])
    assert.deepEqual(rowsOf(odd), [])
})

test('only passkeys of the person for this origin can sign', () => {
  for (const other of [
    { ...own, person: 'bob' },
    { ...own, person: 'mallory' },
    { ...own, origin: 'http://localhost:24874' },
  ])
    assert.deepEqual(detailView(place, documents, approval.id, approval, other).keys, [])
})
