import assert from 'node:assert/strict'
import { generateKeyPairSync, randomBytes, randomUUID } from 'node:crypto'
import { before, test } from 'node:test'
import { requestHeaders, signRequest } from '@custody/request-auth'
import { useApi, type Problem } from '../../../testing/api-support.ts'
import { call, PRIVATE_KEY, transferBody, type User } from '../../../testing/harness.ts'
import { endpoints } from './endpoints.ts'

/** Tests of the authentication of requests, and of what each key may do. */
const api = useApi()
let user: Awaited<ReturnType<typeof api.user>>
let reader: User
const BTC_TO = 'bcrt1qw508d6qejxtdg4y5r3zarvary0c5xw7kygt080'

before(async () => {
  await api.started
  user = await api.user('api')
  reader = await api.user('api', { role: 'read-only' })
  await call(user, 'POST', '/dac/v1/create-wallet', { asset: 'BTC' })
  await api.fund(user, 'BTC', 100_000_000n)
})

interface Refusal extends Problem {
  error: string
  request_id: string
  wallet_id?: string
}
const problem = async (
  method: string,
  path: string,
  body?: unknown,
  options?: Parameters<typeof call>[4],
  as: User | null = user,
) => call<Refusal>(as, method, path, body, { base: api.base, ...options })

/** Adds a confirmed deposit to the wallet without a chain. Returns its id. */
async function addDeposit(): Promise<string> {
  const id = randomUUID()
  await api.database.query(
    `insert into transactions (id, kind, workspace_id, sub_account_id, wallet_id, asset, network,
       amount, fee_asset, source_type, destination_type, state, status)
     select $1, 'DEPOSIT', workspace_id, sub_account_id, id, asset, network, 100000000, asset,
       'EXTERNAL', 'INTERNAL', 'CREDITED', 'confirmed' from wallets where sub_account_id = $2`,
    [id, user.subAccountId],
  )
  return id
}

test('401 names the claim that failed', async () => {
  const now = Math.floor(Date.now() / 1000)
  const other = generateKeyPairSync('rsa', {
    modulusLength: 2048,
    privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
    publicKeyEncoding: { type: 'spki', format: 'pem' },
  }).privateKey
  const cases: [string, Parameters<typeof call>[4]][] = [
    ['exp', { sign: { now, claims: { exp: now + 30 } } }],
    ['exp', { sign: { now: now - 3600 } }],
    ['iat', { sign: { now: now + 3600 } }],
    ['uri', { sign: { claims: { uri: '/dac/v1/other' } } }],
    ['sub', { sign: { claims: { sub: 'someone' } } }],
    ['bodyHash', { sign: { claims: { bodyHash: '00' } } }],
    ['nonce', { sign: { nonce: '' } }],
    ['signature', { sign: { privateKey: other } }],
    ['x-api-key', { headers: { 'x-api-key': '00000000-0000-4000-8000-000000000000' } }],
    ['x-api-key', { headers: { 'x-api-key': 'no' } }],
    ['Authorization', { headers: { authorization: 'Basic abc' } }],
    ['token', { headers: { authorization: 'Bearer abc' } }],
  ]
  for (const [claim, options] of cases) {
    const answer = await problem('GET', '/dac/v1/transactions', undefined, options)
    assert.equal(answer.status, 401, `${claim}: ${answer.text}`)
    assert.equal(answer.body.field, claim, answer.text)
    assert.equal(answer.body.error, 'Unauthorized')
    assert.ok(answer.body.message.startsWith(`${claim}: `))
  }
  assert.equal((await problem('GET', '/dac/v1/transactions', undefined, {}, null)).status, 401)
})

test('accepts Bearer and Token schemes, signed and unsigned queries, and earlier claim names', async () => {
  const signed = await signRequest({
    apiKey: user.apiKey,
    privateKey: PRIVATE_KEY,
    method: 'GET',
    uri: '/dac/v1/transactions',
    claims: { method: undefined },
  })
  const answer = await fetch(`${api.base}/dac/v1/transactions?page=1`, {
    headers: { ...requestHeaders(signed, user.apiKey), authorization: `Token ${signed.token}` },
  })
  assert.equal(answer.status, 200)
  const empty = 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855'
  assert.equal(
    (
      await problem('GET', '/dac/v1/transactions', undefined, {
        sign: {
          claims: {
            bodyHash: undefined,
            bodyhash: empty,
            nonce: Number.parseInt(randomBytes(6).toString('hex'), 16),
          },
        },
      })
    ).status,
    200,
  )
})

test('a nonce is accepted once, and a changed body is refused', async () => {
  const sign = { nonce: 'once' }
  assert.equal((await problem('GET', '/dac/v1/transactions', undefined, { sign })).status, 200)
  assert.equal(
    (await problem('GET', '/dac/v1/transactions', undefined, { sign })).body.field,
    'nonce',
  )
  const signed = await signRequest({
    apiKey: user.apiKey,
    privateKey: PRIVATE_KEY,
    method: 'POST',
    uri: '/dac/v1/address',
    body: '{"asset":"BTC"}',
  })
  const answer = await fetch(`${api.base}/dac/v1/address`, {
    method: 'POST',
    headers: requestHeaders(signed, user.apiKey),
    body: '{"asset": "BTC"}',
  })
  assert.equal(answer.status, 401)
})

test('responses to requests with and without a key have rate-limit headers', async () => {
  for (const answer of [
    await call(null, 'GET', '/assets', undefined, { base: api.base }),
    await call(user, 'GET', '/dac/v1/transactions'),
    await problem('GET', '/nowhere', undefined, {}, null),
    await problem('GET', '/dac/v1/transactions', undefined, {}, null),
  ]) {
    assert.match(answer.headers.get('x-rate-limit-remaining') ?? '', /^\d+$/)
    assert.equal(answer.headers.get('x-rate-limit-limit'), '1m')
    assert.equal(new Date(answer.headers.get('x-rate-limit-reset') ?? '').getTime() % 60_000, 0)
  }
})

test('duplicate authentication headers are refused', async () => {
  const signed = await signRequest({
    apiKey: user.apiKey,
    privateKey: PRIVATE_KEY,
    method: 'GET',
    uri: '/dac/v1/transactions',
  })
  const text = await api.raw(
    `GET /dac/v1/transactions HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${signed.token}\r\nauthorization: Bearer ${signed.token}\r\nx-api-key: ${user.apiKey}\r\nconnection: close\r\n\r\n`,
  )
  assert.match(text, /^HTTP\/1\.1 401/)
})

test('a read-only key can read and validate; its writes get 403', async () => {
  assert.equal(
    (await problem('GET', '/dac/v1/wallets?asset=BTC', undefined, {}, reader)).status,
    200,
  )
  assert.equal(
    (
      await problem(
        'POST',
        '/dac/v1/validate-address',
        { asset: 'BTC', address: BTC_TO },
        {},
        reader,
      )
    ).status,
    200,
  )
  for (const [path, body] of [
    ['/dac/v1/create-wallet', { asset: 'ETH' }],
    ['/dac/v1/address', { asset: 'BTC' }],
    ['/dac/v1/transaction', transferBody('BTC', '0.1', BTC_TO)],
  ] as const) {
    const answer = await problem('POST', path, body, {}, reader)
    assert.equal(answer.status, 403)
    assert.equal(answer.body.code, 'READ_ONLY')
  }
})

test('only full keys may write; what people signed is carried by any key, proposals by approvers', async () => {
  const keys = {
    approve: await api.user('api', { role: 'approve' }),
    'read-only': reader,
  }
  const allowed: Record<string, string[]> = { approve: [], 'read-only': [] }
  for (const { method, path, access } of endpoints) {
    if (access !== 'write') continue
    const uri = path.replaceAll(/\{\w+\}/g, '00000000-0000-4000-8000-000000000000')
    for (const [role, key] of Object.entries(keys)) {
      const answer = await problem(method, uri, method === 'DELETE' ? undefined : {}, {}, key)
      if (answer.body.code !== 'READ_ONLY') allowed[role]?.push(`${method} ${path}`)
      else assert.match(answer.body.message, new RegExp(`role ${role}; .* role full`))
    }
  }
  const carried = [
    'POST /dac/v1/approvals/{id}',
    'POST /dac/v1/policy/resume',
    'POST /dac/v1/policy/stop',
    'POST /dac/v1/policy/suspend',
    'POST /dac/v1/policy/veto',
  ]
  const proposed = ['POST /dac/v1/policy/changes', 'POST /dac/v1/policy/changes/{id}/possessions']
  assert.deepEqual(allowed['read-only']?.toSorted(), carried)
  assert.deepEqual(allowed['approve']?.toSorted(), [...carried, ...proposed].toSorted())
})

test('an id of another workspace gets 403; one of another sub-account or an unknown id gets 404', async () => {
  const id = await addDeposit()
  const stranger = await api.user('strangers')
  const sibling = await api.user('api', { subAccount: 'second' })
  assert.equal(
    (await problem('GET', `/dac/v1/transaction/${id}`, undefined, {}, stranger)).status,
    403,
  )
  assert.equal(
    (await problem('GET', `/dac/v1/transaction/${id}`, undefined, {}, sibling)).status,
    404,
  )
  for (const other of ['00000000-0000-4000-8000-000000000000', 'no-id', '%00', 'a'.repeat(150)])
    assert.equal((await problem('GET', `/dac/v1/transaction/${other}`)).status, 404, other)
  assert.equal((await problem('GET', `/dac/v1/transaction/${id}`)).status, 200)
})

test('requests beyond the rate limit get 429 with Retry-After, and other keys are not affected', async () => {
  const limited = await api.user('limited', { rateLimit: 3 })
  // The minute may change between the calls, so the limit is reached within two windows at the
  // latest.
  const answers = []
  for (let count = 0; count < 7; count++)
    answers.push(await problem('GET', '/dac/v1/transactions', undefined, {}, limited))
  const refused = answers.find((answer) => answer.status === 429)
  assert.ok(refused, 'seven requests pass an allowance of three a minute')
  assert.equal(refused.body.code, 'RATE_LIMITED')
  assert.equal(refused.headers.get('x-rate-limit-remaining'), '0')
  assert.match(refused.headers.get('retry-after') ?? '', /^\d+$/)
  assert.equal((await problem('GET', '/dac/v1/transactions')).status, 200)
})

test('refuses to replace foreign transfers, unknown ids and deposits, or with a read-only key', async () => {
  const amend = (id: string, name: 'speed-up' | 'cancel', as: User = user, body = {}) =>
    problem('POST', `/dac/v1/transaction/${id}/${name}`, body, {}, as)
  const deposit = await addDeposit()
  const stranger = await api.user('strangers')
  for (const name of ['speed-up', 'cancel'] as const) {
    assert.equal((await amend('00000000-0000-4000-8000-000000000000', name)).status, 404)
    const refused = await amend(deposit, name)
    assert.deepEqual([refused.status, refused.body.code], [400, 'NOT_REPLACEABLE'], refused.text)
    assert.equal((await amend(deposit, name, reader)).status, 403)
    assert.equal((await amend(deposit, name, stranger)).status, 403)
    assert.equal((await amend(deposit, name, user, { feerate: 70 })).body.code, 'UNKNOWN_FIELD')
  }
})
