import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { request } from 'node:http'
import { before, test } from 'node:test'
import type { Socket } from 'node:net'
import type { Logger } from 'pino'
import { requestHeaders, signRequest } from '@custody/request-auth'
import { endpoints } from './endpoints.ts'
import { answerMalformed } from '../../core/http/malformed.ts'
import { AddressLimits } from '../../core/http/rate-limit.ts'
import { RefusalLog } from '../../core/http/refusal-log.ts'
import { referencePages } from '../reference/pages.ts'
import { useApi } from '../../../testing/api-support.ts'
import { call, PRIVATE_KEY, type User } from '../../../testing/harness.ts'

const RATE_LIMIT = 500
const api = useApi(
  { rateLimit: RATE_LIMIT },
  referencePages({ warn: () => undefined } as unknown as Logger),
)
let user: User
before(async () => {
  await api.started
  user = await api.user('headers', { rateLimit: 100_000 })
})

const HEADERS = {
  'x-rate-limit-remaining': /^\d+$/,
  'x-rate-limit-limit': /^1m$/,
  'x-ratelimit-limit': /^1m$/,
  'x-rate-limit-reset': /^\d{4}-\d\d-\d\dT\d\d:\d\d:00\.000Z$/,
  'x-request-id': /^[0-9a-f-]{36}$/,
  'cache-control': /^no-store$/,
}

/** Parses the bytes of one HTTP response. */
function read(text: string): { status: number; headers: Map<string, string>; body: string } {
  const [head = '', body = ''] = text.split('\r\n\r\n', 2)
  const [first = '', ...lines] = head.split('\r\n')
  return {
    status: Number(first.split(' ')[1]),
    headers: new Map(
      lines.map((line) => [
        line.slice(0, line.indexOf(':')).toLowerCase(),
        line.slice(line.indexOf(':') + 1).trim(),
      ]),
    ),
    body,
  }
}

test('every response has the rate-limit headers, whichever component sends it', async () => {
  const host = 'host: x\r\nconnection: close\r\n'
  const cases: [status: number, bytes: string][] = [
    [200, `GET /livez HTTP/1.1\r\n${host}\r\n`],
    [200, `HEAD /livez HTTP/1.1\r\n${host}\r\n`],
    [200, `GET /assets HTTP/1.1\r\n${host}\r\n`],
    [200, `GET /readyz HTTP/1.1\r\n${host}\r\n`],
    [200, 'GET /metrics HTTP/1.1\r\nhost: localhost:9\r\nconnection: close\r\n\r\n'],
    [404, `GET /metrics HTTP/1.1\r\n${host}\r\n`],
    [404, 'GET /metrics HTTP/1.1\r\nhost: localhost.evil.test\r\nconnection: close\r\n\r\n'],
    [400, 'X\r\n\r\n'],
    [400, 'GET / HTTP/1.1\r\nconnection: close\r\n\r\n'],
    [400, `GET /%ff%00 HTTP/1.1\r\n${host}\r\n`],
    [400, `GET /%zz HTTP/1.1\r\n${host}\r\n`],
    [400, `POST /dac/v1/transaction HTTP/1.1\r\n${host}content-length: -1\r\n\r\n`],
    [400, `GET /livez HTTP/1.1\r\n${host}content-length: 1\r\n\r\n1`],
    [400, `GET /livez?x=1 HTTP/1.1\r\n${host}\r\n`],
    [
      400,
      `POST /dac/v1/address HTTP/1.1\r\n${host}content-length: 2\r\ntransfer-encoding: chunked\r\n\r\n{}`,
    ],
    [401, `GET /dac/v1/transactions HTTP/1.1\r\n${host}\r\n`],
    [401, `HEAD /dac/v1/transactions HTTP/1.1\r\n${host}\r\n`],
    [404, `GET /nowhere HTTP/1.1\r\n${host}\r\n`],
    [404, `PROPFIND /nowhere HTTP/1.1\r\n${host}\r\n`],
    [404, `GET //evil HTTP/1.1\r\n${host}\r\n`],
    [405, `DELETE /assets HTTP/1.1\r\n${host}\r\n`],
    [405, `OPTIONS /dac/v1/transaction HTTP/1.1\r\n${host}\r\n`],
    [405, `HEAD /dac/v1/create-wallet HTTP/1.1\r\n${host}\r\n`],
    [405, 'CONNECT a:1 HTTP/1.1\r\nhost: a:1\r\n\r\n'],
    [405, `TRACE /assets HTTP/1.1\r\n${host}\r\n`],
    [
      413,
      `POST /dac/v1/transaction HTTP/1.1\r\n${host}content-type: application/json\r\ncontent-length: 2000000\r\n\r\n`,
    ],
    [414, `GET /dac/v1/transaction/${'a'.repeat(300)} HTTP/1.1\r\n${host}\r\n`],
    [
      415,
      `POST /checkout/x/asset HTTP/1.1\r\n${host}content-type: text/plain\r\ncontent-length: 2\r\n\r\n{}`,
    ],
    [431, `GET / HTTP/1.1\r\n${host}x: ${'y'.repeat(20_000)}\r\n\r\n`],
    [200, `GET /livez HTTP/1.1\r\n${host}expect: the-unexpected\r\n\r\n`],
    [200, `GET /livez HTTP/1.1\r\n${host}upgrade: websocket\r\n\r\n`],
    [200, 'GET /livez HTTP/1.0\r\n\r\n'],
  ]
  for (const [status, bytes] of cases) {
    const answer = read(await api.raw(bytes))
    const shown = bytes.slice(0, 80)
    assert.equal(answer.status, status, `${shown}: ${answer.body}`)
    for (const [name, form] of Object.entries(HEADERS))
      assert.match(answer.headers.get(name) ?? '', form, `${shown}: ${name}`)
    if (status < 400 || bytes.startsWith('HEAD')) continue
    const problem = JSON.parse(answer.body.replace(/^[0-9a-f]+\r\n/, '')) as Record<string, unknown>
    for (const member of [
      'type',
      'title',
      'status',
      'detail',
      'error',
      'message',
      'code',
      'request_id',
    ])
      assert.ok(problem[member], `${shown}: ${member}`)
    assert.deepEqual(
      [problem['status'], problem['request_id']],
      [status, answer.headers.get('x-request-id')],
    )
  }
  const remaining = async () =>
    Number(read(await api.raw('X\r\n\r\n')).headers.get('x-rate-limit-remaining'))
  const [first, second] = [await remaining(), await remaining()]
  // The minute may change between the two requests, so the second one may have the full limit
  // again.
  assert.ok(second === first - 1 || second === RATE_LIMIT - 1, `${first}, then ${second}`)
})

test('a request that arrives too slowly gets an error in the standard format', () => {
  let said = ''
  const socket = {
    writable: true,
    remoteAddress: '10.0.0.1',
    end: (text: string) => {
      said = text
    },
  } as unknown as Socket
  const { services } = api
  answerMalformed(
    { services, limits: new AddressLimits(10), refusals: new RefusalLog(services) },
    { code: 'ERR_HTTP_REQUEST_TIMEOUT' },
    socket,
  )
  const { status, headers, body } = read(said)
  assert.deepEqual(
    [status, headers.get('x-rate-limit-remaining'), (JSON.parse(body) as { code: string }).code],
    [408, '9', 'REQUEST_TIMEOUT'],
  )
  for (const [name, form] of Object.entries(HEADERS))
    assert.match(headers.get(name) ?? '', form, name)
})

test('a request that is too large gets an error that names the limit', async () => {
  const message = async (bytes: string) =>
    (JSON.parse(read(await api.raw(bytes)).body) as { message: string }).message
  const host = 'host: x\r\nconnection: close\r\n'
  const post = (path: string) =>
    `POST ${path} HTTP/1.1\r\n${host}content-type: application/json\r\ncontent-length: 2000000\r\n\r\n`
  assert.equal(await message(post('/dac/v1/transaction')), 'body: must have at most 65536 bytes')
  assert.equal(await message(post('/dac/v1/estimate-fee')), 'body: must have at most 65536 bytes')
  assert.equal(await message(post('/checkout/x/asset')), 'body: must have at most 4096 bytes')
  assert.equal(
    await message(post('/dac/v1/policy/simulate')),
    'body: must have at most 1048576 bytes',
  )
  assert.equal(
    await message(`GET /dac/v1/transaction/${'a'.repeat(201)} HTTP/1.1\r\n${host}\r\n`),
    'path: one part has more than 200 characters',
  )
  assert.equal(
    await message(`GET / HTTP/1.1\r\n${host}x: ${'y'.repeat(20_000)}\r\n\r\n`),
    'the path and headers together exceed 16 KiB',
  )
})

test('an unsupported method of any known path gets 405 with the supported methods in Allow', async () => {
  for (const [method, path, allow] of [
    ['DELETE', '/assets', 'GET, HEAD'],
    ['GET', '/dac/v1/create-wallet', 'POST'],
    ['POST', '/dac/v1/transaction/00000000-0000-4000-8000-000000000000', 'GET, HEAD'],
    ['PUT', '/dac/v1/auto-forwarding/x', 'GET, HEAD, DELETE'],
    ['POST', '/', 'GET, HEAD'],
    ['OPTIONS', '/dac/v1/gas-tanks/ETH/entries', 'GET, HEAD'],
  ] as const) {
    const answer = await fetch(`${api.base}${path}`, { method })
    assert.deepEqual(
      [answer.status, answer.headers.get('allow')?.split(', ').sort().join(', ')],
      [405, allow.split(', ').sort().join(', ')],
      `${method} ${path}`,
    )
  }
})

test('HEAD returns the headers of GET without the body', async () => {
  const ask = async (method: 'GET' | 'HEAD', path: string, as: User | null) => {
    const headers = as
      ? requestHeaders(
          await signRequest({ apiKey: as.apiKey, privateKey: PRIVATE_KEY, method, uri: path }),
          as.apiKey,
        )
      : {}
    return new Promise<{ status: number; headers: Record<string, unknown>; text: string }>(
      (resolve, reject) => {
        request(`${api.base}${path}`, { method, headers }, (answer) => {
          let text = ''
          answer.on('data', (chunk: Buffer) => (text += chunk.toString()))
          answer.on('end', () =>
            resolve({ status: answer.statusCode ?? 0, headers: answer.headers, text }),
          )
        })
          .on('error', reject)
          .end()
      },
    )
  }
  await call(user, 'POST', '/dac/v1/create-wallet', { asset: 'BTC' })
  const signed = endpoints
    // A streaming endpoint never ends its response; event-stream.test.ts checks its headers.
    .filter(({ method, access, streams }) => method === 'GET' && access !== 'public' && !streams)
    .map(({ path }) =>
      path
        .replace('{id}', '00000000-0000-4000-8000-000000000000')
        .replace('{asset}', 'BTC')
        .replace('{network}', 'ETH'),
    )
  const paths: [string, User | null][] = [
    ...[
      '/',
      '/assets',
      '/openapi.json',
      '/livez',
      '/readyz',
      '/nowhere',
      '/dac/v1/transactions',
      '/assets?x=1',
    ].map((path): [string, null] => [path, null]),
    ...signed.map((path): [string, User] => [path, user]),
    ['/dac/v1/wallets?asset=BTC', user],
    ['/dac/v1/transactions?status=none', user],
  ]
  const own = new Set([
    'x-request-id',
    'x-rate-limit-remaining',
    'x-rate-limit-reset',
    'date',
    'connection',
    'keep-alive',
    'content-length',
    'transfer-encoding',
    'retry-after',
  ])
  for (const [path, as] of paths) {
    const [get, head] = [await ask('GET', path, as), await ask('HEAD', path, as)]
    assert.equal(head.status, get.status, path)
    assert.equal(head.text, '', path)
    const shown = (headers: Record<string, unknown>) =>
      Object.fromEntries(Object.entries(headers).filter(([name]) => !own.has(name)))
    assert.deepEqual(shown(head.headers), shown(get.headers), path)
    // Error responses are excluded: their ids and the word HEAD change the length.
    if (get.status === 200)
      assert.equal(head.headers['content-length'], get.headers['content-length'], path)
    for (const [name, form] of Object.entries(HEADERS))
      assert.match(String(head.headers[name]), form, `${path}: ${name}`)
  }
})

test('public endpoints have their own rate limit, and health probes do not use it up', async () => {
  // Uses a minute of its own, in which no other request of this address is counted.
  const minute = Date.now() + 3_600_000
  const now = Math.floor(minute / 60_000) * 60_000
  api.now = () => now
  try {
    const get = async (path: string) => fetch(`${api.base}${path}`)
    const left = async (path: string) =>
      Number((await get(path)).headers.get('x-rate-limit-remaining'))
    for (let count = 0; count < 20; count++) assert.equal(await left('/livez'), RATE_LIMIT)
    assert.equal(await left('/readyz'), RATE_LIMIT)
    assert.equal(await left('/assets'), RATE_LIMIT - 1)
    assert.equal(await left('/'), RATE_LIMIT - 2)
    assert.equal(await left('/openapi.json'), RATE_LIMIT - 3)
    assert.equal(
      await left('/dac/v1/transactions'),
      RATE_LIMIT - 1,
      'a failed authentication counts apart',
    )
    assert.equal(await left('/nowhere'), RATE_LIMIT - 2)
    for (let count = 3; count < RATE_LIMIT; count++) await get('/assets')
    const refused = await get('/assets')
    assert.deepEqual(
      [
        refused.status,
        refused.headers.get('x-rate-limit-remaining'),
        refused.headers.get('retry-after'),
      ],
      [429, '0', '60'],
    )
    assert.equal((await get('/livez')).status, 200, 'a probe is never refused')
    assert.equal(await left('/dac/v1/transactions'), RATE_LIMIT - 3)
    assert.equal((await get('/dac/v1/transactions')).status, 401)
    const signed = await call(user, 'GET', '/dac/v1/supported-assets', undefined, {
      sign: { now: now / 1000 },
    })
    assert.deepEqual([signed.status, signed.headers.get('x-rate-limit-remaining')], [200, '99999'])
    for (let count = 4; count < RATE_LIMIT; count++) await get('/nowhere')
    assert.equal((await get('/dac/v1/transactions')).status, 429)
    assert.equal(
      (
        await call(user, 'GET', '/dac/v1/supported-assets', undefined, {
          sign: { now: now / 1000 },
        })
      ).status,
      200,
      'a valid key goes on',
    )
  } finally {
    api.now = Date.now
  }
})

test('the OpenAPI document omits HEAD, because it equals GET', async () => {
  const { body } = await call<{ paths: Record<string, Record<string, unknown>> }>(
    null,
    'GET',
    '/openapi.json',
    undefined,
    {
      base: api.base,
    },
  )
  assert.ok(Object.keys(body.paths).length > 30)
  for (const [path, methods] of Object.entries(body.paths)) assert.ok(!('head' in methods), path)
})

test('GET / returns working links to existing documents, and no version numbers', async () => {
  const { status, body } = await call<{
    name: string
    links: Record<string, string>
    documentation: string[]
  }>(null, 'GET', '/', undefined, { base: api.base })
  assert.equal(status, 200)
  for (const path of Object.values(body.links))
    assert.equal((await fetch(`${api.base}${path}`)).status, 200, path)
  for (const name of body.documentation)
    assert.ok(existsSync(new URL(`../../../../../${name}`, import.meta.url)), name)
  assert.doesNotMatch(JSON.stringify(body), /\d+\.\d+\.\d+/)
})
