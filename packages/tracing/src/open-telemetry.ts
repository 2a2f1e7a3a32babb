import { AsyncLocalStorage } from 'node:async_hooks'
import { createHash, randomBytes } from 'node:crypto'
import {
  context as contexts,
  ROOT_CONTEXT,
  SpanStatusCode,
  trace,
  TraceFlags,
  type Context,
  type Span,
} from '@opentelemetry/api'
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http'
import { resourceFromAttributes } from '@opentelemetry/resources'
import {
  BatchSpanProcessor,
  ParentBasedSampler,
  SamplingDecision,
  TraceIdRatioBasedSampler,
  TracerProvider,
} from '@opentelemetry/sdk-trace'
import type { Attributes, Tracing } from './types.ts'

/**
 * Maximum time in milliseconds for sending spans when a process ends; the remaining spans are lost.
 */
const STOP_MS_MAX = 2000
const SPAN_ID_BYTES = 8
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/
/** W3C Trace Context, version 00. */
const TRACEPARENT = /^00-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})$/

const traceIdOf = (id: string): string => id.replaceAll('-', '')
/** Returns the ID of the root span, which every process can compute before the span is recorded. */
const wholeSpanOf = (id: string): string =>
  createHash('sha256')
    .update(`custody/span/${id}`)
    .digest('hex')
    .slice(0, 2 * SPAN_ID_BYTES)

/** Generates random IDs, unless the next ID is set. */
class Ids {
  next: { traceId: string; spanId: string } | null = null

  generateTraceId(): string {
    return this.next?.traceId ?? randomBytes(2 * SPAN_ID_BYTES).toString('hex')
  }

  generateSpanId(): string {
    return this.next?.spanId ?? randomBytes(SPAN_ID_BYTES).toString('hex')
  }
}

function shareOf(env: NodeJS.ProcessEnv): number {
  const text = env['OTEL_TRACES_SAMPLER_ARG'] ?? '1'
  const share = Number(text)
  if (text.trim() === '' || !(share >= 0 && share <= 1))
    throw new Error(`OTEL_TRACES_SAMPLER_ARG: must be a number from 0 to 1, not "${text}"`)
  return share
}

/** Returns the context of a span of another process. */
const remoteContext = (traceId: string, spanId: string, isSampled: boolean): Context =>
  trace.setSpanContext(ROOT_CONTEXT, {
    traceId,
    spanId,
    traceFlags: isSampled ? TraceFlags.SAMPLED : TraceFlags.NONE,
    isRemote: true,
  })

/** Returns the provider that samples spans and sends them to the configured endpoint. */
const providerOf = (
  service: string,
  env: NodeJS.ProcessEnv,
  sampler: TraceIdRatioBasedSampler,
  idGenerator: Ids,
): TracerProvider =>
  new TracerProvider({
    resource: resourceFromAttributes({
      'service.name': env['OTEL_SERVICE_NAME'] || service,
      'service.instance.id': `${process.pid}`,
    }),
    sampler: new ParentBasedSampler({ root: sampler }),
    idGenerator,
    spanProcessors: [new BatchSpanProcessor({ exporter: new OTLPTraceExporter() })],
  })

/** Sends the remaining spans within the maximum time. */
async function shutDown(provider: TracerProvider): Promise<void> {
  await Promise.race([
    provider.shutdown().catch(() => undefined),
    new Promise((resolve) => setTimeout(resolve, STOP_MS_MAX).unref()),
  ])
}

/** Marks a span as failed, with the code or name of its error. */
function markFailed(span: Span, error: unknown): void {
  // Without a message, because messages may contain text of other parties.
  span.setStatus({ code: SpanStatusCode.ERROR })
  span.setAttribute(
    'error.type',
    error instanceof Error ? String((error as { code?: unknown }).code ?? error.name) : 'unknown',
  )
}

/**
 * Starts OpenTelemetry.
 * @throws Error if a setting is invalid
 */
export function openTelemetry(service: string, env: NodeJS.ProcessEnv): Tracing {
  const sampler = new TraceIdRatioBasedSampler(shareOf(env))
  const idGenerator = new Ids()
  const provider = providerOf(service, env, sampler, idGenerator)
  const tracer = provider.getTracer('custody')
  const current = new AsyncLocalStorage<Context>()

  const isSampled = (traceId: string) =>
    sampler.shouldSample(ROOT_CONTEXT, traceId).decision === SamplingDecision.RECORD_AND_SAMPLED
  const ofTransaction = (id: string): Context | null => {
    if (!UUID.test(id)) return null
    const traceId = traceIdOf(id)
    return remoteContext(traceId, wholeSpanOf(id), isSampled(traceId))
  }

  async function during<T>(
    parent: Context | null,
    name: string,
    attributes: Attributes,
    work: () => Promise<T>,
  ): Promise<T> {
    if (parent === null) return work()
    const span: Span = tracer.startSpan(name, { attributes }, parent)
    try {
      return await current.run(trace.setSpan(parent, span), work)
    } catch (error) {
      markFailed(span, error)
      throw error
    } finally {
      span.end()
    }
  }

  return {
    inTrace: (id, name, attributes, work) => during(ofTransaction(id), name, attributes, work),
    inSpan: (name, attributes, work) => during(current.getStore() ?? null, name, attributes, work),
    continued(header, name, attributes, work) {
      const [, traceId, spanId, flags] = TRACEPARENT.exec(header ?? '') ?? []
      if (traceId === undefined || spanId === undefined) return work()
      return during(
        remoteContext(
          traceId,
          spanId,
          (Number.parseInt(flags ?? '0', 16) & TraceFlags.SAMPLED) !== 0,
        ),
        name,
        attributes,
        work,
      )
    },
    part(id, name, attributes, startMs, endMs) {
      const parent = ofTransaction(id)
      if (parent !== null)
        tracer.startSpan(name, { attributes, startTime: startMs }, parent).end(endMs)
    },
    whole(id, name, attributes, startMs, endMs) {
      if (!UUID.test(id)) return
      idGenerator.next = { traceId: traceIdOf(id), spanId: wholeSpanOf(id) }
      tracer
        .startSpan(name, { attributes, startTime: startMs, root: true }, contexts.active())
        .end(endMs)
      idGenerator.next = null
    },
    header() {
      const span = trace.getSpanContext(current.getStore() ?? ROOT_CONTEXT)
      return (
        span && `00-${span.traceId}-${span.spanId}-${span.traceFlags.toString(16).padStart(2, '0')}`
      )
    },
    stop: () => shutDown(provider),
  }
}
