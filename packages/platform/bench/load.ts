import { readFileSync } from 'node:fs'
import { Agent, request } from 'node:http'
import { requestHeaders, signRequest } from '@custody/request-auth'
import autocannon from 'autocannon'
import { percentile } from '../../../testing/figures.ts'
import { PRIVATE_KEY } from '../testing/harness.ts'

/** A request before it is signed. Each has a separate nonce and can be sent once. */
export interface Ask {
  apiKey: string
  method: 'GET' | 'POST'
  path: string
  body?: string
}
export interface Signed {
  method: 'GET' | 'POST'
  path: string
  headers: Record<string, string>
  body: string
}

/** Signs the requests with the current time, so they must be sent within half a minute. */
export const signAll = (asks: readonly Ask[]): Promise<Signed[]> =>
  Promise.all(
    asks.map(async ({ apiKey, method, path, body = '' }) => {
      const signed = await signRequest({ apiKey, privateKey: PRIVATE_KEY, method, uri: path, body })
      return { method, path, headers: requestHeaders(signed, apiKey), body }
    }),
  )

/**
 * Requests per second; latencies in milliseconds; processor time in milliseconds that the server
 * used per request, on all processors.
 */
export interface Fired {
  rate: number
  p50: number
  p99: number
  cpuMs: number
}

/**
 * Sends all requests, each once, over keep-alive connections.
 * @param pids of the servers whose processor time is measured
 * @throws Error if a response is not 200
 */
export async function fire(
  base: string,
  requests: readonly Signed[],
  connections: number,
  pids: readonly number[],
): Promise<Fired> {
  const each = Math.floor(requests.length / connections)
  const latencies: number[] = []
  const failed = new Map<number, number>()
  let next = 0
  const cpuBefore = cpuMsOf(pids)
  const startedAt = performance.now()
  let endedAt = startedAt
  await new Promise<void>((resolve, reject) => {
    autocannon(
      {
        url: base,
        connections,
        amount: each * connections,
        timeout: 60,
        setupClient(client) {
          client.setRequests(requests.slice(next, next + each) as autocannon.Request[])
          next += each
          client.on('response', (status, _bytes, tookMs) => {
            latencies.push(tookMs)
            endedAt = performance.now()
            if (status !== 200) failed.set(status, (failed.get(status) ?? 0) + 1)
          })
        },
      },
      (error) => (error ? reject(error as Error) : resolve()),
    )
  })
  if (failed.size > 0 || latencies.length !== each * connections) {
    throw new Error(
      `${latencies.length} answers to ${each * connections} requests; not 200: ${JSON.stringify([...failed])}`,
    )
  }
  const cpuMs = (cpuMsOf(pids) - cpuBefore) / latencies.length
  return {
    rate: (latencies.length * 1000) / (endedAt - startedAt),
    p50: percentile(latencies, 0.5),
    p99: percentile(latencies, 0.99),
    cpuMs,
  }
}

const agent = new Agent({ keepAlive: true, maxSockets: 1 })

/**
 * Sends one request alone.
 * @returns milliseconds until the response
 * @throws Error if the response is not 200
 */
export async function timed(
  base: string,
  { method, path, headers, body }: Signed,
): Promise<number> {
  const startedAt = performance.now()
  const status = await new Promise<number | undefined>((resolve, reject) => {
    const outgoing = request(
      `${base}${path}`,
      { agent, method, headers: { ...headers, 'content-length': Buffer.byteLength(body) } },
      (response) => response.resume().once('end', () => resolve(response.statusCode)),
    )
    outgoing.once('error', reject).end(body)
  })
  if (status !== 200) throw new Error(`${method} ${path}: ${String(status)}`)
  return performance.now() - startedAt
}

/** Linux counts processor time in hundredths of a second. */
const TICK_MS = 10

/**
 * Returns the processor time that these processes have used; NaN if the system does not report it
 * (no /proc).
 */
export function cpuMsOf(pids: readonly number[]): number {
  try {
    return pids.reduce((sum, pid) => {
      // The name, in brackets, may contain spaces.
      const fields = (readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ').at(-1) as string).split(
        ' ',
      )
      return sum + (Number(fields[11]) + Number(fields[12])) * TICK_MS
    }, 0)
  } catch {
    return Number.NaN
  }
}
