import assert from 'node:assert/strict'
import { get, request, type IncomingMessage } from 'node:http'
import { after, before, test } from 'node:test'
import { z } from 'zod'
import type { Logger } from 'pino'
import type { Database } from '../database/pool.ts'
import { DatabaseHold } from '../engine/database-hold.ts'
import { Callers } from './authentication/callers.ts'
import { systemEnvironment } from '../environment.ts'
import { endpoint, type ServerEvent } from './endpoint.ts'
import { STREAMS_MAX } from './stream-quota.ts'
import { buildServer } from './server.ts'
import { createMetrics } from '../metrics.ts'
import { LoadMonitor } from '../load-monitor.ts'

/**
 * Tests of server-sent events as bytes on the connection, from the real server. The test controls
 * the clock's pauses.
 */
const pauses = new Set<() => void>()
const environment = {
  ...systemEnvironment(),
  sleep: (_: number, signal?: AbortSignal) =>
    new Promise<void>((resolve) => {
      const done = () => {
        pauses.delete(done)
        resolve()
      }
      pauses.add(done)
      signal?.addEventListener('abort', done, { once: true })
    }),
}
const warned: string[] = []
const quiet = () => undefined
const log = {
  info: quiet,
  warn: (_: unknown, words: string) => void warned.push(words),
  error: quiet,
}
// The streams of these tests do not query the database.
const database = {
  withShortTimeout: (work: () => Promise<unknown>) => work(),
} as unknown as Database
const services = {
  database,
  callers: new Callers(database, environment),
  hold: new DatabaseHold(),
  settings: {
    trustProxy: 1,
    rateLimit: 100_000,
    rateScope: 'key' as const,
    authLegacy: false,
    metricsAllow: [],
  },
  checkout: { base: 'http://streams.test' },
  environment,
  metrics: createMetrics(),
  log: log as unknown as Logger,
  pressure: new LoadMonitor(),
  readiness: async () => ({ ready: true, signing: true, attended: true, checks: {} }),
}

/** The open streams: a function that sends an event to the stream, and the signal that ends it. */
const open: { push(event: ServerEvent | Error): void; signal: AbortSignal }[] = []
let ended = 0
async function* readEvents(signal: AbortSignal): AsyncGenerator<ServerEvent> {
  const waiting: (ServerEvent | Error)[] = []
  let wake: () => void = quiet
  signal.addEventListener('abort', () => wake())
  open.push({
    signal,
    push: (event) => {
      waiting.push(event)
      wake()
    },
  })
  try {
    while (!signal.aborted) {
      const next = waiting.shift()
      if (next instanceof Error) throw next
      if (next) yield next
      else
        await new Promise<void>((resolve) => {
          wake = resolve
        })
    }
  } finally {
    ended++
  }
}
const stream = endpoint({
  id: 'stream',
  tag: 'Service',
  description: 'A stream',
  method: 'GET',
  path: '/stream',
  summary: 'A stream',
  access: 'public',
  query: z.strictObject({}),
  response: z.object({ n: z.int().min(0).max(1000) }),
  streams: true,
  handler: async () => ({ stream: readEvents }),
})
const ofInvoice = endpoint({
  ...stream,
  id: 'streamInvoice',
  path: '/invoice/stream',
  query: z.strictObject({}),
  handler: async () => ({ stream: readEvents, resource: 'invoice 1' }),
})
const patched = endpoint({
  id: 'patchThing',
  tag: 'Service',
  description: 'A thing',
  method: 'PATCH',
  path: '/thing',
  summary: 'Change it',
  access: 'public',
  body: z.strictObject({ name: z.string().max(100) }),
  handler: async ({ body }) => ({ body }),
})

let server: Awaited<ReturnType<typeof buildServer>>
let base: string
before(async () => {
  server = await buildServer(services, [stream, ofInvoice, patched])
  base = await server.listen({ port: 0, host: '127.0.0.1' })
})
after(() => server.close())

/**
 * Client of one stream: the text received so far, and a promise that resolves when the stream ends.
 */
class Client {
  text = ''
  readonly response: Promise<IncomingMessage>
  readonly ended: Promise<void>
  readonly leave: () => void
  #onData: () => void = quiet

  constructor(path = '/stream', ip = '192.0.2.1') {
    const outgoing = get(`${base}${path}`, { headers: { 'x-forwarded-for': ip } })
    const { promise, resolve } = Promise.withResolvers<void>()
    this.ended = promise
    this.leave = () => outgoing.destroy()
    outgoing.on('error', () => resolve())
    this.response = new Promise((answered) => {
      outgoing.on('response', (response) => {
        response.setEncoding('utf8').on('data', (text: string) => {
          this.text += text
          this.#onData()
        })
        response.on('close', () => resolve()).on('error', quiet)
        answered(response)
      })
    })
  }

  async received(text: string): Promise<void> {
    while (!this.text.includes(text))
      await new Promise<void>((resolve) => {
        this.#onData = resolve
      })
  }
}
const opened = async (count: number) => {
  while (open.length < count) await new Promise(setImmediate)
}
const allEnded = async () => {
  while (ended < open.length) await new Promise(setImmediate)
}

test('streams events with id, name and data, sends keep-alive comments, and ends with the client', async () => {
  const client = new Client()
  const { headers, statusCode } = await client.response
  assert.equal(statusCode, 200)
  assert.equal(headers['content-type'], 'text/event-stream; charset=utf-8')
  assert.equal(headers['cache-control'], 'no-store')
  assert.equal(headers['x-accel-buffering'], 'no')
  assert.ok(
    headers['x-request-id'] && headers['x-rate-limit-remaining'],
    'the house’s headers are there',
  )
  await opened(1)
  open[0]?.push({ id: '7', event: 'invoice.paid', data: '{"a":1}\n{"b":2}' })
  open[0]?.push({ data: 'x' })
  await client.received('data: x\n\n')
  assert.equal(
    client.text,
    'retry: 3000\n\nid: 7\nevent: invoice.paid\ndata: {"a":1}\ndata: {"b":2}\n\ndata: x\n\n',
  )
  ;[...pauses].at(-1)?.()
  await client.received(': \n\n')
  assert.equal(open[0]?.signal.aborted, false)
  client.leave()
  await allEnded()
  assert.equal(pauses.size, 0, 'no pause is left behind')
})

test('HEAD of a stream returns only its headers', async () => {
  const before = open.length
  const response = await new Promise<IncomingMessage>((resolve) => {
    request(`${base}/stream`, { method: 'HEAD' }, resolve).end()
  })
  response.resume()
  assert.equal(response.statusCode, 200)
  assert.equal(response.headers['content-type'], 'text/event-stream; charset=utf-8')
  assert.equal(open.length, before, 'nothing was opened for it')
})

test('a stream whose source fails is closed, and the failure is logged', async () => {
  const count = open.length
  const client = new Client()
  await opened(count + 1)
  open.at(-1)?.push(new Error('the source broke'))
  await client.ended
  assert.deepEqual(warned.splice(0), ['an event stream was interrupted'])
})

test('one client address has a limited number of streams; an ended one frees its slot', async () => {
  const count = open.length
  const clients = Array.from({ length: STREAMS_MAX.address }, () => new Client())
  await Promise.all(clients.map(({ response }) => response))
  const refused = await new Client().response
  refused.resume()
  assert.equal(refused.statusCode, 429)
  assert.ok(Number(refused.headers['retry-after']) >= 1)
  clients[0]?.leave()
  while (ended < count + 1) await new Promise(setImmediate)
  const another = new Client()
  assert.equal((await another.response).statusCode, 200)
  for (const client of [...clients, another]) client.leave()
  await allEnded()
})

test('a payer still gets a stream if another network has taken all streams of the invoice', async () => {
  const count = open.length
  const path = '/invoice/stream'
  const clients = Array.from(
    { length: STREAMS_MAX.resource },
    (_, at) => new Client(path, `2001:db8:1:${at.toString(16)}::1`),
  )
  for (const { response } of clients) assert.equal((await response).statusCode, 200)
  const another = await new Client(path, '2001:db8:1:ffff::1').response
  another.resume()
  assert.equal(another.statusCode, 429)
  assert.ok(Number(another.headers['retry-after']) >= 1)
  const payer = new Client(path, '198.51.100.7')
  assert.equal((await payer.response).statusCode, 200)
  await Promise.race(clients.map((client) => client.ended))
  while (ended < count + 1) await new Promise(setImmediate)
  assert.equal(ended, count + 1)
  for (const client of [...clients, payer]) client.leave()
  await allEnded()
})

test('the server supports PATCH', async () => {
  const answer = await fetch(`${base}/thing`, {
    method: 'PATCH',
    headers: { 'content-type': 'application/json' },
    body: '{"name":"n"}',
  })
  assert.deepEqual([answer.status, await answer.json()], [200, { name: 'n' }])
  const document = (await (await fetch(`${base}/openapi.json`)).json()) as {
    paths: Record<string, Record<string, { responses: Record<string, { content?: object }> }>>
  }
  assert.ok(document.paths['/thing']?.['patch'])
  assert.deepEqual(
    Object.keys(document.paths['/stream']?.['get']?.responses['200']?.content ?? {}),
    ['text/event-stream'],
  )
})

test('closing the server closes its streams immediately', async () => {
  const client = new Client()
  await client.response
  await server.close()
  await client.ended
  await allEnded()
  assert.equal(pauses.size, 0)
})
