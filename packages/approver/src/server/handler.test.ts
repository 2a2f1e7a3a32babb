// What the local server accepts of browsers and of other programs.
import assert from 'node:assert/strict'
import { request } from 'node:http'
import { after, before, test } from 'node:test'
import {
  approvalOf,
  documentOf,
  startPage,
  TestPlatform,
  type TestPage,
} from '../../testing/fixture.ts'

let page: TestPage
let token = ''
/** Loads of the page by browser windows. */
let loads = 0

interface Response {
  status: number
  headers: Record<string, string | string[] | undefined>
  body: string
}

function send(
  method: string,
  path: string,
  headers: Record<string, string> = {},
  body?: string | Buffer,
): Promise<Response> {
  const { port } = page.config
  return new Promise((done, fail) => {
    const sent = request(
      {
        host: '127.0.0.1',
        port,
        method,
        path,
        headers: { host: `localhost:${port}`, ...headers },
      },
      (response) => {
        let text = ''
        response.setEncoding('utf8')
        response.on('data', (part: string) => (text += part))
        response.on('end', () =>
          done({ status: response.statusCode ?? 0, headers: response.headers, body: text }),
        )
      },
    )
    sent.on('error', fail)
    sent.end(body)
  })
}

const own = (): Record<string, string> => ({
  origin: page.origin,
  'content-type': 'application/json',
  'x-approver-token': token,
})
const call = (headers: Record<string, string> = {}, name = 'state', body: string | Buffer = '{}') =>
  send('POST', `/api/${name}`, { ...own(), ...headers }, body)

before(async () => {
  page = await startPage(new TestPlatform(await approvalOf(documentOf())), {
    onNavigation: () => (loads += 1),
  })
})
after(() => page.close())

/** Headers that a browser adds to the request for a window. */
const WINDOW = { 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'document' }

test('the first window of a start clears what other programs stored under the origin', async () => {
  const clears = async (headers: Record<string, string>) =>
    (await send('GET', '/', headers)).headers['clear-site-data'] === '"cache", "storage"'
  // None of these comes from a window without a worker, so they do not use the header up.
  const others: Record<string, string>[] = [
    {},
    { 'sec-fetch-mode': 'same-origin', 'sec-fetch-dest': 'empty' },
    { ...WINDOW, 'sec-fetch-dest': 'iframe' },
    { ...WINDOW, 'service-worker-navigation-preload': 'true' },
  ]
  for (const headers of others) {
    assert.equal(await clears(headers), true)
    assert.equal(loads, 0)
  }
  assert.equal(await clears(WINDOW), true)
  assert.equal(await clears(WINDOW), false)
  assert.equal(loads, 2)
  const { status, body } = await send('GET', '/')
  assert.equal(status, 200)
  token = /name="approver-token" content="([\w-]{43})"/.exec(body)?.[1] ?? assert.fail()
})

test('every response has the strict headers, and the page has no inline code', async () => {
  for (const [method, path] of [
    ['GET', '/'],
    ['GET', '/missing'],
    ['POST', '/api/state'],
    ['DELETE', '/'],
  ] as const) {
    const { headers } = await send(method, path)
    const policy = String(headers['content-security-policy'])
    for (const rule of [
      "default-src 'none'",
      "script-src 'self'",
      "frame-ancestors 'none'",
      "require-trusted-types-for 'script'",
    ])
      assert.ok(policy.includes(rule), `${path}: ${rule}`)
    assert.doesNotMatch(policy, /unsafe|data:|\*/)
    assert.deepEqual(
      [
        headers['x-content-type-options'],
        headers['referrer-policy'],
        headers['cross-origin-opener-policy'],
        headers['cache-control'],
        headers['access-control-allow-origin'],
      ],
      ['nosniff', 'no-referrer', 'same-origin', 'no-store', undefined],
    )
  }
  const { body } = await send('GET', '/')
  assert.doesNotMatch(body, /<script(?![^>]* src=)|<style|\sstyle=|\son\w+=|https?:\/\//)
  for (const [, path] of body.matchAll(/(?:src|href)="([^"]+)"/g)) {
    const { status, headers } = await send('GET', path as string)
    assert.deepEqual([status, headers['cache-control']], [200, 'no-store'], path)
  }
})

test('requests for another host are refused, whatever they request', async () => {
  const { port } = page.config
  for (const host of [
    `127.0.0.1:${port}`,
    'localhost',
    `attacker.example:${port}`,
    `localhost:${port}.`,
  ])
    for (const [method, path] of [
      ['GET', '/'],
      ['POST', '/api/state'],
    ] as const)
      assert.equal((await send(method, path, { ...own(), host })).status, 421, host)
})

test('a service worker is never served', async () => {
  const asset = /src="([^"]+)"/.exec((await send('GET', '/')).body)?.[1] ?? assert.fail()
  for (const path of [asset, '/', '/service-worker.js'])
    assert.equal((await send('GET', path, { 'service-worker': 'script' })).status, 404, path)
})

test('calls require the origin, the content type and the token of this start', async () => {
  assert.equal((await call()).status, 200)
  for (const [headers, status] of [
    [{ origin: 'http://localhost:3000' }, 403],
    [{ origin: 'null' }, 403],
    [{ 'sec-fetch-site': 'same-site' }, 403],
    [{ 'sec-fetch-site': 'cross-site' }, 403],
    [{ 'content-type': 'text/plain' }, 415],
    [{ 'x-approver-token': '' }, 403],
    [{ 'x-approver-token': 'A'.repeat(43) }, 403],
    [{ 'x-approver-token': `${token}A` }, 403],
    [{ 'x-approver-token': 'é'.repeat(43) }, 403],
  ] as const)
    assert.equal((await call(headers as never)).status, status, JSON.stringify(headers))
  const { origin: _, ...none } = own()
  assert.equal((await send('POST', '/api/state', none, '{}')).status, 403)
  assert.equal((await send('GET', '/api/state', own())).status, 405)
})

test('bodies are bounded, and must be JSON objects', async () => {
  for (const body of ['', '[]', 'null', '{', '1'])
    assert.match((await call({}, 'state', body)).body, /"code":"INPUT"/, body)
  const large = Buffer.alloc(2_000_001, 0x20)
  const refused = await call({}, 'document', large).catch(() => null)
  // The connection may close before the response arrives.
  assert.ok(refused === null || refused.status === 413)
  assert.equal((await call({}, 'unknown')).status, 404)
  assert.equal((await call({}, '__proto__')).status, 404)
  assert.equal((await call({}, 'constructor')).status, 404)
})

test('unknown paths and methods are refused', async () => {
  for (const path of [
    '/index.html',
    '/assets/',
    '/assets/../index.html',
    '/assets/constructor',
    '/..',
  ])
    assert.equal((await send('GET', path)).status, 404, path)
  for (const method of ['POST', 'PUT', 'DELETE', 'OPTIONS'])
    assert.equal((await send(method, '/')).status, 405, method)
})

test('a page of an https origin answers only for its host', async () => {
  const remote = await startPage(new TestPlatform(await approvalOf(documentOf())), {
    origin: 'https://approve.acme.example',
  })
  const before = page
  page = remote
  try {
    assert.equal((await send('GET', '/', { host: 'approve.acme.example' })).status, 200)
    assert.equal((await send('GET', '/')).status, 421)
  } finally {
    page = before
    remote.close()
  }
})
