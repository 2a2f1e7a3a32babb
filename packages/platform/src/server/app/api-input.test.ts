import assert from 'node:assert/strict'
import { before, test } from 'node:test'
import { requestHeaders, signRequest } from '@custody/request-auth'
import { endpoints } from './endpoints.ts'
import { document } from '../../../testing/openapi-assertions.ts'
import { asking, concrete, useApi, type Problem } from '../../../testing/api-support.ts'
import { call, PRIVATE_KEY, transferBody, type User } from '../../../testing/harness.ts'

const api = useApi()
let user: User
let reader: User
before(async () => {
  await api.started
  user = await api.user('input')
  reader = await api.user('input', { role: 'read-only' })
})

const ask = asking(() => user)

test('an unknown filter value gets 400 with the list of allowed values', async () => {
  for (const [query, field, said] of [
    [
      '/dac/v1/transactions?status=done',
      'status',
      'status: must be one of pending, confirmed, failed',
    ],
    [
      '/dac/v1/transactions?type=nothing',
      'type',
      /^type: must be one of Withdraw, Deposit, .*Stake/,
    ],
    [
      '/dac/v1/transactions?source_type=FOO',
      'source_type',
      'source_type: must be one of INTERNAL, EXTERNAL, GAS_TANK, OMNIBUS, STAKING',
    ],
    [
      '/dac/v1/transactions?dest_type=',
      'dest_type',
      'dest_type: must be one of INTERNAL, EXTERNAL, GAS_TANK, OMNIBUS, STAKING',
    ],
    [
      '/dac/v1/auto-forwarding?status=off',
      'status',
      'status: must be one of pending, active, paused, awaiting_approval, expired, deleting, deleted',
    ],
    ['/dac/v1/auto-forwarding?asset=eth', 'asset', /did you mean ETH\?/],
  ] as const) {
    const { status, body, text } = await ask('GET', query)
    assert.deepEqual([status, body.field], [400, field], text)
    if (typeof said === 'string') assert.equal(body.message, said)
    else assert.match(body.message, said)
  }
  for (const query of [
    'status=Confirmed',
    'type=withdraw&dest_type=external',
    'source_type=internal',
    'type=Fuel',
  ])
    assert.equal((await ask('GET', `/dac/v1/transactions?${query}`)).status, 200, query)
})

test('on every endpoint, unknown and repeated query parameters get 400 with their names', async () => {
  for (const { method, path, access, body, query } of endpoints) {
    const signedBody = body || method !== 'GET' ? {} : undefined
    const valid = body ? undefined : signedBody
    const {
      status,
      body: problem,
      text,
    } = access === 'public'
      ? await call<Problem>(null, method, `${path}?colour=red`, undefined, { base: api.base })
      : await ask(method, `${concrete(path)}?colour=red`, valid ?? signedBody)
    assert.equal(status, 400, `${method} ${path}: ${text}`)
    // The signer nodes check the path of a write exactly as it was sent, so the API refuses any
    // query.
    if (access === 'write')
      assert.match(problem.message, /^path: must be .* exactly, without a query string/, path)
    // If the operation has a body, an error of the body is reported before an error of the query.
    else if (!body)
      assert.deepEqual(
        [problem.code, problem.field],
        ['UNKNOWN_FIELD', 'colour'],
        `${method} ${path}: ${text}`,
      )
    for (const name of Object.keys((query as { shape?: object } | undefined)?.shape ?? {})) {
      const twice = await ask(method, `${concrete(path)}?${name}=1&${name}=1`)
      assert.deepEqual(
        [twice.status, twice.body.message],
        [400, `${name}: appears twice; send it once`],
        path,
      )
    }
  }
  for (const path of ['/', '/openapi.json', '/livez', '/readyz', '/metrics', '/assets']) {
    const { status, body } = await call<Problem>(null, 'GET', `${path}?colour=red`, undefined, {
      base: api.base,
    })
    const suffix =
      { '/readyz': '; known are deep', '/openapi.json': '; known are amounts' }[path] ??
      ', which must be empty'
    assert.deepEqual(
      [status, body.message],
      [400, `colour: is not a known parameter of this request${suffix}`],
      path,
    )
    assert.equal((await call(null, 'GET', path, undefined, { base: api.base })).status, 200, path)
  }
  assert.equal(
    (await ask('GET', '/dac/v1/transactions?Status=failed')).body.message,
    'Status: is not a known parameter; did you mean status?',
  )
  assert.equal((await ask('POST', '/dac/v1/prepaid-fee?x=1', {})).body.field, 'x')
})

test('an object in place of a string gets 400, even if converting it to a string would fail', async () => {
  for (const odd of [
    '{"length":{"toString":1,"valueOf":1}}',
    '{"length":{"toString":null,"valueOf":null}}',
  ]) {
    const { status, text } = await ask(
      'POST',
      '/dac/v1/validate-address',
      `{"asset":"ETH","address":${odd}}`,
    )
    assert.equal(status, 400, text)
  }
})

test('null in an optional field means absent, and null in a required field means missing', async () => {
  assert.equal((await ask('POST', '/dac/v1/create-wallet', { asset: 'BTC' })).status, 200)
  const address = await call<{ label: string | null }>(
    user,
    'POST',
    '/dac/v1/address',
    '{"asset":"BTC","label":null}',
  )
  assert.deepEqual([address.status, address.body.label], [200, null], address.text)
  const none = {
    sequence_id: null,
    memo: null,
    address_tag: null,
    fee_rate: null,
    fee_level: null,
    type: null,
    ts: null,
  }
  const transfer = await ask(
    'POST',
    '/dac/v1/transaction',
    transferBody('BTC', '1', 'bcrt1qw508d6qejxtdg4y5r3zarvary0c5xw7kygt080', none),
  )
  assert.equal(transfer.body.code, 'INSUFFICIENT_BALANCE', transfer.text)
  for (const [path, body] of [
    ['/dac/v1/validate-address', { asset: 'BTC', address: 'x', address_tag: null }],
    [
      '/dac/v1/estimate-fee',
      { asset: 'BTC', fee_rate: 1, amount: null, destination_address: null },
    ],
  ] as const)
    assert.equal((await ask('POST', path, body)).status, 200, path)
  const missing = await ask('POST', '/dac/v1/create-wallet', '{"asset":null}')
  assert.deepEqual([missing.status, missing.body.message], [400, 'asset: is required'])
  assert.equal(
    (await ask('POST', '/dac/v1/create-wallet', '{"asset":"ETH","adress_tag":null}')).body.field,
    'adress_tag',
    'a field that nobody knows stays unknown',
  )
  const { properties, required } = document.components.schemas['CreateTransactionRequest'] as {
    properties: Record<string, object>
    required: string[]
  }
  for (const [name, schema] of Object.entries(properties))
    if (name !== 'ts')
      assert.equal(
        JSON.stringify(schema).includes('"null"'),
        !required.includes(name),
        `${name}: OpenAPI says what may be null`,
      )
})

test('a misspelt field is reported with the likely name, before missing fields', async () => {
  const transfer = {
    asset: 'BTC',
    destination_address: 'x',
    destination_type: 'EXTERNAL',
    source_type: 'INTERNAL',
  }
  for (const [wrong, meant] of [
    ['ammount', 'amount'],
    ['Amount', 'amount'],
    ['amout', 'amount'],
    ['destinationAddress', 'destination_address'],
    ['adress_tag', 'address_tag'],
    ['sequenceId', 'sequence_id'],
    ['sequnce_id', 'sequence_id'],
    ['meno', 'memo'],
  ] as const) {
    const { body } = await ask('POST', '/dac/v1/transaction', { ...transfer, [wrong]: '1' })
    assert.deepEqual(
      [body.field, body.message],
      [wrong, `${wrong}: is not a known field; did you mean ${meant}?`],
    )
  }
  assert.equal(
    (await ask('POST', '/dac/v1/create-wallet', { Asset: 'BTC' })).body.message,
    'Asset: is not a known field; did you mean asset?',
  )
  assert.equal(
    (await ask('POST', '/dac/v1/create-wallet', { colour: 1 })).body.message,
    'colour: is not a known field of this request; known are asset',
  )
  assert.match(
    (await ask('POST', '/dac/v1/prepaid-fee', { colour: 1 })).body.message,
    /^colour: is not a known field of this request, which must be an empty object$/,
  )
})

test('a body that is not UTF-8, has another charset, or belongs to a GET gets a specific error', async () => {
  const bytes = Buffer.concat([
    Buffer.from('{"asset":"ETH'),
    Buffer.from([0xff, 0xfe]),
    Buffer.from('"}'),
  ])
  const send = async (
    method: string,
    path: string,
    body: Uint8Array<ArrayBuffer>,
    type = 'application/json',
  ) => {
    const signed = await signRequest({
      apiKey: user.apiKey,
      privateKey: PRIVATE_KEY,
      method,
      uri: path,
      body: Buffer.from(body).toString('latin1'),
    })
    const answer = await fetch(`${api.base}${path}`, {
      method,
      headers: { ...requestHeaders(signed, user.apiKey), 'content-type': type },
      body,
    })
    return { status: answer.status, body: (await answer.json()) as Problem }
  }
  const broken = await send('POST', '/dac/v1/create-wallet', bytes)
  assert.deepEqual(
    [broken.status, broken.body.code, broken.body.message],
    [400, 'INVALID_JSON', 'body: must be UTF-8 text'],
  )
  const utf16 = await send(
    'POST',
    '/dac/v1/create-wallet',
    Buffer.from('{"asset":"ETH"}', 'utf16le'),
    'application/json; charset=utf-16',
  )
  assert.deepEqual(
    [utf16.status, utf16.body.message],
    [415, 'Content-Type: its charset must be utf-8'],
  )
  const marked = await ask('POST', '/dac/v1/create-wallet', '\uFEFF{"asset":"ETH"}')
  assert.deepEqual(
    [marked.status, marked.body.message],
    [400, 'body: begins with a byte order mark, which is not allowed in JSON'],
  )
  for (const [method, path] of [
    ['GET', '/dac/v1/transactions'],
    ['HEAD', '/dac/v1/transactions'],
    ['GET', '/assets'],
    ['GET', '/livez'],
  ] as const) {
    for (const carried of [
      'content-length: 2\r\n\r\n{}',
      'transfer-encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n',
    ]) {
      const text = await api.raw(
        `${method} ${path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-type: application/json\r\n${carried}`,
      )
      assert.match(text, /^HTTP\/1\.1 400/, `${method} ${path}`)
      if (method === 'GET')
        assert.match(
          text,
          /"message":"body: must be empty for GET; send the values as query parameters"/,
        )
    }
  }
  assert.match(
    await api.raw(
      'GET /livez HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: 0\r\n\r\n',
    ),
    /^HTTP\/1\.1 200/,
  )
  assert.equal((await call(reader, 'GET', '/dac/v1/transactions')).status, 200)
})
