import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { before, test } from 'node:test'
import { useApi, type Problem } from '../../../testing/api-support.ts'
import { call, transferBody, type Transfer, type User } from '../../../testing/harness.ts'

/** Tests of the checks of a request, of lists, and of the endpoints that need no key. */
const api = useApi()
let user: Awaited<ReturnType<typeof api.user>>
const BTC_TO = 'bcrt1qw508d6qejxtdg4y5r3zarvary0c5xw7kygt080'

before(async () => {
  await api.started
  user = await api.user('api')
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

/** Adds a confirmed deposit to the wallet without a chain. */
const addDeposit = () =>
  api.database.query(
    `insert into transactions (id, kind, workspace_id, sub_account_id, wallet_id, asset, network,
       amount, fee_asset, source_type, destination_type, state, status)
     select $1, 'DEPOSIT', workspace_id, sub_account_id, id, asset, network, 100000000, asset,
       'EXTERNAL', 'INTERNAL', 'CREDITED', 'confirmed' from wallets where sub_account_id = $2`,
    [randomUUID(), user.subAccountId],
  )

test('GET /assets needs no key, and returns the same list as supported-assets', async () => {
  const open = await call<{ asset_name: string; decimals: string }[]>(
    null,
    'GET',
    '/assets',
    undefined,
    { base: api.base },
  )
  assert.equal(open.status, 200)
  assert.match(open.text, /"min_withdrawal":0\.000000000000000001,/, 'an amount is an exact number')
  for (const ticker of ['BTC', 'ETH', 'USDT_ETH'])
    assert.ok(open.body.some((asset) => asset.asset_name === ticker))
  const signed = await call(user, 'GET', '/dac/v1/supported-assets')
  assert.deepEqual(signed.body, open.body)
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
  await addDeposit()
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

test('serves the OpenAPI document', async () => {
  const document = await call<{ paths: Record<string, unknown>; openapi: string }>(
    null,
    'GET',
    '/openapi.json',
    undefined,
    { base: api.base },
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
  assert.equal((await call(null, 'GET', '/livez', undefined, { base: api.base })).status, 200)
  assert.equal((await call(null, 'GET', '/readyz', undefined, { base: api.base })).status, 200)
})
