import assert from 'node:assert/strict'
import { createHash, randomUUID, sign } from 'node:crypto'
import { connect } from 'node:net'
import { before, test } from 'node:test'
import { requestHeaders, signRequest } from '@custody/request-auth'
import { useApi, type Problem } from '../../../testing/api-support.ts'
import { call, PRIVATE_KEY } from '../../../testing/harness.ts'
import { HANG_MS } from '../../../../../testing/wait-for.ts'

/**
 * Tests the request line: methods, forms of the target, percent-encoding. The tests send bytes over
 * a socket to the real server.
 */
const api = useApi()
let user: Awaited<ReturnType<typeof api.user>>
before(async () => {
  await api.started
  user = await api.user()
})

interface Answer {
  status: number
  allow: string | null
  body: Problem
}

/** Sends bytes to the server and returns its response. The connection stays open for writing. */
const exchange = (bytes: string): Promise<string> =>
  new Promise((resolve, reject) => {
    const socket = connect(Number(new URL(api.base).port), '127.0.0.1', () =>
      socket.write(bytes, 'latin1'),
    )
    let text = ''
    socket.on('data', (chunk: Buffer) => (text += chunk.toString()))
    socket.on('close', () => resolve(text))
    socket.on('error', reject)
    socket.setTimeout(HANG_MS, () => socket.destroy(new Error(`no answer to ${bytes}`)))
  })

async function send(
  line: string,
  headers: Record<string, string> = {},
  body = '',
): Promise<Answer> {
  const all = { host: 'x', connection: 'close', ...headers }
  const text = await exchange(
    `${line} HTTP/1.1\r\n${Object.entries(all)
      .map(([name, value]) => `${name}: ${value}\r\n`)
      .join('')}\r\n${body}`,
  )
  const [head = '', rest = ''] = text.split('\r\n\r\n')
  assert.match(head, /^HTTP\/1\.1 \d{3} /, `${line}: no answer`)
  return {
    status: Number(head.slice(9, 12)),
    allow: /^allow: (.*)$/im.exec(head)?.[1] ?? null,
    body: (head.includes('problem+json') && rest !== ''
      ? JSON.parse(rest.split('HTTP/1.1')[0] as string)
      : {}) as Problem,
  }
}

/** Returns the headers of a signed request. */
async function signed(
  method: string,
  uri: string,
  apiKey = user.apiKey,
  body = '',
): Promise<Record<string, string>> {
  return requestHeaders(
    await signRequest({ apiKey, privateKey: PRIVATE_KEY, method, uri, body }),
    apiKey,
  )
}

test('an unsupported method gets 405 with the supported methods, whatever its body', async () => {
  const bodies: [Record<string, string>, string][] = [
    [{}, ''],
    [{ 'content-length': '2', 'content-type': 'text/plain' }, 'hi'],
    [{ 'content-length': '2', 'content-type': 'application/json' }, '{,'],
    [{ 'content-length': '2' }, '{}'],
    [{ 'content-length': '2', 'content-type': ';', 'content-encoding': 'br' }, '{}'],
  ]
  for (const method of [
    'QUERY',
    'PROPFIND',
    'TRACE',
    'OPTIONS',
    'M-SEARCH',
    'PUT',
    'SEARCH',
    'FOO',
    'BREW',
    'get',
  ]) {
    for (const [headers, body] of bodies) {
      for (const [path, allow] of [
        ['/assets', 'GET, HEAD'],
        ['/dac/v1/transaction', 'POST'],
        ['/dac/v1/transaction/x?a=1', 'GET, HEAD'],
        ['/dac/v1/webhooks/x', 'GET, HEAD, PATCH, DELETE'],
        ['/dac/v1/trans%61ction', 'POST'],
      ] as const) {
        const answer = await send(`${method} ${path}`, headers, body)
        assert.deepEqual(
          [answer.status, answer.body.code, answer.allow?.split(', ').sort()],
          [405, 'METHOD_NOT_ALLOWED', allow.split(', ').sort()],
          `${method} ${path} ${body}`,
        )
      }
      const unknown = await send(`${method} /dac/v1/nothing`, headers, body)
      assert.deepEqual(
        [unknown.status, unknown.body.code, unknown.allow],
        [404, 'NOT_FOUND', null],
        `${method} ${body}`,
      )
    }
  }
  assert.match((await send('get /assets')).body.message, /methods are case-sensitive/)
})

test('a method that only a parameterised path supports gets 405 at a fixed path', async () => {
  // GET /dac/v1/conversions/{id} exists, but "quote" is not a valid id.
  for (const method of ['GET', 'HEAD', 'DELETE']) {
    const answer = await send(`${method} /dac/v1/conversions/quote`)
    assert.deepEqual([answer.status, answer.allow], [405, 'POST'], method)
  }
  const missing = await send('DELETE /dac/v1/conversions/7c9e6679-7425-40de-944b-e07fc1f90ae7')
  assert.deepEqual([missing.status, missing.allow], [405, 'GET, HEAD'])
})

test('bytes that are not an HTTP request get 400, and no request causes a 500', async () => {
  for (const line of ['GET *', 'FOO', 'FOO\u0000 /', '(a) /assets', 'GET assets', 'PRI *']) {
    assert.equal((await send(line)).status, 400, line)
  }
  assert.equal((await send('OPTIONS *')).status, 404)
  for (const headers of [
    { 'content-length': 'x' },
    { 'transfer-encoding': 'gzip' },
    { 'content-type': '' },
    { 'content-type': '\u00ff' },
    { upgrade: 'websocket' },
    { expect: 'nothing' },
    { host: '' },
    { host: 'a b' },
    { 'content-encoding': 'x' },
    { 'last-event-id': '\u00ff' },
    { 'x-forwarded-for': 'nobody' },
    { 'content-length': '2', 'transfer-encoding': 'chunked' },
  ]) {
    for (const line of [
      'GET /assets',
      'POST /dac/v1/transaction',
      'QUERY /assets',
      'GET /livez',
      'HEAD /',
      'GET http://[::1/assets',
      'GET //',
    ]) {
      const { status } = await send(line, headers as unknown as Record<string, string>)
      assert.ok(status < 500, `${line} ${JSON.stringify(headers)}: ${status}`)
    }
  }
})

test('a query parameter that is not percent-encoded UTF-8 gets 400 with its name', async () => {
  for (const bad of ['%zz', '%', 'a%2', '%ff', '%c3', '%ED%A0%80', '%C0%80']) {
    for (const [path, field] of [
      ['/dac/v1/transactions?memo=', 'memo'],
      ['/dac/v1/wallets?asset=', 'asset'],
      ['/dac/v1/events?after=', 'after'],
      ['/dac/v1/invoices?order_id=', 'order_id'],
      ['/dav/v1/staking?address=', 'address'],
      ['/readyz?deep=', 'deep'],
    ] as const) {
      const target = `${path}${bad}`
      const answer = await send(
        `GET ${target}`,
        path.startsWith('/da') ? await signed('GET', target) : {},
      )
      assert.deepEqual(
        [answer.status, answer.body.code, answer.body.field],
        [400, 'INVALID_REQUEST', field],
        target,
      )
      assert.match(answer.body.message, /is not percent-encoded UTF-8/)
    }
    const name = `/dac/v1/transactions?${bad}=1`
    const named = await send(`GET ${name}`, await signed('GET', name))
    assert.deepEqual([named.status, named.body.field], [400, bad])
    const path = await send(
      `GET /dac/v1/transaction/${bad}`,
      await signed('GET', `/dac/v1/transaction/${bad}`),
    )
    assert.deepEqual([path.status, path.body.field], [400, 'path'], bad)
  }
  for (const [text, status] of [
    ['caf%C3%A9+%26%20x', 200],
    ['100%25', 200],
    ['a=b', 200],
  ] as const) {
    assert.equal(
      (
        await send(
          `GET /dac/v1/transactions?memo=${text}`,
          await signed('GET', `/dac/v1/transactions?memo=${text}`),
        )
      ).status,
      status,
      text,
    )
  }
})

test('an empty query parameter gets 400 with its name', async () => {
  for (const path of [
    '/dac/v1/transactions?memo=',
    '/dac/v1/transactions?memo',
    '/dac/v1/invoices?order_id=',
    '/dac/v1/wallets?asset=',
  ]) {
    const { status, body } = await call<Problem>(user, 'GET', path)
    assert.deepEqual([status, body.field], [400, /[?](\w+)/.exec(path)?.[1]], path)
    assert.match(body.message, /must not be empty/)
  }
  for (const path of ['/assets?', '/assets?&'])
    assert.equal((await send(`GET ${path}`)).status, 200, path)
  for (const path of ['/readyz?deep', '/readyz?deep='])
    assert.equal((await send(`GET ${path}`)).status, 503, 'no node can sign')
})

test('decodes + as a space, allows = in a value, and refuses repeated parameter names', async () => {
  const memo = 'a b+c&d=e é'
  await call(user, 'POST', '/dac/v1/create-wallet', { asset: 'ETH' })
  await api.fund(user, 'ETH', 10n ** 18n)
  const made = await call<{ id: string }>(user, 'POST', '/dac/v1/transaction', {
    asset: 'ETH',
    amount: 0.1,
    destination_address: '0x00000000000000000000000000000000000000AA',
    destination_type: 'EXTERNAL',
    source_type: 'INTERNAL',
    memo,
  })
  assert.equal(made.status, 200, made.text)
  for (const text of ['a+b%2Bc%26d%3De+%C3%A9', 'a%20b%2Bc%26d=e%20%c3%a9']) {
    const result = await call<{ data: { id: string }[] }>(
      user,
      'GET',
      `/dac/v1/transactions?memo=${text}`,
    )
    assert.deepEqual(
      result.body.data?.map(({ id }) => id),
      [made.body.id],
      result.text,
    )
  }
  const twice = await call<Problem>(user, 'GET', '/dac/v1/transactions?memo=a&memo=b')
  assert.deepEqual([twice.status, twice.body.message], [400, 'memo: appears twice; send it once'])
})

test('accepts the absolute form of a request target; the signature covers path and query only', async () => {
  const path = '/dac/v1/transactions?status=failed'
  for (const target of [
    `http://custody.example${path}`,
    `HTTPS://custody.example:8443${path}`,
    path,
  ]) {
    assert.equal((await send(`GET ${target}`, await signed('GET', path))).status, 200, target)
    const { status, body } = await send(
      `GET ${target}`,
      await signed('GET', '/dac/v1/transactions?status=pending'),
    )
    assert.deepEqual([status, body.field], [401, 'uri'], target)
  }
  const whole = `http://custody.example${path}`
  assert.equal(
    (await send(`GET ${whole}`, await signed('GET', whole))).status,
    401,
    'the claim uri is the path',
  )
  assert.equal(
    (await send(`GET http://a@custody.example${path}`, await signed('GET', path))).status >= 400,
    true,
  )
  assert.deepEqual(
    [
      (await send('GET http://custody.example')).status,
      (await send('GET http://custody.example?x=1')).status,
    ],
    [200, 400],
  )

  const body = '{"asset":"BTC"}'
  const headers = {
    ...(await signed('POST', '/dac/v1/create-wallet', user.apiKey, body)),
    'content-type': 'application/json',
  }
  const made = await send(
    'POST http://custody.example/dac/v1/create-wallet',
    { ...headers, 'content-length': String(body.length) },
    body,
  )
  assert.equal(made.status, 200, JSON.stringify(made.body))
  const queried = await signed('POST', '/dac/v1/create-wallet?x=1', user.apiKey, body)
  const refused = await send(
    'POST http://custody.example/dac/v1/create-wallet?x=1',
    { ...queried, 'content-type': 'application/json', 'content-length': String(body.length) },
    body,
  )
  assert.deepEqual([refused.status, refused.body.field], [400, 'path'])
})

test('an API key in upper case is refused with advice to use lower case', async () => {
  const upper = user.apiKey.toUpperCase()
  for (const [header, sub] of [
    [upper, upper],
    [upper, user.apiKey],
  ] as const) {
    const now = Math.floor(Date.now() / 1000)
    const claims = {
      uri: '/dac/v1/gas-tanks',
      nonce: randomUUID(),
      iat: now,
      exp: now + 20,
      sub,
      bodyHash: createHash('sha256').digest('hex'),
    }
    const text = [{ alg: 'RS256' }, claims]
      .map((part) => Buffer.from(JSON.stringify(part)).toString('base64url'))
      .join('.')
    const token = `${text}.${sign('RSA-SHA256', Buffer.from(text), PRIVATE_KEY).toString('base64url')}`
    const { status, body } = await send('GET /dac/v1/gas-tanks', {
      authorization: `Bearer ${token}`,
      'x-api-key': header,
    })
    assert.deepEqual([status, body.field], [401, 'x-api-key'])
    assert.match(body.message, /a UUID in lower case, the same as the claim sub/)
  }
})

test('a request with slow headers or a slow body gets 408 within a second of its deadline', async () => {
  const server = api.server.server as typeof api.server.server & {
    connectionsCheckingInterval: number
  }
  const { requestTimeout, headersTimeout, connectionsCheckingInterval } = server
  assert.deepEqual(
    [requestTimeout, headersTimeout, connectionsCheckingInterval],
    [30_000, 30_000, 1000],
    'the message and docs/errors.md say 30 seconds',
  )
  Object.assign(server, { requestTimeout: 200, headersTimeout: 200 })
  try {
    const post = 'POST /checkout/x/asset HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n'
    for (const part of [
      'GET /assets HTTP/1.1\r\nhost: x\r\n',
      post,
      `${post}content-length: 9\r\n\r\n{`,
      `${post}transfer-encoding: chunked\r\n\r\n1\r\n`,
    ]) {
      const text = await exchange(part)
      assert.match(text, /^HTTP\/1\.1 408 /, part)
      assert.match(text, /"message":"the request did not arrive within 30 seconds"/)
    }
    // A body that is refused before it is complete is not awaited, and gets one response.
    const refused = await exchange(
      'POST /dac/v1/transaction HTTP/1.1\r\nhost: x\r\ncontent-length: 9\r\n\r\n{',
    )
    assert.deepEqual(refused.match(/HTTP\/1\.1 \d+/g), ['HTTP/1.1 401'])
    assert.match(refused, /connection: close/i)
  } finally {
    Object.assign(server, { requestTimeout, headersTimeout })
  }
})
