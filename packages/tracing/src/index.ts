/**
 * Traces across platform and nodes, by OpenTelemetry. One transfer is one trace: its id, a UUID, is
 * the trace's id, so whoever knows the one can look up the other, and processes that share nothing
 * but it write one trace.
 *
 * Off unless {@link startTracing} finds an endpoint: then nothing of OpenTelemetry is loaded, and
 * each function below only calls what it is given.
 */

/**
 * What is told of a span. Kinds, states, networks and codes; no address, amount, key, or text of
 * somebody else's.
 */
export type Attributes = Readonly<Record<string, string | number | boolean>>

/** What a started tracer does; see the functions of the same names. */
export interface Tracing {
  inTrace<T>(id: string, name: string, attributes: Attributes, work: () => Promise<T>): Promise<T>
  inSpan<T>(name: string, attributes: Attributes, work: () => Promise<T>): Promise<T>
  continued<T>(
    header: string | undefined,
    name: string,
    attributes: Attributes,
    work: () => Promise<T>,
  ): Promise<T>
  part(id: string, name: string, attributes: Attributes, startMs: number, endMs: number): void
  whole(id: string, name: string, attributes: Attributes, startMs: number, endMs: number): void
  header(): string | undefined
  stop(): Promise<void>
}

let tracing: Tracing | null = null

/**
 * Starts where `OTEL_EXPORTER_OTLP_ENDPOINT` or `OTEL_EXPORTER_OTLP_TRACES_ENDPOINT` names a
 * collector (OTLP over HTTP, JSON), and `OTEL_SDK_DISABLED` is not true. `OTEL_TRACES_SAMPLER_ARG`
 * is the share of transfers that is traced, 1 by itself; every process decides alike. Headers,
 * time-out and compression are OpenTelemetry's own settings.
 * @param service how this process is called in traces
 * @returns what ends it: spans that wait are sent, for at most two seconds
 * @throws Error where a setting cannot be read
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

/** A span of a transaction's trace, whatever is under way. @param id the transaction's UUID */
export const inTrace = <T>(
  id: string,
  name: string,
  attributes: Attributes,
  work: () => Promise<T>,
): Promise<T> => (tracing ? tracing.inTrace(id, name, attributes, work) : work())

/** A span within the one that is under way; without one there is none. */
export const inSpan = <T>(
  name: string,
  attributes: Attributes,
  work: () => Promise<T>,
): Promise<T> => (tracing ? tracing.inSpan(name, attributes, work) : work())

/**
 * A span within one of another process. @param header its `traceparent` (W3C Trace Context);
 * anything else is passed over
 */
export const continued = <T>(
  header: string | undefined,
  name: string,
  attributes: Attributes,
  work: () => Promise<T>,
): Promise<T> => (tracing ? tracing.continued(header, name, attributes, work) : work())

/** A span of a transaction's trace that is over. */
export const notePart = (
  id: string,
  name: string,
  attributes: Attributes,
  startMs: number,
  endMs: number,
): void => tracing?.part(id, name, attributes, startMs, endMs)

/** The span that all others of a transaction's trace are within: from its creation to its end. */
export const noteWhole = (
  id: string,
  name: string,
  attributes: Attributes,
  startMs: number,
  endMs: number,
): void => tracing?.whole(id, name, attributes, startMs, endMs)

/** `traceparent` of the span that is under way, for another process. */
export const traceHeader = (): Record<string, string> => {
  const header = tracing?.header()
  return header === undefined ? {} : { traceparent: header }
}
