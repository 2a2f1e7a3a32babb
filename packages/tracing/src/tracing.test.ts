import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { after, before, test } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import {
  continued,
  inSpan,
  inTrace,
  notePart,
  noteWhole,
  startTracing,
  traceHeader,
} from './index.ts'
import { startCollector } from '../testing/collector.ts'

/**
 * Longest time that the end of a process waits for its last spans: STOP_MS_MAX in
 * src/open-telemetry.ts.
 */
const STOP_MS_MAX = 2000

const ID = '0b54e1ca-9f3e-8c1d-8f0a-3b6f1c2d4e5f'
const TRACE = ID.replaceAll('-', '')
let collector: Awaited<ReturnType<typeof startCollector>>
before(async () => {
  collector = await startCollector()
})
after(() => collector.close())

/** Runs a function with tracing enabled and returns the spans that were sent. */
async function collect(env: Record<string, string>, play: () => Promise<void>) {
  collector.spans.length = 0
  process.env['OTEL_EXPORTER_OTLP_ENDPOINT'] = collector.url
  const stop = await startTracing('test', { OTEL_EXPORTER_OTLP_ENDPOINT: collector.url, ...env })
  await play()
  await stop()
  delete process.env['OTEL_EXPORTER_OTLP_ENDPOINT']
  return collector.spans
}

test('without an endpoint, nothing is traced and no OpenTelemetry module is loaded', () => {
  const script = `
    import { registerHooks } from 'node:module'
    let loaded = 0
    registerHooks({ resolve(specifier, context, next) {
      if (specifier.includes('@opentelemetry/')) loaded++
      return next(specifier, context)
    } })
    const { inTrace, startTracing, traceHeader } = await import('${new URL('./index.ts', import.meta.url).href}')
    const stop = await startTracing('test', process.env)
    console.log(await inTrace('${ID}', 'step', {}, async () => Object.keys(traceHeader()).length), loaded > 0)
    await stop()`
  const plays = (env: Record<string, string>) => {
    const { stdout, stderr } = spawnSync(process.execPath, ['--input-type=module', '-e', script], {
      encoding: 'utf8',
      env: { ...process.env, ...env },
    })
    return stdout.trim() || stderr
  }
  const endpoint = { OTEL_EXPORTER_OTLP_ENDPOINT: collector.url }
  assert.equal(plays({}), '0 false')
  assert.equal(plays({ ...endpoint, OTEL_SDK_DISABLED: 'true' }), '0 false')
  assert.equal(plays({ ...endpoint, OTEL_TRACES_SAMPLER_ARG: '0' }), '1 true', 'it would be seen')
})

test('all processes report a transfer in one trace, whose id is derived from the transfer’s id', async () => {
  let header: Record<string, string> = {}
  const spans = await collect({}, async () => {
    const answer = await inTrace(ID, 'signing', { network: 'ETH' }, () =>
      inSpan('signer', { node: 2 }, async () => {
        header = traceHeader()
        return 7
      }),
    )
    assert.equal(answer, 7)
    // The other process receives the id or the header, and nothing else.
    await continued(header['traceparent'], '/sign', { from: 'platform' }, () =>
      inSpan('peer', {}, async () => undefined),
    )
    notePart(ID, 'request', {}, 1_800_000_000_000, 1_800_000_000_005)
    noteWhole(ID, 'withdrawal', { outcome: 'confirmed' }, 1_800_000_000_000, 1_800_000_030_000)
  })
  const named = (name: string) =>
    spans.find((span) => span.name === name) ??
    assert.fail(`no ${name} in ${spans.map((span) => span.name).join()}`)
  assert.deepEqual([...new Set(spans.map(({ traceId }) => traceId))], [TRACE])
  assert.deepEqual([...new Set(spans.map(({ service }) => service))], ['test'])
  const whole = named('withdrawal')
  assert.equal(whole.parentSpanId, null)
  assert.deepEqual([whole.startMs, whole.endMs], [1_800_000_000_000, 1_800_000_030_000])
  assert.equal(named('signing').parentSpanId, whole.spanId)
  assert.equal(named('request').parentSpanId, whole.spanId)
  assert.deepEqual(named('signing').attributes, { network: 'ETH' })
  assert.equal(named('signer').parentSpanId, named('signing').spanId)
  assert.equal(header['traceparent'], `00-${TRACE}-${named('signer').spanId}-01`)
  assert.equal(named('/sign').parentSpanId, named('signer').spanId)
  assert.equal(named('peer').parentSpanId, named('/sign').spanId)
})

test('passes an error to the caller, and adds its kind but not its message to the span', async () => {
  const spans = await collect({}, async () => {
    await assert.rejects(
      inTrace(ID, 'step', {}, async () => {
        throw Object.assign(new Error('secret of a caller'), { code: 'NOT_EXCLUSIVE' })
      }),
      /secret of a caller/,
    )
    await assert.rejects(
      inTrace(ID, 'step', {}, async () => {
        throw new RangeError('another')
      }),
      RangeError,
    )
  })
  assert.deepEqual(
    spans.map(({ isError, attributes }) => [isError, attributes['error.type']]),
    [
      [true, 'NOT_EXCLUSIVE'],
      [true, 'RangeError'],
    ],
  )
  assert.doesNotMatch(JSON.stringify(spans), /secret/)
})

test('ignores invalid traceparents and UUIDs', async () => {
  const spans = await collect({}, async () => {
    for (const header of [
      undefined,
      '',
      '00-',
      `01-${TRACE}-00f067aa0ba902b7-01`,
      `00-${TRACE}-00f067aa0ba902b7-01x`,
      `00-${TRACE.toUpperCase()}-00f067aa0ba902b7-01`,
      'x'.repeat(10_000),
    ]) {
      assert.equal(await continued(header, 'span', {}, async () => 1), 1)
    }
    assert.equal(await inTrace('not-a-uuid', 'span', {}, async () => 1), 1)
    assert.equal(await inSpan('span', {}, async () => 1), 1)
    noteWhole('not-a-uuid', 'span', {}, 0, 1)
    assert.deepEqual(traceHeader(), {})
  })
  assert.deepEqual(spans, [])
})

test('traces the configured fraction of transfers, each completely or not at all', async () => {
  const ids = Array.from(
    { length: 400 },
    (_, at) =>
      `0b54e1ca-9f3e-4c1d-8f0a-${(at * 704_217_143 * 99_991).toString(16).padStart(12, '0').slice(-12)}`,
  )
  let isHeaderMarked = true
  const spans = await collect({ OTEL_TRACES_SAMPLER_ARG: '0.25' }, async () => {
    for (const id of ids) {
      await inTrace(id, 'step', {}, async () => {
        const header = traceHeader()['traceparent']
        await continued(header, 'far', {}, async () => {
          isHeaderMarked &&= traceHeader()['traceparent']?.slice(-2) === header?.slice(-2)
        })
      })
      noteWhole(id, 'whole', {}, 0, 1)
    }
  })
  assert.ok(isHeaderMarked)
  const count = (name: string) =>
    new Set(spans.filter((span) => span.name === name).map(({ traceId }) => traceId))
  assert.deepEqual(count('step'), count('whole'))
  assert.deepEqual(count('far'), count('whole'))
  assert.ok(count('whole').size > 50 && count('whole').size < 200, `${count('whole').size} of 400`)
  assert.deepEqual(
    await collect({ OTEL_TRACES_SAMPLER_ARG: '0' }, async () => noteWhole(ID, 'whole', {}, 0, 1)),
    [],
  )
  for (const share of ['2', '-1', '', 'all'])
    await assert.rejects(
      startTracing('test', {
        OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
        OTEL_TRACES_SAMPLER_ARG: share,
      }),
      /OTEL_TRACES_SAMPLER_ARG: must be a number from 0 to 1, not ".*"/,
    )
})

test('a collector that does not respond does not prevent a process from ending', async (t) => {
  const received = Promise.withResolvers<ServerResponse>()
  const silent = createServer((_, response) => {
    received.resolve(response)
  })
  await new Promise<void>((resolve) => {
    silent.listen(0, '127.0.0.1', resolve)
  })
  const endpoint = `http://127.0.0.1:${(silent.address() as AddressInfo).port}`
  process.env['OTEL_EXPORTER_OTLP_ENDPOINT'] = endpoint
  const stop = await startTracing('test', { OTEL_EXPORTER_OTLP_ENDPOINT: endpoint })
  noteWhole(ID, 'whole', {}, 0, 1)
  // The clock is stopped, so that the exporter, which would wait ten seconds, does not time out.
  t.mock.timers.enable({ apis: ['setTimeout'] })
  let isStopped = false
  const stopped = stop().then(() => {
    isStopped = true
  })
  const response = await received.promise
  t.mock.timers.tick(STOP_MS_MAX - 1)
  await setImmediate()
  assert.equal(isStopped, false)
  t.mock.timers.tick(1)
  await stopped
  response.end('{}')
  silent.close()
  delete process.env['OTEL_EXPORTER_OTLP_ENDPOINT']
})
