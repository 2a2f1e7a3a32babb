import { reasonOf } from '../reason.ts'
import { loadRegistry } from '../registry.ts'
import { RpcRefused, type Fetch, type RpcEndpoint } from '../rpc.ts'
import { ChainError, type FamilyName, type Network, type NetworkMode } from '../types.ts'
import { cardano } from './cardano.ts'
import type { FamilyProbe } from './context.ts'
import { evm } from './evm.ts'
import { MeteredFetch } from './metered-fetch.ts'
import { Report, statusText, type CheckLine } from './report.ts'
import { solana } from './solana.ts'
import { stellar } from './stellar.ts'
import { tron } from './tron.ts'
import { utxo } from './utxo.ts'
import { xrp } from './xrp.ts'

const PROBES: Partial<Record<FamilyName, FamilyProbe>> = {
  cardano,
  evm,
  solana,
  stellar,
  tron,
  utxo,
  xrp,
}
/** Number of requests for the newest block that measure the latency. */
const LATENCY_SAMPLES = 5

/** Result of probing an endpoint. */
export interface ProbeResult {
  network: string
  host: string
  verdict: 'usable' | 'usable with limits' | 'not usable' | 'wrong network'
  checks: CheckLine[]
  /**
   * False if the newest block could not be read, or if the endpoint serves another network. The
   * remaining checks were then skipped.
   */
  complete: boolean
  questions: number
  /** Number of responses with HTTP status 429. Those requests were repeated. */
  rateLimited: number
  /** Latency in milliseconds; null if the newest block could not be read. */
  latency: number | null
  slowest: { what: string; milliseconds: number }
  /** Age of the newest block in seconds by this machine's clock; null if it could not be read. */
  headAge: number | null
}

/** Clocks and delay of a probe, passed in so that tests can replace them. */
export interface ProbeEnvironment {
  /** Returns milliseconds since the Unix epoch. */
  now(): number
  /** Returns the milliseconds of a monotonic clock. */
  elapsed(): number
  sleep(milliseconds: number): Promise<void>
}

/**
 * Sends an endpoint every kind of request that a platform sends, without changing anything: the
 * broadcast bytes are malformed.
 * @throws ChainError `FAMILY`; `ENDPOINT` with a sentence if the address does not respond like an
 *   endpoint of the network
 */
export async function probeEndpoint(
  network: Network,
  endpoint: RpcEndpoint,
  fetch: Fetch,
  { now, elapsed, sleep }: ProbeEnvironment,
): Promise<ProbeResult> {
  const probe = PROBES[network.family]
  if (!probe)
    throw new ChainError(
      'FAMILY',
      `${network.code}: endpoints of its family cannot be probed by this version`,
    )
  const questions = new MeteredFetch(endpoint.url, fetch, elapsed, sleep)
  const report = new Report(endpoint, questions)
  const assets = loadRegistry(network.mode).assetsOf(network.code)
  const client = probe.client({ network, assets, endpoint, fetch: questions.fetch })
  const { host } = new URL(endpoint.url)
  const result = (
    verdict: ProbeResult['verdict'],
    latency: number | null,
    headAge: number | null,
  ): ProbeResult => ({
    network: network.code,
    host,
    verdict,
    checks: report.lines,
    complete: headAge !== null,
    questions: questions.count,
    rateLimited: questions.rateLimited,
    latency,
    slowest: questions.slowest,
    headAge,
  })
  try {
    await client.probe()
    report.add({
      code: 'network',
      state: 'ok',
      reason: `the endpoint serves ${network.name}`,
      advice: null,
    })
  } catch (error) {
    if (!(error instanceof ChainError) || error.code !== 'WRONG_NETWORK') {
      throw new ChainError(
        'ENDPOINT',
        report.redact(notAnEndpoint(network, host, questions, error)),
      )
    }
    const other = await nameOther(probe, network, endpoint, questions.fetch)
    report.add(wrongNetworkLine(network, error, other))
    return result('wrong network', null, null)
  }
  const head = await probe.run({ network, assets, endpoint, fetch: questions.fetch, report })
  let latency: number | null = null
  let headAge: number | null = null
  if (head) {
    headAge = Math.round(now() / 1000) - head.time
    latency = await medianOf(async () => {
      await client.tip()
    }, elapsed).catch(() => null)
  }
  if (questions.rateLimited > 0) report.add(rateLimitLine(questions))
  const has = (state: CheckLine['state']) => report.lines.some((line) => line.state === state)
  return result(
    has('missing') ? 'not usable' : has('limited') ? 'usable with limits' : 'usable',
    latency,
    headAge,
  )
}

/** Returns the line of the report about an endpoint that serves another network. */
function wrongNetworkLine(
  network: Network,
  error: ChainError,
  other: { name: string; mode: NetworkMode } | null,
): CheckLine {
  const reason = other === null ? error.message : `${error.message}: it serves ${other.name}`
  const advice =
    other === null || other.mode === network.mode
      ? 'correct the URL, or name the network that it serves'
      : `set CUSTODY_NETWORK=${other.mode} to check it as that network`
  return { code: 'network', state: 'missing', reason, advice }
}

/** Returns the line of the report about requests that a rate limit rejected. */
const rateLimitLine = ({ rateLimited, count }: MeteredFetch): CheckLine => ({
  code: 'rate_limit',
  state: 'limited',
  reason: `${rateLimited} of ${count} requests were rejected by a rate limit (HTTP 429)`,
  advice: 'use a plan with more requests: a platform sends requests continuously (docs/mainnet.md)',
})

async function medianOf(work: () => Promise<void>, elapsed: () => number): Promise<number> {
  const times: number[] = []
  for (let sample = 0; sample < LATENCY_SAMPLES; sample++) {
    const started = elapsed()
    await work()
    times.push(elapsed() - started)
  }
  return Math.round(times.sort((a, b) => a - b)[Math.floor(LATENCY_SAMPLES / 2)] as number)
}

/**
 * Returns the network of the registry that an endpoint serves, as "Base (BASE)"; null if it serves
 * none of them. Each request is sent once.
 */
async function nameOther(
  probe: FamilyProbe,
  network: Network,
  endpoint: RpcEndpoint,
  fetch: Fetch,
): Promise<{ name: string; mode: NetworkMode } | null> {
  const answers = new Map<string, Promise<{ status: number; text: string }>>()
  const once: Fetch = async (url, init) => {
    const question = `${url} ${String(init.body)}`
    const pending =
      answers.get(question) ??
      fetch(url, init).then(async (response) => ({
        status: response.status,
        text: await response.text(),
      }))
    answers.set(question, pending)
    const { status, text } = await pending
    return new Response(text, { status })
  }
  const { checkpoint: _, ...plain } = endpoint
  const modes = new Set<NetworkMode>([network.mode, 'mainnet', 'local'])
  for (const mode of modes) {
    for (const other of loadRegistry(mode).networks) {
      if (
        other.family !== network.family ||
        (other.code === network.code && other.mode === network.mode)
      )
        continue
      const isIt = await probe
        .client({ network: other, assets: [], endpoint: plain, fetch: once })
        .probe()
        .then(
          () => true,
          () => false,
        )
      if (isIt)
        return {
          name: `${other.name} (${other.code}${mode === network.mode ? '' : ` of ${mode}`})`,
          mode,
        }
    }
  }
  return null
}

const UNREACHABLE = 'the host cannot be reached: check the firewall'
const UNKNOWN_HOST = 'the host does not exist: check its name'
/** Why no response arrived, by the cause of the failed request. */
const CONNECTION_PROBLEMS = new Map([
  ['ENOTFOUND', UNKNOWN_HOST],
  ['EAI_AGAIN', UNKNOWN_HOST],
  ['ECONNREFUSED', 'no process listens there: check the port, and whether the node runs'],
  ['REDIRECT', 'the endpoint redirects: use the target URL'],
  ['TIMEOUT', 'there is no response: check the host, the port and the firewall'],
  ['EHOSTUNREACH', UNREACHABLE],
  ['ENETUNREACH', UNREACHABLE],
  ['ETIMEDOUT', UNREACHABLE],
  ['UND_ERR_CONNECT_TIMEOUT', UNREACHABLE],
])

/** Returns why the first request got no response of the network's protocol. */
function notAnEndpoint(
  network: Network,
  host: string,
  { last: { status, isPage, cause } }: MeteredFetch,
  error: unknown,
): string {
  const credentials = 'check --username, --password-file, --header and the key in the URL'
  if (status === 401 || status === 403 || status === 407)
    return `${host}: ${statusText(status) ?? ''}; ${credentials}`
  if (status === 402) return `${host}: ${statusText(status) ?? ''}`
  if (status === 429)
    return `${host}: the endpoint limits requests (HTTP 429): wait, or use a plan with more requests`
  if (isPage)
    return `${host}: the endpoint returns a web page (HTTP ${String(status)}) instead of its protocol: check the path of the URL`
  const problem = cause === null ? undefined : CONNECTION_PROBLEMS.get(cause)
  if (problem !== undefined) return `${host}: ${problem}`
  const reason = reasonOf(error)
  if (error instanceof RpcRefused) {
    return `${host}: the endpoint rejects the first request of ${network.name} (${reason}): check the URL and the type of node`
  }
  return (
    `${reason.startsWith(host) ? reason : `${host}: ${reason}`}${cause === null ? '' : ` (${cause})`}` +
    `${status !== null && status >= 400 ? ` (HTTP ${status})` : ''}`
  )
}
