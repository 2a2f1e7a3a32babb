// Verification of approvals against a platform that lies, with real signatures: everything that the
// platform returns may be false.
import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { test } from 'node:test'
import { checkDocument, documentHash, statementHash } from '@custody/policy'
import { signRequest } from '@custody/request-auth'
import { allow, documentWith, newKey } from '../../../policy/testing/documents.ts'
import { assertionOf, newPasskey } from '../../../policy/testing/passkeys.ts'
import {
  API_KEY,
  approval,
  approvalOf,
  attacker,
  caller,
  decided,
  document,
  documentOf,
  LARGE,
  NEEDS,
  NOW_S,
  OTHER_PAYEE,
  PAYEE,
  place,
  refuses,
  trust,
  trustOf,
  verify,
  withFacts,
  withHave,
  withStatement,
} from '../../testing/approval-question.ts'
import { decisionStatement, type GivenDecision } from './parts.ts'

test('returns what is signed, who has approved, and whose approvals are missing', async () => {
  const verified = await verify(withHave(decided(approval, 'dan'), decided(approval, 'erin')))
  assert.match(verified.sentences[0] ?? '', /^Transfer 0\.6 ETH from sub-account "main" to 0xd8dA/)
  assert.deepEqual(verified.statement, approval.statement)
  assert.deepEqual(
    [verified.policy.number, verified.policy.hash, verified.policy.is_own],
    [1, documentHash(document), true],
  )
  assert.deepEqual(verified.request, {
    api_key: API_KEY,
    person: 'alice',
    issued_at: NOW_S - 10,
    is_signature_verified: true,
  })
  assert.deepEqual([verified.approved_by, verified.rejected_by], [['dan', 'erin'], []])
  assert.deepEqual(verified.needs, [
    { group: 'compliance', k: 1, have: 0, may_approve: ['compliance'] },
    { group: 'treasury', k: 2, have: 2, may_approve: ['frank'] },
  ])
  assert.deepEqual([verified.rule, verified.is_complete], ['large', false])
})

test('accepts a document as value, text or policy file, and works without the keys of callers', async () => {
  for (const source of [
    JSON.stringify(document),
    { document, possessions: [] },
    JSON.stringify({ document, possessions: [] }),
  ])
    assert.equal((await verify(approval, { documents: [source] })).policy.number, 1)
  const verified = await verify(approval, { callers: undefined })
  assert.equal(verified.request.is_signature_verified, false)
  await refuses('DOCUMENT', /is not valid/, approval, { documents: ['{}'] })
  await refuses('DOCUMENT', /a text or an object/, approval, { documents: [null as never] })
  // A newer document of another installation does not make this one older.
  const foreign = documentOf({
    number: 2,
    previous: documentHash(document),
    nodes: 'ab'.repeat(32),
  })
  assert.equal((await verify(approval, { documents: [foreign, document] })).policy.number, 1)
})

test('attack: changed facts are refused', async () => {
  for (const [fields, code, message] of [
    [{ amount: '700000000000000000' }, 'REQUEST', /the amount differs/],
    [{ to: OTHER_PAYEE }, 'REQUEST', /the destination differs/],
    [{ tag: '7' }, 'REQUEST', /the tag differs/],
    [{ resource: 'ENERGY' }, 'REQUEST', /the resource differs/],
    [{ decimals: 17 }, 'REGISTRY', /decimals is 17 there and 18 here/],
    [{ contract: PAYEE }, 'REGISTRY', /contract is/],
    [{ asset: 'NONE' }, 'REGISTRY', /not known/],
    [{ to: PAYEE.toLowerCase() }, 'REGISTRY', /destination is/],
    [{ sub_account: 'other' }, 'FACTS', /another sub-account/],
    [{ label: 'Known payee' }, 'FACTS', /not known here/],
  ] as const)
    await refuses(code, message, withFacts(fields))
  await refuses('FACTS', /action/, withStatement({ action: 'drain' }))
  await refuses('REQUEST', /the path differs/, withStatement({ action: 'refund' }))
  await refuses(
    'REQUEST',
    /the hash of its content differs/,
    withStatement({ subject: 'ef'.repeat(32) }),
  )
})

test('attack: an invented request is refused by the key of the caller', async () => {
  const invented = await approvalOf({
    privateKey: attacker.privateKey,
    payee: OTHER_PAYEE,
  })
  await refuses('CALLER', /not signed by the key that you passed/, invented)
  // Without the keys of callers it is consistent, and only the signer nodes would refuse it.
  assert.equal((await verify(invented, { callers: undefined })).facts.to, OTHER_PAYEE)
  const body = approval.request.body.replace('0.6', '0.7')
  await refuses('REQUEST', /the body differs/, {
    ...approval,
    request: { ...approval.request, body },
  })
})

test('attack: the request of another API key is refused', async () => {
  const other = await approvalOf({ apiKey: 'api-bob' })
  await refuses('CALLER', /of the API key api-bob, which is none of the callers/, other, {
    id: other.id,
  })
  await refuses('CALLER', /is not a public key in PEM/, approval, {
    callers: { [API_KEY]: 'none' },
  })
  const [, payload, signature] = approval.request.token.split('.')
  const header = Buffer.from('{"alg":"none"}').toString('base64url')
  const token = `${header}.${payload}.${signature}`
  await refuses('CALLER', /RS256/, { ...approval, request: { ...approval.request, token } })
})

test('attack: another document is refused', async () => {
  const own = newKey('k1')
  const invented = documentOf({
    people: document.people.map((each) => ({ ...each, keys: [own.key] })).slice(0, 1),
    groups: { admins: ['alice'], treasury: ['alice'], compliance: ['alice'] },
    change: { approvals: [{ group: 'admins', k: 1 }], delay_s: 86_400, veto: 'admins' },
    resume: { approvals: [{ group: 'admins', k: 1 }] },
  })
  await refuses(
    'DOCUMENT',
    /policy document 1 with hash \w+ is missing/,
    await approvalOf({ document: invented }),
  )
  await refuses(
    'DOCUMENT',
    /the number of the policy document/,
    withStatement({ policy: { number: 2, hash: documentHash(document) } }),
  )
  await refuses('DOCUMENT', /is missing/, approval, { documents: [] })
})

test('attack: an earlier document is refused while the transfer is open', async () => {
  const next = documentOf({ number: 2, previous: documentHash(document) })
  const documents = [document, next]
  await refuses('OLDER_DOCUMENT', /document 1, and document 2 is known/, approval, { documents })
  const closed = { ...approval, state: 'approved' }
  assert.equal((await verify(closed, { documents })).policy.number, 1)
})

test('attack: the trust file of another installation refuses the transfer', async () => {
  for (const [fields, message] of [
    [{}, /its nodes is/],
    [{ workspace: 'other', nodes: trust.nodes }, /its workspace is acme/],
    [{ network: 'local', nodes: trust.nodes }, /its mode is mainnet/],
  ] as const)
    await refuses('OTHER_PLACE', message, approval, { trust: trustOf(fields) })
  const claimed = documentOf({ nodes: 'ab'.repeat(32) })
  const stated = withStatement({ nodes: place.nodes }, await approvalOf({ document: claimed }))
  await refuses('OTHER_PLACE', /the policy document is for another/, stated, {
    documents: [claimed],
  })
})

test('attack: another transfer, and what is no approval of a transfer, is refused', async () => {
  const other = await approvalOf({ nonce: 'nonce-2' })
  await refuses('ID', /another transfer/, other)
  await refuses('ID', /another transfer/, withStatement({ id: other.id }))
  await refuses(
    'REQUEST',
    /the ID differs/,
    { ...withStatement({ id: other.id }), id: other.id },
    {
      id: other.id,
    },
  )
  await refuses('SHAPE', /version/, withStatement({ v: 2 }))
  const { request: _, ...without } = approval
  for (const [value, message] of [
    [null, /not an object/],
    [{ ...without, action: 'policy_change' }, /policy change/],
    [without, /request of the caller is missing/],
    [{ ...approval, statement: {} }, /statement is not complete/],
    [{ ...approval, needs: [{ group: 'treasury' }] }, /list of quorums/],
    [{ ...approval, have: {} }, /list of decisions/],
    [{ ...approval, id: 7 }, /id, state or action/],
  ] as const)
    await refuses('SHAPE', message, value)
})

test('attack: a forged approval, or one that was copied, does not count', async () => {
  const other = await approvalOf({ nonce: 'nonce-2' })
  const rejection = decided(approval, 'dan', { decision: 'reject' })
  const approved = decided(approval, 'dan')
  for (const [have, reason] of [
    [{ ...approved, signature: 'A'.repeat(86) + '==' }, /signature: /],
    [decided(other, 'dan'), /signature: /],
    [{ ...approved, by: 'frank' }, /signature: /],
    [{ ...approved, by: 'mallory' }, /mallory is not in the document/],
    [{ ...rejection, decision: 'approve' }, /signature: /],
    [{ ...approved, decision: 'reject' }, /signature: /],
    [{ ...approved, expires: NOW_S + 7200 }, /signature: /],
    [{ ...approved, at: NOW_S - 6 }, /signature: /],
  ] as [GivenDecision, RegExp][])
    for (const state of ['open', 'approved']) {
      // The third approval, which would complete the quorums.
      const others = ['erin', 'compliance'].map((name) => decided(approval, name))
      const verified = await verify({ ...withHave(have, ...others), state })
      const [first] = verified.decisions
      assert.equal(first?.status, 'ignored')
      assert.match(first?.reason ?? '', reason)
      assert.deepEqual(
        [verified.approved_by, verified.rejected_by, verified.is_complete],
        [['erin', 'compliance'], [], false],
      )
    }
})

test('attack: quorums that the platform states cannot be fewer than those of the document', async () => {
  const have = [decided(approval, 'dan')]
  const verified = await verify({ ...approval, have, needs: [{ group: 'treasury', k: 1 }] })
  assert.deepEqual(
    [verified.is_complete, verified.needs.map(({ group, k, have: n }) => [group, k, n])],
    [
      false,
      [
        ['compliance', 1, 0],
        ['treasury', 2, 1],
      ],
    ],
  )
  await refuses('NEEDS', /strangers, which is no group/, {
    ...approval,
    needs: [{ group: 'strangers', k: 1 }],
  })
  // A limit that is used up adds approvals.
  const more = await verify({ ...approval, needs: [...NEEDS, { group: 'admins', k: 1 }] })
  assert.deepEqual(
    more.needs.map(({ group }) => group),
    ['admins', 'compliance', 'treasury'],
  )
})

test('attack: a rule for own addresses does not replace the quorums of another rule', async () => {
  const toOwn = { action: ['transfer'], assets: 'any', to: { own: 'workspace' } }
  const own = checkDocument(
    documentWith([LARGE, { ...allow('own'), match: toOwn }], { nodes: place.nodes }),
  )
  const of = { ...(await approvalOf({ document: own })), needs: [] }
  const verified = await verify(of, { documents: [own] })
  assert.deepEqual([verified.rule, verified.is_complete], ['large', false])
  const only = checkDocument(
    documentWith([{ ...allow('own'), match: toOwn }], { nodes: place.nodes }),
  )
  const passing = { ...(await approvalOf({ document: only })), needs: [] }
  const { rule, is_complete } = await verify(passing, { documents: [only] })
  assert.deepEqual([rule, is_complete], ['own', false])
})

test('counts neither expired approvals nor those of an earlier document', async () => {
  const expired = decided(approval, 'dan', { at: NOW_S - 7200, expires: NOW_S - 1 })
  const next = documentOf({ number: 2, previous: documentHash(document) })
  const current = await approvalOf({ document: next })
  const verified = await verify(
    { ...current, have: [decided(approval, 'erin'), decided(current, 'frank')] },
    { documents: [document, next] },
  )
  assert.deepEqual(
    verified.decisions.map(({ by, status }) => [by, status]),
    [
      ['erin', 'superseded'],
      ['frank', 'valid'],
    ],
  )
  assert.deepEqual(verified.approved_by, ['frank'])
  const late = await verify(withHave(expired))
  assert.deepEqual([late.decisions[0]?.status, late.needs[1]?.have], ['expired', 0])
})

test('audit: a closed transfer proves who approved it, as of the times of the signatures', async () => {
  const have = ['dan', 'erin', 'compliance'].map((name) => decided(approval, name))
  const closed = { ...approval, state: 'approved', have }
  const later = { now_s: NOW_S + 400 * 86_400 }
  const verified = await verify(JSON.parse(JSON.stringify(closed)), later)
  assert.deepEqual(
    [verified.approved_by, verified.is_complete],
    [['dan', 'erin', 'compliance'], true],
  )
  const fewer = await verify({ ...closed, have: have.slice(1) }, later)
  assert.equal(fewer.is_complete, false)
  const rejected = await verify({
    ...closed,
    state: 'rejected',
    have: [decided(approval, 'frank', { decision: 'reject' })],
  })
  assert.deepEqual([rejected.rejected_by, rejected.is_complete], [['frank'], false])
})

test('the approval of the person who owns the API key does not count', async () => {
  const groups = { ...document.groups, treasury: ['alice', 'dan'], compliance: ['compliance'] }
  const own = documentOf({ groups })
  const of = await approvalOf({ document: own })
  const have = ['alice', 'dan', 'compliance'].map((name) => decided(of, name))
  const verified = await verify({ ...of, have }, { documents: [own] })
  assert.deepEqual([verified.needs[1]?.have, verified.is_complete], [1, false])
})

test('counts no approval if the document lists no owner of the API key, as only the nodes know one', async () => {
  const people = document.people.map((each) => ({
    ...each,
    api_keys: each.api_keys.filter((key) => key !== API_KEY),
  }))
  const own = documentOf({ people })
  const of = await approvalOf({ document: own })
  const have = ['dan', 'erin', 'compliance'].map((name) => decided(of, name))
  const claimed = { ...of, have, person: 'alice', request: { ...of.request, person: 'alice' } }
  const verified = await verify(claimed, { documents: [own] })
  assert.deepEqual(
    [verified.request.person, verified.is_complete, verified.approved_by],
    [null, false, ['dan', 'erin', 'compliance']],
  )
  assert.deepEqual(verified.needs, [
    { group: 'compliance', k: 1, have: 0, may_approve: [] },
    { group: 'treasury', k: 2, have: 0, may_approve: ['frank'] },
  ])
})

test('verifies approvals by passkeys', async () => {
  const passkey = newPasskey('p1')
  const people = document.people.map((each) =>
    each.id === 'frank' ? { ...each, keys: [passkey.key] } : each,
  )
  const own = documentOf({ people })
  const of = await approvalOf({ document: own })
  const { v: _, action, facts, ...base } = of.statement
  const signer = { by: 'frank', key: 'p1', decision: 'approve' as const }
  const times = { at: NOW_S - 5, expires: NOW_S + 60 }
  const payment = { base, action, facts } as Parameters<typeof decisionStatement>[0]
  const statement = decisionStatement(payment, { ...signer, ...times })
  const decision = { ...signer, ...times, passkey: assertionOf(passkey, statement) }
  const documents = [own]
  const { approved_by } = await verify({ ...of, have: [decision] }, { documents })
  assert.deepEqual(approved_by, ['frank'])
  assert.match(statementHash(statement), /^[0-9a-f]{64}$/)
  const moved = assertionOf(passkey, statement, { client: { origin: 'http://localhost:3000' } })
  const copied = await verify({ ...of, have: [{ ...decision, passkey: moved }] }, { documents })
  assert.deepEqual([copied.decisions[0]?.status, copied.approved_by], ['ignored', []])
})

/** What a request of each kind asks for, with the hash of its content as the signer nodes compute it. */
const REQUESTS = {
  stake: {
    uri: '/dav/v1/stake',
    body: {
      asset: 'TRX',
      address: 'TJRabPrwbZy45sbavfcjinPJC18kjpRTv8',
      resource: 'ENERGY',
      amount: '100',
      sequence_id: 's-1',
    },
    facts: { asset: 'TRX', amount: '100000000', resource: 'ENERGY', standing: null },
    content: [
      JSON.stringify(['pay', 'sequence', 'acme', 1, 'TRX', 's-1']),
      'stake',
      {
        workspace: 'acme',
        sub_account: 1,
        asset: 'TRX',
        address: 'TJRabPrwbZy45sbavfcjinPJC18kjpRTv8',
        resource: 'ENERGY',
        amount: '100000000',
      },
    ],
    to: 'TJRabPrwbZy45sbavfcjinPJC18kjpRTv8',
  },
  forward: {
    uri: '/dac/v1/auto-forwarding',
    body: {
      asset: 'ETH',
      min_amount: '0.5',
      daily_cap: '2',
      destination_address: PAYEE,
      expires_at: '2031-01-01T00:00:00Z',
    },
    facts: {
      asset: 'ETH',
      amount: null,
      resource: null,
      standing: {
        min_amount: '500000000000000000',
        daily_cap: '2000000000000000000',
        ends_at: 1_924_992_000,
      },
    },
    content: [
      JSON.stringify(['forward', 'nonce', API_KEY, 'nonce-1']),
      {
        workspace: 'acme',
        sub_account: 1,
        asset: 'ETH',
        min_amount: '500000000000000000',
        daily_cap: '2000000000000000000',
        destination: PAYEE,
        tag: null,
        expires_at: 1_924_992_000,
      },
    ],
    to: PAYEE,
  },
} as const

for (const action of ['stake', 'forward'] as const)
  test(`a ${action} is compared with the request of the caller`, async () => {
    const { uri, body, facts: own, content, to } = REQUESTS[action]
    const request = await signRequest({
      apiKey: API_KEY,
      privateKey: caller.privateKey,
      method: 'POST',
      uri,
      body: JSON.stringify(body),
      now: NOW_S - 10,
      nonce: 'nonce-1',
    })
    const asset = place.registry.asset(own.asset)
    const facts = {
      ...(approval.facts as object),
      ...own,
      network: own.asset,
      decimals: asset?.decimals,
      fee_asset: own.asset,
      fee_decimals: asset?.decimals,
      fee_max: action === 'forward' ? null : place.feeCap(own.asset),
      to,
    }
    const subject = createHash('sha256').update(JSON.stringify(content)).digest('hex')
    const stated = { ...approval.statement, action, facts, subject }
    const of = { ...approval, action, facts, request, needs: [], statement: stated }
    const verified = await verify(of)
    assert.deepEqual([verified.action, verified.facts], [action, facts])
    assert.deepEqual([verified.rule, verified.is_complete], [null, false])
    const changed = (fields: object) => ({
      ...of,
      statement: { ...stated, facts: { ...facts, ...fields } },
    })
    const { standing } = own
    for (const [fields, message] of action === 'stake'
      ? ([
          [{ resource: 'BANDWIDTH' }, /the resource differs/],
          [{ amount: '100000001' }, /the amount differs/],
        ] as const)
      : ([
          [{ standing: { ...standing, min_amount: '1' } }, /the smallest forward differs/],
          [{ standing: { ...standing, daily_cap: '9' } }, /the largest sum of 24 hours differs/],
          [{ standing: { ...standing, ends_at: 1_924_992_001 } }, /the end differs/],
          [{ standing: null, amount: '1' }, /the amount differs/],
          [{ to: OTHER_PAYEE }, /the destination differs/],
        ] as const))
      await refuses('REQUEST', message, changed(fields))
  })
