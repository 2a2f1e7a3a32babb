// What clients without a key can make the API do: memory, queries and log lines.
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { connect, type Socket } from 'node:net'
import { before, test } from 'node:test'
import { signRequest } from '@custody/request-auth'
import { waitFor } from '../../../../../testing/wait-for.ts'
import { concrete, useApi } from '../../../testing/api-support.ts'
import { call, PRIVATE_KEY } from '../../../testing/harness.ts'
import { endpoints } from '../../server/app/endpoints.ts'
import { panelEndpoints } from '../../server/app/panel.ts'
import { createMetrics } from '../metrics.ts'
import { BODY_BYTES_HELD_MAX, BodyBudget, PUBLIC_BODY_BYTES_MAX } from './bodies.ts'
import { RecentCallers } from './recent-callers.ts'
import { REFUSAL_LINES_MAX, RefusalLog } from './refusal-log.ts'

const RATE_LIMIT = 1000
const api = useApi({ rateLimit: RATE_LIMIT })
let user: Awaited<ReturnType<typeof api.user>>

before(async () => {
  await api.started
  user = await api.user(randomUUID())
})

/** Sends a part of a request, and keeps the connection open. */
class HalfSent {
  text = ''
  isClosed = false
  readonly #socket: Socket

  constructor(bytes: string) {
    this.#socket = connect(Number(new URL(api.base).port), '127.0.0.1', () =>
      this.#socket.write(bytes),
    )
    this.#socket.on('data', (chunk: Buffer) => (this.text += chunk.toString()))
    this.#socket.on('error', () => undefined)
    this.#socket.on('close', () => (this.isClosed = true))
  }

  /** Returns the status of the response. */
  async status(): Promise<number> {
    const [, status] = await waitFor('a response', async () => /^HTTP\/1\.1 (\d+)/.exec(this.text))
    return Number(status)
  }

  end(): void {
    this.#socket.destroy()
  }
}

const SENT = 3000
/** Returns the head of a request, and a part of its body. */
const half = (method: string, path: string, headers: Record<string, string>, length: number) =>
  [
    `${method} ${path} HTTP/1.1`,
    'host: x',
    'content-type: application/json',
    `content-length: ${length}`,
    ...Object.entries(headers).map(([name, value]) => `${name}: ${value}`),
    '',
    'x'.repeat(SENT),
  ].join('\r\n')

test('no route reads the body of a caller who is not authenticated', async () => {
  const routes = [
    ...endpoints.filter(({ access, method }) => access !== 'public' && method !== 'GET'),
    ...panelEndpoints.filter(({ needs, method }) => needs !== 'nobody' && method !== 'GET'),
  ]
  assert.ok(routes.length > 70, String(routes.length))
  const other = await signRequest({
    apiKey: user.apiKey,
    privateKey: PRIVATE_KEY,
    method: 'POST',
    uri: '/elsewhere',
  })
  const callers: Record<string, string>[] = [
    {},
    { authorization: `Bearer ${other.token}`, 'x-api-key': randomUUID() },
    { authorization: `Bearer ${other.token.slice(0, -4)}AAAA`, 'x-api-key': user.apiKey },
    { authorization: `Bearer ${other.token}`, 'x-api-key': user.apiKey },
  ]
  const peak = api.server.bodies.peak
  for (const { method, path } of routes) {
    const uri = concrete(path).replaceAll(/\{\w+\}/g, 'x')
    const sent = callers.map((headers) => new HalfSent(half(method, uri, headers, 60_000)))
    for (const each of sent) {
      const status = await each.status()
      assert.ok(status === 401 || status === 403, `${method} ${path}: ${each.text}`)
      each.end()
    }
  }
  assert.equal(api.server.bodies.peak, peak)
  assert.equal(api.server.bodies.bytes, 0)
})

test('every route with a body has a limit for its size, and public ones a small one', async () => {
  const sizes = [
    ...endpoints
      .filter(({ method }) => method !== 'GET')
      .map(({ method, path, access, hasDocument }) => ({
        method,
        path,
        most: access === 'public' ? 4096 : hasDocument ? 1_048_576 : 65_536,
      })),
    ...panelEndpoints
      .filter(({ method }) => method !== 'GET')
      .map(({ method, path, needs }) => ({
        method,
        path,
        most: needs === 'nobody' ? 4096 : 65_536,
      })),
  ]
  for (const { method, path, most } of sizes) {
    const uri = concrete(path).replaceAll(/\{\w+\}/g, 'x')
    const sent = new HalfSent(half(method, uri, {}, most + 1))
    assert.equal(await sent.status(), 413, `${method} ${path}`)
    assert.match(sent.text, new RegExp(`at most ${most} bytes`))
    sent.end()
  }
  assert.deepEqual(
    endpoints.filter(({ hasDocument }) => hasDocument).map(({ id }) => id),
    ['simulatePolicy'],
  )
})

test('half-sent bodies of one address are held up to a limit, and get 503 above it', async () => {
  const count = Math.ceil(BODY_BYTES_HELD_MAX.network / SENT) + 20
  const request = half('POST', '/checkout/x/asset', {}, PUBLIC_BODY_BYTES_MAX)
  const sent = Array.from({ length: count }, () => new HalfSent(request))
  const { bodies } = api.server
  const refused = await waitFor('a refusal', async () => {
    const answered = sent.filter(({ text }) => text !== '')
    return answered.length >= 20 ? answered : null
  })
  for (const each of refused) {
    assert.equal(await each.status(), 503, each.text)
    assert.match(each.text, /retry-after: 1\r\n/i)
  }
  assert.ok(bodies.bytes > BODY_BYTES_HELD_MAX.network - SENT, String(bodies.bytes))
  assert.ok(bodies.peak <= BODY_BYTES_HELD_MAX.network, String(bodies.peak))
  assert.match(
    await api.services.metrics.text(),
    new RegExp(`^custody_http_body_bytes ${bodies.bytes}$`, 'm'),
  )
  // Callers with a key have room of their own.
  const answer = await call(user, 'POST', '/dac/v1/estimate-fee', { asset: 'none', fee_rate: 1 })
  assert.equal(answer.status, 400, answer.text)
  for (const each of sent) each.end()
  await waitFor('the release of all bodies', async () => (bodies.bytes === 0 ? true : null))
})

test('a caller with a key can have a share of the memory for bodies only', () => {
  const budget = new BodyBudget(createMetrics(), {
    keyed: 100,
    holder: 40,
    open: 30,
    network: 20,
  })
  const one = budget.hold({ share: 'workspace 1' })
  const again = budget.hold({ share: 'workspace 1' })
  const two = budget.hold({ share: 'workspace 2' })
  assert.equal(one.add(30), true)
  assert.equal(again.add(11), false)
  assert.equal(again.add(10), true)
  assert.equal(two.add(40), true)
  assert.equal(budget.hold({ share: 'workspace 3' }).add(21), false)
  const address = budget.hold({ ip: '10.0.0.1' })
  assert.equal(address.add(20), true)
  assert.equal(budget.hold({ ip: '::ffff:10.0.0.1' }).add(1), false)
  assert.equal(budget.hold({ ip: '10.0.0.2' }).add(11), false)
  assert.deepEqual([budget.bytes, budget.peak], [100, 100])
  for (const held of [one, again, two, address, address]) held.release()
  assert.deepEqual([budget.bytes, budget.peak], [0, 100])
  assert.equal(one.add(1), false, 'a released body holds nothing')
})

test('an address above its limit of failures is refused without a query, unless its key was used before', async () => {
  const busy = await api.user(randomUUID(), { rateLimit: 1000 })
  assert.equal((await call(busy, 'GET', '/dac/v1/transactions')).status, 200)
  const { callers } = api.services
  const find = callers.find.bind(callers)
  const asked: string[] = []
  callers.find = async (key) => {
    asked.push(key)
    return find(key)
  }
  const minute = Math.floor(Date.now() / 60_000) * 60_000
  const { now } = api
  // The clock stands still, so that the minute does not change.
  api.now = () => minute + 90_000
  try {
    const unknown = () =>
      fetch(`${api.base}/dac/v1/transactions`, {
        headers: { authorization: 'Bearer a.b.c', 'x-api-key': randomUUID() },
      })
    let status = 0
    for (let count = 0; count < RATE_LIMIT + 10 && status !== 429; count++)
      ({ status } = await unknown())
    assert.equal(status, 429)
    const before = asked.length
    assert.ok(before <= RATE_LIMIT, String(before))
    for (let count = 0; count < 10; count++) assert.equal((await unknown()).status, 429)
    assert.equal(asked.length, before, 'no key was looked up')
    const sign = { now: Math.floor(api.now() / 1000) }
    const known = await call(busy, 'GET', '/dac/v1/transactions', undefined, { sign })
    assert.equal(known.status, 200, known.text)
    const stranger = await api.user(randomUUID())
    const first = await call(stranger, 'GET', '/dac/v1/transactions', undefined, { sign })
    assert.deepEqual([first.status, first.body['code']], [429, 'RATE_LIMITED'])
    assert.match(first.headers.get('retry-after') ?? '', /^\d+$/)
    // In the next minute, every key is served again.
    api.now = () => minute + 150_000
    const later = { now: Math.floor(api.now() / 1000) }
    const served = await call(stranger, 'GET', '/dac/v1/transactions', undefined, { sign: later })
    assert.equal(served.status, 200, served.text)
  } finally {
    api.now = now
    callers.find = find
  }
})

test('the callers that are remembered are bounded, and counted by network', () => {
  const recent = new RecentCallers()
  recent.note('2001:db8::1', 'first')
  assert.equal(recent.has('2001:db8::2', 'first'), true)
  assert.equal(recent.has('2001:db8:1::1', 'first'), false)
  for (let at = 0; at < 9999; at++) recent.note('10.0.0.1', String(at))
  recent.note('2001:db8::1', 'first')
  recent.note('10.0.0.1', 'another')
  assert.equal(recent.has('2001:db8::1', 'first'), true)
  assert.equal(recent.has('10.0.0.1', '0'), false)
})

test('refusals of strangers have a limited number of log lines, and the others are summed up', async () => {
  let now = Date.UTC(2026, 0, 1)
  const metrics = createMetrics()
  const lines: unknown[] = []
  const refusals = new RefusalLog({
    environment: { now: () => now },
    log: { warn: (...line: unknown[]) => void lines.push(line) },
    metrics,
  })
  const from = (ip: string, count: number) =>
    Array.from({ length: count }, () => refusals.admits(ip)).filter(Boolean).length
  assert.equal(from('10.0.0.1', 100), REFUSAL_LINES_MAX.network)
  assert.equal(from('2001:db8::1', 40) + from('2001:db8::2', 40), REFUSAL_LINES_MAX.network)
  let written = 2 * REFUSAL_LINES_MAX.network
  for (let at = 2; at < 30; at++) written += from(`10.0.0.${at}`, 40)
  assert.equal(written, REFUSAL_LINES_MAX.all)
  assert.deepEqual(lines, [])
  now += 60_000
  refusals.turn()
  const unlogged = 100 + 80 + 28 * 40 - REFUSAL_LINES_MAX.all
  assert.deepEqual(lines, [
    [
      { requests: unlogged, minute: '2026-01-01T00:00:00.000Z' },
      'refused requests were not logged individually',
    ],
  ])
  assert.match(
    await metrics.text(),
    new RegExp(`^custody_http_refusals_unlogged_total ${unlogged}$`, 'm'),
  )
  assert.equal(refusals.admits('10.0.0.1'), true)
  refusals.report()
  assert.equal(lines.length, 1, 'nothing was left out')
})

test('refusals of an authenticated caller are logged, whatever strangers send', async () => {
  const { log } = api.services
  const info = log.info.bind(log)
  const codes: string[] = []
  log.info = ((line: { code?: string }) => void codes.push(line.code ?? '')) as typeof log.info
  try {
    for (let count = 0; count < REFUSAL_LINES_MAX.network + 5; count++)
      await fetch(`${api.base}/nowhere`)
    assert.ok(codes.filter((code) => code === 'NOT_FOUND').length <= REFUSAL_LINES_MAX.network)
    const answer = await call(user, 'POST', '/dac/v1/validate-address', { asset: 'BTC' })
    assert.equal(answer.status, 400)
    assert.ok(codes.includes('INVALID_REQUEST'), codes.join())
  } finally {
    log.info = info
  }
})

test('the number of connections is limited, and refused ones are counted', async () => {
  const { server } = api.server
  const { maxConnections } = server
  assert.equal(maxConnections, 4096)
  const first = new HalfSent('GET /livez HTTP/1.1\r\nhost: x\r\n\r\n')
  assert.equal(await first.status(), 200)
  server.maxConnections = await new Promise<number>((resolve, reject) => {
    server.getConnections((error, count) => (error ? reject(error) : resolve(count)))
  })
  try {
    const second = new HalfSent('GET /livez HTTP/1.1\r\nhost: x\r\n\r\n')
    await waitFor('the end of the connection', async () => (second.isClosed ? true : null))
    assert.equal(second.text, '')
  } finally {
    server.maxConnections = maxConnections
    first.end()
  }
  assert.match(await api.services.metrics.text(), /^custody_http_connections_refused_total [1-9]/m)
})

test('a request with two Host headers gets 400', async () => {
  for (const more of ['host: y\r\n', 'HOST: x\r\n']) {
    const text = await api.raw(`GET /livez HTTP/1.1\r\nhost: x\r\n${more}connection: close\r\n\r\n`)
    assert.match(text, /^HTTP\/1\.1 400 /)
    assert.match(text, /"field":"Host"/)
  }
})
