import assert from 'node:assert/strict'
import { test } from 'node:test'
import { jsonRpc, readText, RpcUnavailable } from '@custody/chains'
import { ProviderError, ProviderHttp } from '../../../custody/aml/providers/provider.ts'
import { unpaced } from '../../../custody/aml/providers/pace.ts'
import { systemEnvironment } from '../../environment.ts'
import { endpoints } from '../../../server/app/endpoints.ts'
import { buildServer } from '../server.ts'
import { createMetrics } from '../../metrics.ts'
import { coinGecko } from '../../../custody/prices/coingecko.ts'
import { exchange } from '../../../custody/prices/exchange.ts'
import { SourceError } from '../../../custody/prices/source.ts'
import { partialApplication } from '../../../../testing/partial-application.ts'
import { LoadMonitor } from '../../load-monitor.ts'
import { readSettings } from '../../settings/settings.ts'

/**
 * Tests of the effects that unauthenticated clients can cause on the platform: requests to its
 * nodes, address counters, and reads.
 */
const NOW = Date.UTC(2026, 0, 1)

/** Starts the HTTP server with services of which only readiness is used. */
async function served(o: {
  trustProxy?: number
  rateLimit?: number
  readiness?: () => Promise<{ ready: boolean; checks: Record<string, string> }>
}) {
  const clock = { now: NOW }
  const services = partialApplication({
    settings: { trustProxy: o.trustProxy ?? 0, rateLimit: o.rateLimit ?? 1000 },
    checkout: { base: 'http://edges.test' },
    environment: { ...systemEnvironment(), now: () => clock.now },
    metrics: createMetrics(),
    log: { error: () => undefined, warn: () => undefined, info: () => undefined },
    pressure: new LoadMonitor(),
    readiness: o.readiness ?? (async () => ({ ready: true, checks: {} })),
  })
  return { clock, server: await buildServer(services, endpoints) }
}

test('a flood of readiness requests queries the database and the nodes once a second', async () => {
  let requestCount = 0
  const { clock, server } = await served({
    readiness: async () => {
      requestCount++
      await new Promise((resolve) => {
        setTimeout(resolve, 20)
      })
      return { ready: requestCount === 1, checks: { asked: String(requestCount) } }
    },
  })
  const flood = async () =>
    new Set(
      (await Promise.all(Array.from({ length: 50 }, () => server.inject('/readyz')))).map(
        ({ statusCode }) => statusCode,
      ),
    )
  assert.deepEqual([await flood(), requestCount], [new Set([200]), 1])
  clock.now += 999
  assert.deepEqual([await flood(), requestCount], [new Set([200]), 1])
  clock.now += 1
  assert.deepEqual([await flood(), requestCount], [new Set([503]), 2])
})

test('a readiness check that did not complete is repeated immediately', async () => {
  let requestCount = 0
  const { server } = await served({
    readiness: async () => {
      requestCount++
      if (requestCount === 1) throw new Error('away')
      return { ready: true, checks: {} }
    },
  })
  assert.equal((await server.inject('/readyz')).statusCode, 500)
  assert.equal((await server.inject('/readyz')).statusCode, 200)
})

/**
 * Returns the statuses of three requests of one client that forges a different list of hops in
 * each; two requests are allowed.
 */
async function forging(trustProxy: number, hops: (attempt: number) => string): Promise<number[]> {
  const { server } = await served({ trustProxy, rateLimit: 2 })
  const statuses: number[] = []
  for (let attempt = 0; attempt < 3; attempt++) {
    statuses.push(
      (
        await server.inject({
          url: '/openapi.json',
          remoteAddress: '10.0.0.1',
          headers: { 'x-forwarded-for': hops(attempt) },
        })
      ).statusCode,
    )
  }
  return statuses
}

test('forged X-Forwarded-For headers do not let a client exceed its rate limit', async () => {
  assert.deepEqual(
    await forging(0, (attempt) => `198.51.100.${attempt}`),
    [200, 200, 429],
    'without a proxy the header is nothing',
  )
  assert.deepEqual(
    await forging(1, (attempt) => `198.51.100.${attempt}, 203.0.113.9`),
    [200, 200, 429],
    'one proxy wrote the last hop; what stands before it is the client’s',
  )
  assert.deepEqual(
    await forging(2, (attempt) => `198.51.100.${attempt}, 203.0.113.9, 10.0.0.2`),
    [200, 200, 429],
  )
  assert.deepEqual(
    await forging(3, (attempt) => `198.51.100.${attempt}`),
    [200, 200, 200],
    'fewer hops than proxies: the first is all there is',
  )
})

test('behind proxies, each client has its own rate limit', async () => {
  assert.deepEqual(await forging(1, (attempt) => `203.0.113.${attempt}`), [200, 200, 200])
  assert.deepEqual(await forging(2, (attempt) => `203.0.113.${attempt}, 10.0.0.2`), [200, 200, 200])
})

test('CUSTODY_TRUST_PROXY is the number of proxies', () => {
  const read = (text: string | undefined) => readSettings({ CUSTODY_TRUST_PROXY: text }).trustProxy
  assert.deepEqual([undefined, '0', '1', '3'].map(read), [0, 0, 1, 3])
  for (const bad of ['-1', 'true', '1.5', '17'])
    assert.throws(() => read(bad), /CUSTODY_TRUST_PROXY/)
})

const CHUNK = new Uint8Array(1024 * 1024).fill(0x20)
/** Returns a body without end, and a counter of the bytes that were read. */
function endless(status = 200) {
  const taken = { bytes: 0, cancelled: false }
  const body = () =>
    new ReadableStream<Uint8Array>(
      {
        pull: (controller) => {
          taken.bytes += CHUNK.length
          // Without a limit, the reader would read until the memory is full.
          if (taken.bytes > 400 * MB) throw new Error('nobody stopped reading')
          controller.enqueue(CHUNK)
        },
        cancel: () => {
          taken.cancelled = true
        },
      },
      { highWaterMark: 0 },
    )
  return {
    taken,
    fetch: async () =>
      new Response(body(), { status, headers: { 'content-type': 'application/json' } }),
  }
}
const MB = 1024 * 1024

test('an endless response of a risk or price provider is cut off at a size limit', async () => {
  const http = endless()
  const provider = new ProviderHttp(http.fetch, systemEnvironment(), unpaced)
  await assert.rejects(
    provider.ask({ provider: 'TRM', token: 'x' }, () => ({
      method: 'GET',
      url: 'https://host/',
      headers: {},
    })),
    (error: unknown) => error instanceof ProviderError && error.kind === 'unusable',
  )
  assert.ok(http.taken.bytes <= 6 * MB && http.taken.cancelled, String(http.taken.bytes))
  const gecko = endless()
  await assert.rejects(
    coinGecko({
      url: 'https://host',
      key: null,
      ids: { BTC: 'bitcoin' },
      fetch: gecko.fetch,
    }).quotes(['BTC']),
    (error: unknown) => error instanceof SourceError && /too large/.test(error.message),
  )
  assert.ok(gecko.taken.bytes <= 3 * MB && gecko.taken.cancelled, String(gecko.taken.bytes))
  const kraken = endless()
  await assert.rejects(
    exchange({
      id: 'kraken',
      url: 'https://host',
      environment: systemEnvironment(),
      fetch: kraken.fetch,
    }).quotes(['BTC']),
    SourceError,
  )
  assert.ok(
    kraken.taken.bytes > 0 && kraken.taken.bytes <= 64 * MB && kraken.taken.cancelled,
    String(kraken.taken.bytes),
  )
})

test('an endless response of a chain endpoint is cut off at a size limit', async () => {
  const node = endless()
  await assert.rejects(
    jsonRpc({ url: 'http://node' }, node.fetch)('getblock', []),
    (error: unknown) => error instanceof RpcUnavailable && /too large/.test(error.message),
  )
  assert.ok(node.taken.bytes <= 260 * MB && node.taken.cancelled, String(node.taken.bytes))
  assert.equal(await readText(await endless().fetch(), 3 * MB), null)
  assert.equal(await readText(new Response('whole'), 5), 'whole')
  assert.equal(await readText(new Response('whole'), 4), null)
})
