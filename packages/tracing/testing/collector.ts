import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

/** A span in the JSON format of OTLP. */
export interface ReceivedSpan {
  service: string
  name: string
  traceId: string
  spanId: string
  parentSpanId: string | null
  isError: boolean
  attributes: Record<string, unknown>
  startMs: number
  endMs: number
}

interface Value {
  stringValue?: string
  intValue?: string | number
  boolValue?: boolean
}
interface Span {
  name: string
  traceId: string
  spanId: string
  parentSpanId?: string
  status?: { code?: number }
  startTimeUnixNano: string
  endTimeUnixNano: string
  attributes?: { key: string; value: Value }[]
}
interface Body {
  resourceSpans: {
    resource: { attributes: { key: string; value: Value }[] }
    scopeSpans: { spans: Span[] }[]
  }[]
}

const valuesOf = (list: readonly { key: string; value: Value }[] = []): Record<string, unknown> =>
  Object.fromEntries(
    list.map(({ key, value }) => [
      key,
      value.stringValue ?? value.boolValue ?? Number(value.intValue),
    ]),
  )

/**
 * A stub of the OpenTelemetry collector for traces over HTTP: receives spans and returns them to
 * the test.
 */
export async function startCollector(): Promise<{
  url: string
  spans: ReceivedSpan[]
  close(): void
}> {
  const spans: ReceivedSpan[] = []
  const server = createServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      if (request.url !== '/v1/traces' || request.headers['content-type'] !== 'application/json') {
        response.writeHead(400).end()
        return
      }
      const { resourceSpans } = JSON.parse(Buffer.concat(chunks).toString()) as Body
      for (const { resource, scopeSpans } of resourceSpans) {
        const service = String(valuesOf(resource.attributes)['service.name'])
        for (const span of scopeSpans.flatMap((each) => each.spans)) {
          spans.push({
            service,
            name: span.name,
            traceId: span.traceId,
            spanId: span.spanId,
            parentSpanId: span.parentSpanId ?? null,
            isError: span.status?.code === 2,
            attributes: valuesOf(span.attributes),
            startMs: Number(BigInt(span.startTimeUnixNano) / 1_000_000n),
            endMs: Number(BigInt(span.endTimeUnixNano) / 1_000_000n),
          })
        }
      }
      response.writeHead(200, { 'content-type': 'application/json' }).end('{}')
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    spans,
    close: () => {
      server.close()
      server.closeAllConnections()
    },
  }
}
