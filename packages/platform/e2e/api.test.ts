import assert from 'node:assert/strict'
import { generateKeyPairSync, randomBytes, randomUUID } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import * as fc from '../../../testing/property.ts'
import { requestHeaders, signRequest } from '@custody/request-auth'
import {
  call,
  fundedWallet,
  PRIVATE_KEY,
  TestPlatform,
  transferBody,
  type Transfer,
  type User,
  waitFor,
} from '../testing/harness.ts'
import { exportLog, verifyExport } from '../src/server/operator/cli/console.ts'
import { takeLink } from '../testing/console-fixture.ts'

const platform = new TestPlatform()
let user: User
let reader: User
const BTC_TO = 'bcrt1qw508d6qejxtdg4y5r3zarvary0c5xw7kygt080'

before(async () => {
  await platform.start({ CUSTODY_LOG_LEVEL: 'info' })
  user = await platform.user('api')
  reader = await platform.user('api', { role: 'read-only' })
  await fundedWallet(platform, user, 'BTC', '1')
})
after(() => platform.remove())

interface Problem {
  error: string
  message: string
  code: string
  field?: string
  request_id: string
  status: string
  wallet_id?: string
}
const problem = async (
  method: string,
  path: string,
  body?: unknown,
  options?: Parameters<typeof call>[4],
  as: User | null = user,
) => call<Problem>(as, method, path, body, { base: platform.base, ...options })

test('GET /assets needs no key, and returns the same list as supported-assets', async () => {
  const open = await call<{ asset_name: string; decimals: string }[]>(
    null,
    'GET',
    '/assets',
    undefined,
    { base: platform.base },
  )
  assert.equal(open.status, 200)
  assert.match(open.text, /"min_withdrawal":0\.000000000000000001,/, 'an amount is an exact number')
  for (const ticker of ['BTC', 'ETH', 'USDT_ETH'])
    assert.ok(open.body.some((asset) => asset.asset_name === ticker))
  const signed = await call(user, 'GET', '/dac/v1/supported-assets')
  assert.deepEqual(signed.body, open.body)
})

test('every response has rate-limit headers', async () => {
  for (const answer of [
    await call(null, 'GET', '/assets', undefined, { base: platform.base }),
    await call(user, 'GET', '/dac/v1/transactions'),
    await problem('GET', '/nowhere', undefined, {}, null),
    await problem('GET', '/dac/v1/transactions', undefined, {}, null),
  ]) {
    assert.match(answer.headers.get('x-rate-limit-remaining') ?? '', /^\d+$/)
    assert.equal(answer.headers.get('x-rate-limit-limit'), '1m')
    assert.equal(new Date(answer.headers.get('x-rate-limit-reset') ?? '').getTime() % 60_000, 0)
  }
})

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
  })
  const answer = await fetch(`${platform.base}/dac/v1/transactions?page=1`, {
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
  const answer = await fetch(`${platform.base}/dac/v1/address`, {
    method: 'POST',
    headers: requestHeaders(signed, user.apiKey),
    body: '{"asset": "BTC"}',
  })
  assert.equal(answer.status, 401)
})

test('duplicate authentication headers are refused', async () => {
  const signed = await signRequest({
    apiKey: user.apiKey,
    privateKey: PRIVATE_KEY,
    method: 'GET',
    uri: '/dac/v1/transactions',
  })
  const text = await raw(
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

test('creating a second wallet of an asset gets 400 with the id of the first, at both paths', async () => {
  const [existing] = (await call<{ id: string }[]>(user, 'GET', '/dac/v1/wallets?asset=BTC')).body
  for (const path of ['/dac/v1/create-wallet', '/dac/v1/wallet']) {
    const answer = await problem('POST', path, { asset: 'BTC' })
    assert.equal(answer.status, 400)
    assert.equal(answer.body.code, 'WALLET_EXISTS')
    assert.equal(answer.body.wallet_id, existing?.id)
  }
})

test("bad input gets 400 with the field's name", async () => {
  const to = transferBody
  const cases: [string, string, unknown][] = [
    ['asset', '/dac/v1/create-wallet', {}],
    ['asset', '/dac/v1/create-wallet', { asset: 'btc' }],
    ['asset', '/dac/v1/create-wallet', { asset: 7 }],
    ['colour', '/dac/v1/create-wallet', { asset: 'ETH', colour: 'red' }],
    ['body', '/dac/v1/create-wallet', '[]'],
    ['body', '/dac/v1/create-wallet', '{"asset":"ETH","asset":"ETH"}'],
    ['body', '/dac/v1/create-wallet', '{"asset":'],
    ['amount', '/dac/v1/transaction', to('BTC', '0', BTC_TO)],
    ['amount', '/dac/v1/transaction', to('BTC', '-1', BTC_TO)],
    ['amount', '/dac/v1/transaction', to('BTC', '0.123456789', BTC_TO)],
    ['amount', '/dac/v1/transaction', to('BTC', '"abc"', BTC_TO)],
    ['amount', '/dac/v1/transaction', to('BTC', 'null', BTC_TO)],
    ['amount', '/dac/v1/transaction', to('BTC', '0.00000001', BTC_TO)],
    ['amount', '/dac/v1/transaction', to('BTC', '1e400', BTC_TO)],
    ['destination_address', '/dac/v1/transaction', to('BTC', '0.1', 'nonsense')],
    [
      'destination_address',
      '/dac/v1/transaction',
      to('BTC', '0.1', 'bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4'),
    ],
    ['address_tag', '/dac/v1/transaction', to('BTC', '0.1', BTC_TO, { address_tag: '5' })],
    ['adress_tag', '/dac/v1/transaction', to('BTC', '0.1', BTC_TO, { adress_tag: '5' })],
    ['fee_rate', '/dac/v1/transaction', to('BTC', '0.1', BTC_TO, { fee_rate: 0.01 })],
    ['fee_rate', '/dac/v1/transaction', to('BTC', '0.1', BTC_TO, { fee_rate: 1e9 })],
    ['fee_level', '/dac/v1/transaction', to('BTC', '0.1', BTC_TO, { fee_level: 'urgent' })],
    [
      'fee_level',
      '/dac/v1/transaction',
      to('BTC', '0.1', BTC_TO, { fee_level: 'low', fee_rate: 5 }),
    ],
    ['sequence_id', '/dac/v1/transaction', to('BTC', '0.1', BTC_TO, { sequence_id: '' })],
    [
      'destination_type',
      '/dac/v1/transaction',
      '{"asset":"BTC","amount":1,"destination_address":"x","destination_type":"INTERNAL","source_type":"INTERNAL"}',
    ],
  ]
  for (const [field, path, body] of cases) {
    const answer = await problem('POST', path, body)
    assert.equal(answer.status, 400, `${JSON.stringify(body)}: ${answer.text}`)
    assert.equal(answer.body.field, field, answer.text)
    assert.ok(answer.body.message.startsWith(`${field}: `), answer.body.message)
    assert.equal(typeof answer.body.error, 'string')
    assert.equal(typeof answer.body.request_id, 'string')
  }
  assert.equal(
    (await call<{ total: string }>(user, 'GET', '/dac/v1/transactions?type=Withdraw')).body.total,
    '0',
    'nothing was changed',
  )
})

test('accepts every exact valid spelling of addresses and amounts', async () => {
  for (const amount of ['"0.001"', '1e-3', '0.0010', '1E-3']) {
    const answer = await call<Transfer>(
      user,
      'POST',
      '/dac/v1/transaction',
      transferBody('BTC', amount, BTC_TO.toUpperCase(), { type: 'Withdraw', ts: 1 }),
    )
    assert.equal(answer.status, 200, answer.text)
    assert.equal(answer.body.amount, '0.001')
    assert.equal(answer.body['destination_id'], BTC_TO)
  }
})

test('lists can be filtered and paged, and refuse invalid parameters', async () => {
  const list = (query: string) =>
    call<{ data: Transfer[]; page: string; limit: string; total: string }>(
      user,
      'GET',
      `/dac/v1/transactions${query}`,
    )
  const all = (await list('')).body
  assert.ok(Number(all.total) >= 5)
  const [first] = all.data as [Transfer]
  const now = Math.floor(Date.now() / 1000)
  const counts: [string, number][] = [
    ['?asset=BTC', all.data.length],
    ['?asset=ETH', 0],
    [`?before=${now + 60}`, all.data.length],
    [`?after=${now + 60}`, 0],
    ['?before=1', 0],
    ['?source_type=external', 1],
    ['?dest_type=EXTERNAL', 4],
    [`?id=${first.id}`, 1],
    [`?id=${first.id}&asset=ETH`, 0],
    ['?memo=none', 0],
    ['?status=failed', 0],
    [`?dest_id=${BTC_TO}`, 4],
    ['?page=99', 0],
    ['?limit=2', 2],
    ['?limit=2&page=2', 2],
  ]
  for (const [query, expected] of counts) {
    const answer = await list(query)
    assert.equal(answer.status, 200, answer.text)
    assert.equal(answer.body.data.length, expected, query)
  }
  const pages = [
    ...(await list('?limit=3&page=1')).body.data,
    ...(await list('?limit=3&page=2')).body.data,
  ]
  assert.deepEqual(
    pages.map((each) => each.id),
    all.data.slice(0, 6).map((each) => each.id),
  )
  for (const [field, query] of [
    ['page', '?page=0'],
    ['limit', '?limit=501'],
    ['limit', '?limit=x'],
    ['before', '?before=99999999999'],
    ['colour', '?colour=red'],
    ['asset', '?asset=btc'],
  ] as const) {
    const answer = await problem('GET', `/dac/v1/transactions${query}`)
    assert.equal(answer.status, 400, query)
    assert.equal(answer.body.field, field)
  }
})

test('an id of another workspace gets 403; one of another sub-account or an unknown id gets 404', async () => {
  const { body } = await call<{ data: Transfer[] }>(user, 'GET', '/dac/v1/transactions')
  const id = body.data[0]?.id as string
  const stranger = await platform.user('strangers')
  const sibling = await platform.user('api', { subAccount: 'second' })
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
  const limited = await platform.user('limited', { rateLimit: 3 })
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

test('the CLI prints JSON on its last line and errors on stderr, and enrolment can be repeated', async () => {
  const created = await platform.cli(
    'api-user',
    'create',
    '--workspace',
    'operated',
    '--sub-account',
    'main',
    '--role',
    'read-only',
    '--public-key',
    platform.writePublicKey(),
    '--json',
  )
  assert.equal(created.status, 0, created.stderr)
  const { api_key: apiKey } = JSON.parse(created.stdout.trim().split('\n').at(-1) as string) as {
    api_key: string
  }
  const again = await platform.cli('api-user', 'enrol', '--api-key', apiKey, '--json')
  assert.deepEqual([again.status, JSON.parse(again.stdout).enrolled], [0, true], again.stderr)
  const wallet = await platform.cli(
    'wallet',
    'set',
    '--workspace',
    'api',
    '--sub-account',
    'main',
    '--asset',
    'BTC',
    '--status',
    'inactive',
    '--reason',
    'a look',
    '--json',
  )
  assert.deepEqual(
    [wallet.status, JSON.parse(wallet.stdout).status],
    [0, 'inactive'],
    wallet.stderr,
  )
  assert.match(
    (
      await platform.cli(
        'wallet',
        'set',
        '--id',
        JSON.parse(wallet.stdout).id,
        '--status',
        'active',
      )
    ).stdout,
    /api \/ main {2}BTC {2}active\n/,
  )
  assert.match(
    (await platform.cli('wallet', 'list', '--workspace', 'api')).stdout,
    /api \/ main {2}BTC {2}active\n/,
  )
  for (const [words, said] of [
    [['api-user', 'create', '--workspace', 'x'], '--public-key'],
    [['api-user', 'revoke', '--api-key', 'none'], '--api-key: must be a UUID'],
    [['api-user', 'revoke', '--api-key', randomUUID()], '--api-key: API user'],
    [['gas-tank', 'list', '--workspace', 'none'], '--workspace: workspace none does not exist'],
    [['gas-tank', 'address', '--workspace', 'operated', '--network', 'BTC'], '--network'],
    [['devnet', 'fund', 'BTC', 'nowhere', '1'], 'address'],
    [['devnet', 'mine', 'BTC', 'x'], 'blocks'],
    [['nonsense'], 'unknown command'],
    [
      ['wallet', 'set', '--status', 'inactive'],
      'either --id, or --workspace, --sub-account and --asset are required',
    ],
    [['wallet', 'set', '--id', randomUUID()], '--status'],
    [['wallet', 'set', '--id', randomUUID(), '--status', 'active'], 'does not exist'],
    [['request', 'GET', 'x'], 'Usage: custody request'],
    [['signer', 'refresh', '--workspace', 'none'], 'no key of workspace none'],
    [['keygen', '--out', platform.writePublicKey()], 'already exists'],
  ] as const) {
    const refused = await platform.cli(...words, '--json')
    assert.equal(refused.status, 1, words.join(' '))
    assert.equal(refused.stdout, '', words.join(' '))
    assert.match(refused.stderr, new RegExp(said), words.join(' '))
  }
})

test('revoked keys are refused', async () => {
  const gone = await platform.user('gone')
  assert.equal((await problem('GET', '/dac/v1/transactions', undefined, {}, gone)).status, 200)
  assert.equal(
    (await platform.cli('api-user', 'revoke', '--api-key', gone.apiKey, '--json')).status,
    0,
  )
  assert.equal((await problem('GET', '/dac/v1/transactions', undefined, {}, gone)).status, 401)
})

test('unknown paths, methods, media types and excessive sizes get the matching 4xx status', async () => {
  assert.equal((await problem('GET', '/dac/v2/wallets', undefined, {}, null)).status, 404)
  const method = await problem('GET', '/dac/v1/create-wallet', undefined, {}, null)
  assert.equal(method.status, 405)
  assert.equal(method.headers.get('allow'), 'POST')
  assert.equal(
    (
      await problem('POST', '/dac/v1/create-wallet', 'asset=ETH', {
        headers: { 'content-type': 'application/x-www-form-urlencoded' },
      })
    ).status,
    415,
  )
  assert.equal(
    (
      await problem('POST', '/dac/v1/create-wallet', '{"asset":"ETH"}', {
        headers: { 'content-encoding': 'gzip' },
      })
    ).status,
    415,
  )
  assert.equal(
    (await problem('POST', '/dac/v1/create-wallet', `{"asset":"${'x'.repeat(1_100_000)}"}`)).status,
    413,
  )
})

test('validate-address returns the reason why an address is invalid', async () => {
  const check = async (asset: string, address: string, more = {}) =>
    (
      await call<{ valid: boolean; reason?: string }>(user, 'POST', '/dac/v1/validate-address', {
        asset,
        address,
        ...more,
      })
    ).body
  assert.deepEqual(await check('BTC', BTC_TO), { valid: true })
  assert.match(
    (await check('BTC', '0x00000000000000000000000000000000000000aa')).reason ?? '',
    /not an address of Bitcoin/,
  )
  assert.match(
    (await check('ETH', '0x52908400098527886E0F7030069857D2E4169Ee7')).reason ?? '',
    /checksum/,
  )
  assert.equal((await check('ETH', '')).valid, false)
})

test('returns fee rates and fee estimates', async () => {
  const rates = await call<{
    low: string
    medium: string
    high: string
    fee_rate_unit: string
    updated_at: string
  }>(reader, 'GET', '/dac/v1/network-fee-rates/BTC')
  assert.equal(rates.status, 200, rates.text)
  assert.equal(rates.body.fee_rate_unit, 'Sat/Byte')
  assert.ok(Number(rates.body.low) <= Number(rates.body.high))
  assert.ok(Math.abs(Date.now() - new Date(rates.body.updated_at).getTime()) < 30_000)
  const estimate = (body: Record<string, unknown>, as = user) =>
    call<{ fee: string; basis: string; fee_rate: string; fee_rate_unit: string }>(
      as,
      'POST',
      '/dac/v1/estimate-fee',
      body,
    )
  const own = await estimate({ asset: 'BTC', fee_rate: 5, amount: 0.1 })
  assert.deepEqual(
    [own.status, own.body.fee, own.body.basis, own.body.fee_rate_unit],
    [200, '0.00000705', 'wallet', 'Sat/Byte'],
    own.text,
  )
  for (const body of [
    { asset: 'BTC', fee_rate: 5 },
    { asset: 'BTC', fee_rate: 5, amount: 1000 },
    { asset: 'BTC', fee_rate: 5, amount: 0.00000001 },
  ]) {
    const typical = await estimate(body)
    assert.deepEqual(
      [typical.status, typical.body.basis, typical.body.fee],
      [200, 'typical', '0.00000705'],
      typical.text,
    )
  }
  const eth = await estimate({ asset: 'ETH', fee_rate: 2.5 }, reader)
  assert.deepEqual(
    [eth.body.fee, eth.body.fee_rate, eth.body.fee_rate_unit],
    ['0.0000525', '2.5', 'GWei'],
  )
  assert.equal((await estimate({ asset: 'USDT_ETH', fee_rate: 1 })).body.fee, '0.000065')
  const xrp = await estimate({ asset: 'XRP', fee_rate: 12, amount: 3 })
  assert.deepEqual([xrp.body.fee, xrp.body.fee_rate_unit], ['0.000012', 'Drop'], xrp.text)
  for (const ticker of ['XRP', 'XLM', 'ONE', 'DOGE'])
    assert.equal(
      (await call(reader, 'GET', `/dac/v1/network-fee-rates/${ticker}`)).status,
      200,
      ticker,
    )
  for (const [field, body] of [
    ['fee_rate', { asset: 'BTC' }],
    ['fee_rate', { asset: 'BTC', fee_rate: -1 }],
    ['fee_rate', { asset: 'BTC', fee_rate: 0 }],
    ['fee_rate', { asset: 'BTC', fee_rate: 1.0001 }],
    ['amount', { asset: 'BTC', fee_rate: 1, amount: 0 }],
    ['asset', { asset: 'XYZ', fee_rate: 1 }],
  ] as const) {
    const answer = await problem('POST', '/dac/v1/estimate-fee', body)
    assert.deepEqual([answer.status, answer.body.field], [400, field], answer.text)
  }
  assert.equal((await problem('GET', '/dac/v1/network-fee-rates/XYZ')).status, 400)
})

test('serves the OpenAPI document, health and readiness', async () => {
  const document = await call<{ paths: Record<string, unknown>; openapi: string }>(
    null,
    'GET',
    '/openapi.json',
    undefined,
    { base: platform.base },
  )
  assert.equal(document.body.openapi, '3.1.0')
  for (const path of [
    '/assets',
    '/dac/v1/transaction',
    '/dac/v1/transaction/{id}',
    '/dac/v1/wallets',
    '/livez',
    '/readyz',
    '/metrics',
    '/openapi.json',
  ])
    assert.ok(document.body.paths[path], path)
  const { responses } = (
    document.body.paths['/dac/v1/transaction'] as Record<string, { responses: object }>
  )['post']!
  assert.deepEqual(Object.keys(responses), [
    '200',
    '400',
    '401',
    '403',
    '404',
    '408',
    '409',
    '413',
    '414',
    '415',
    '429',
    '431',
    '500',
    '503',
  ])
  assert.equal((await call(null, 'GET', '/livez', undefined, { base: platform.base })).status, 200)
  assert.equal((await call(null, 'GET', '/readyz', undefined, { base: platform.base })).status, 200)
})

test('no input causes a 500', async () => {
  const paths = [
    '/dac/v1/create-wallet',
    '/dac/v1/address',
    '/dac/v1/transaction',
    '/dac/v1/validate-address',
    '/dac/v1/wallet',
  ]
  const leaf = fc.oneof(
    fc.string(),
    fc.double(),
    fc.constant(null),
    fc.boolean(),
    fc.constantFrom(
      'BTC',
      'ETH',
      'EXTERNAL',
      'INTERNAL',
      BTC_TO,
      '0.1',
      '\u0000',
      '1e999',
      '\ud800',
    ),
  )
  const body = fc.oneof(
    fc
      .dictionary(
        fc.constantFrom(
          'asset',
          'amount',
          'destination_address',
          'destination_type',
          'source_type',
          'sequence_id',
          'memo',
          'address_tag',
          'fee_rate',
          'fee_level',
          'label',
          'address',
        ),
        fc.oneof(leaf, fc.array(leaf), fc.object()),
      )
      .map((value) => JSON.stringify(value)),
    fc
      .record({
        asset: fc.constantFrom('BTC', 'ETH', 'USDT_ETH'),
        amount: leaf,
        destination_address: fc.oneof(leaf, fc.constant(BTC_TO)),
        destination_type: fc.constant('EXTERNAL'),
        source_type: fc.constant('INTERNAL'),
        memo: leaf,
        sequence_id: leaf,
        address_tag: leaf,
        fee_rate: leaf,
      })
      .map((value) => JSON.stringify(value)),
    fc.string().filter((value) => value !== ''),
  )
  await fc.assert(
    fc.asyncProperty(fc.constantFrom(...paths), body, async (path, text) => {
      const answer = await problem('POST', path, text)
      assert.ok(answer.status < 500, `${path} ${text}: ${answer.text}`)
    }),
    { numRuns: 150, seed: 7 },
  )
  await fc.assert(
    fc.asyncProperty(
      fc.constantFrom(
        'asset',
        'before',
        'after',
        'source_id',
        'dest_id',
        'status',
        'page',
        'limit',
        'id',
        'memo',
        'type',
      ),
      fc.string(),
      async (name, value) => {
        const answer = await problem(
          'GET',
          `/dac/v1/transactions?${name}=${encodeURIComponent(value.toWellFormed())}`,
        )
        assert.ok(answer.status < 500, `${name}=${value}: ${answer.text}`)
      },
    ),
    { numRuns: 80, seed: 7 },
  )
  for (const bytes of [
    'GET / HTTP/1.1\r\n\r\n',
    'X\r\n\r\n',
    'GET /%ff%00 HTTP/1.1\r\nhost: a\r\n\r\n',
    `POST /dac/v1/transaction HTTP/1.1\r\nhost: a\r\ncontent-length: -1\r\n\r\n`,
    `GET / HTTP/1.1\r\nhost: a\r\nx: ${'y'.repeat(20_000)}\r\n\r\n`,
  ]) {
    assert.match(await raw(bytes), /^HTTP\/1\.1 4\d\d/)
  }
})

/** Sends bytes to the server and returns its response. */
function raw(bytes: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect(Number(new URL(platform.base).port), '127.0.0.1', () =>
      socket.end(bytes),
    )
    let text = ''
    socket.on('data', (chunk: Buffer) => (text += chunk.toString()))
    socket.on('close', () => resolve(text))
    socket.on('error', reject)
    socket.setTimeout(10_000, () => socket.destroy(new Error('no answer')))
  })
}

test("a member who joined by an operator's link sees a transfer’s whole timeline in the panel", async () => {
  const { link } = (await platform.operator('console invite', {
    workspace: 'api',
    role: 'viewer',
  })) as { link: string }
  assert.match(link, /^http:\/\/localhost:\d+\/console\/join\//)
  const { browser } = await takeLink(platform, link.split('/').at(-1) as string)
  const made = await call<Transfer>(
    user,
    'POST',
    '/dac/v1/transaction',
    transferBody('BTC', '0.01', BTC_TO, { memo: 'told' }),
  )
  assert.equal(made.status, 200, made.text)
  await waitFor(
    'its end',
    async () =>
      (await call<Transfer>(user, 'GET', `/dac/v1/transaction/${made.body.id}`)).body.status ===
      'confirmed',
  )
  const story = await browser.ask<{
    transaction: Transfer
    states: { state: string; at: string }[]
    request: { api_key: string; uri: string; claims: { nonce: string } }
    receipts: number[]
    signed_by: { attempt: number; purpose: string; nodes: number[] }[]
    attempts: { hash: string; state: string; fee: number }[]
    fee: { planned: number; paid: number; asset: string }
    confirmations: { now: number; needed: number }
    ledger: { entry: string; account: string; amount: number }[]
    events: { type: string }[]
  }>('GET', `/workspaces/api/sub-accounts/main/transactions/${made.body.id}/story`)
  assert.equal(story.status, 200, story.text)
  const timeline = story.body
  const states = timeline.states.map(({ state }) => state)
  assert.deepEqual(
    states.filter((state, at) => states.indexOf(state) === at),
    ['CREATED', 'QUEUED', 'SIGNING', 'SIGNED', 'BROADCASTING', 'CONFIRMING', 'CONFIRMED'],
  )
  assert.deepEqual(
    timeline.states.map(({ at }) => at),
    timeline.states.map(({ at }) => at).toSorted(),
  )
  assert.deepEqual(
    [timeline.request.api_key, timeline.request.uri],
    [user.apiKey, '/dac/v1/transaction'],
  )
  assert.ok(!story.text.includes('"token"'), 'the signed request itself is not handed out')
  assert.equal(timeline.signed_by.length, 1)
  const [by] = timeline.signed_by
  assert.ok(
    by?.nodes.length === 2 &&
      new Set(by.nodes).size === 2 &&
      by.nodes.every((node) => [1, 2, 3].includes(node)),
    JSON.stringify(by),
  )
  assert.equal(timeline.attempts.at(-1)?.hash, timeline.transaction.hash)
  assert.equal(timeline.fee.paid, timeline.transaction.fee)
  assert.ok(timeline.fee.planned >= timeline.fee.paid && timeline.fee.asset === 'BTC')
  assert.ok(timeline.confirmations.now >= timeline.confirmations.needed)
  assert.deepEqual(
    [...new Set(timeline.ledger.map(({ entry }) => entry))],
    ['reserve', 'prepaid-reserve', 'prepaid-charge', 'settle'],
  )
  assert.ok(
    Math.abs(timeline.ledger.reduce((sum, { amount }) => sum + amount, 0)) < 1e-9,
    'entries sum to zero',
  )
  for (const type of ['transaction.created', 'transaction.confirmed'])
    assert.ok(
      timeline.events.some((event) => event.type === type),
      type,
    )
  const health = await browser.ask<{
    nodes: { ready: boolean; height: number }[]
    chains: { network: string; ok: boolean; height: number | null }[]
  }>('GET', '/workspaces/api/health')
  assert.ok(
    health.body.nodes.length === 3 &&
      health.body.nodes.every(({ ready, height }) => ready && height > 0),
    health.text,
  )
  assert.ok(
    health.body.chains.some(
      ({ network, ok, height }) => network === 'BTC' && ok && height !== null,
    ),
  )
  // The audit log is exported and verified at the operator's terminal. The verification detects one
  // changed byte.
  const out = join(platform.home, 'audit.ndjson')
  const exported = await exportLog({
    home: platform.home,
    words: [],
    values: { workspace: 'api', out },
  })
  const verify = (head?: string) =>
    verifyExport({ home: platform.home, words: [out], values: { head } })
  const { result } = await verify(String(exported.result['hash']))
  assert.ok(
    Number(result['lines']) >= 4 && result['hash'] === exported.result['hash'],
    JSON.stringify(result),
  )
  await assert.rejects(async () => verify('0'.repeat(63) + '1'), /no line has the noted hash/)
  // Each entry is also a line of the process's log. The export is verified with the hash in that
  // line.
  const lines = platform.output
    .split('\n')
    .filter(
      (line) =>
        line.includes('"msg":"audit log entry written"') && line.includes('"api_user.created"'),
    )
    .map((line) => JSON.parse(line) as { hash: string })
  assert.ok(lines.length >= 2, platform.output.slice(-1000))
  for (const { hash } of lines.slice(0, 2)) await verify(hash)
  writeFileSync(out, readFileSync(out, 'utf8').replace('viewer', 'viewed'))
  await assert.rejects(async () => verify(), /was changed/)
  await assert.rejects(
    async () => exportLog({ home: platform.home, words: [], values: { workspace: 'api', out } }),
    /already exists/,
  )
})
