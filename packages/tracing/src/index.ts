/**
 * Traces across platform and nodes, with OpenTelemetry. One transfer is one trace, and its ID, a
 * UUID, is the trace ID: the trace of a transfer can be looked up by the transfer's ID, and
 * processes that share only this ID write to the same trace.
 *
 * Disabled unless {@link startTracing} finds an endpoint. While it is disabled, OpenTelemetry is
 * not loaded, and each function below only calls its argument.
 */

import type { Attributes, Tracing } from './types.ts'

export type { Attributes } from './types.ts'

let tracing: Tracing | null = null

/**
 * Starts tracing if `OTEL_EXPORTER_OTLP_ENDPOINT` or `OTEL_EXPORTER_OTLP_TRACES_ENDPOINT` names a
 * collector (OTLP over HTTP, JSON), and `OTEL_SDK_DISABLED` is not true. `OTEL_TRACES_SAMPLER_ARG`
 * is the fraction of transfers that are traced, 1 by default; all processes select the same
 * transfers. Headers, timeout and compression are OpenTelemetry's own settings.
 * @param service name of this process in traces
 * @returns a function that stops tracing; waiting spans are sent, for at most two seconds
 * @throws Error if a setting is invalid
 */
export async function startTracing(
  service: string,
  env: NodeJS.ProcessEnv,
): Promise<() => Promise<void>> {
  const endpoint = env['OTEL_EXPORTER_OTLP_TRACES_ENDPOINT'] || env['OTEL_EXPORTER_OTLP_ENDPOINT']
  if (!endpoint || env['OTEL_SDK_DISABLED'] === 'true') return async () => undefined
  const { openTelemetry } = await import('./open-telemetry.ts')
  const started = openTelemetry(service, env)
  tracing = started
  return async () => {
    if (tracing === started) tracing = null
    await started.stop()
  }
}

/**
 * Runs work in a span of a transaction's trace, whatever the current span is.
 * @param id the transaction's UUID
 */
export const inTrace = <T>(
  id: string,
  name: string,
  attributes: Attributes,
  work: () => Promise<T>,
): Promise<T> => (tracing ? tracing.inTrace(id, name, attributes, work) : work())

/** Runs work in a child of the current span; without a current span, no span is created. */
export const inSpan = <T>(
  name: string,
  attributes: Attributes,
  work: () => Promise<T>,
): Promise<T> => (tracing ? tracing.inSpan(name, attributes, work) : work())

/**
 * Runs work in a child of another process's span.
 * @param header its `traceparent` (W3C Trace Context); any other value is ignored
 */
export const continued = <T>(
  header: string | undefined,
  name: string,
  attributes: Attributes,
  work: () => Promise<T>,
): Promise<T> => (tracing ? tracing.continued(header, name, attributes, work) : work())

/** Records a completed span of a transaction's trace. */
export const notePart = (
  id: string,
  name: string,
  attributes: Attributes,
  startMs: number,
  endMs: number,
): void => tracing?.part(id, name, attributes, startMs, endMs)

/** Records the root span of a transaction's trace: from the transaction's creation to its end. */
export const noteWhole = (
  id: string,
  name: string,
  attributes: Attributes,
  startMs: number,
  endMs: number,
): void => tracing?.whole(id, name, attributes, startMs, endMs)

/** Returns the `traceparent` header of the current span, for another process. */
export const traceHeader = (): Record<string, string> => {
  const header = tracing?.header()
  return header === undefined ? {} : { traceparent: header }
}
