import type { FamilyName, Fetch, Network } from '@custody/chains'
import { inSpan } from '@custody/tracing'
import type { Logger } from 'pino'
import type { Chain, ChainContext, Connect } from '../../core/engine/chain.ts'
import { BALANCE_REQUESTS } from '../../core/settings/configuration.ts'
import { BlockAges, type Contradiction } from '../../core/engine/endpoints/belief.ts'
import { EndpointGroup, type EndpointWatch } from '../../core/engine/endpoints/group.ts'
import { HeadPolling } from '../../core/engine/endpoints/head-polling.ts'
import type { Metrics } from '../../core/metrics.ts'
import type { NetworkEndpoints } from '../../core/settings/configuration.ts'
import * as list from './families.ts'

const families: Partial<Record<FamilyName, Connect>> = list

/** Receivers of endpoint information: metrics count requests and measure their duration. */
export interface Watched {
  metrics: Metrics
  log: Pick<Logger, 'warn'>
}

/**
 * Returns the chains of all networks that have an endpoint.
 * @param watched absent: nothing is reported
 */
export function connectAll(
  context: ChainContext,
  endpoints: Readonly<Record<string, NetworkEndpoints>>,
  fetch: Fetch,
  watched?: Watched,
): Chain[] {
  const ages = new BlockAges()
  return context.registry.networks.flatMap((network) => {
    const own = endpoints[network.code]
    const connect = families[network.family]
    if (!own || !connect) return []
    // The counters start at zero, because an increase is not visible if a counter first appears
    // with a higher value.
    for (const kind of ['transaction', 'field'])
      watched?.metrics.unreadable.labels(network.code, kind).inc(0)
    return [connected(context, network, own, { connect, fetch, watched, ages })]
  })
}

function connected(
  context: ChainContext,
  network: Network,
  { endpoints, quorum, balanceRequests = BALANCE_REQUESTS }: NetworkEndpoints,
  {
    connect,
    fetch,
    watched,
    ages,
  }: { connect: Connect; fetch: Fetch; watched: Watched | undefined; ages: BlockAges },
): Chain {
  const { environment, database } = context
  const names = endpointNames(endpoints)
  const paces = endpoints.map(
    ({ requests_per_day: perDay }) =>
      new HeadPolling({ blockMs: network.block_ms, perDay, environment }),
  )
  const group = new EndpointGroup({
    network,
    quorum,
    environment,
    watch: watchOf(network, watched),
    ages,
    known: async () => {
      const row = await database.one<{
        height: string | null
        trusted_until: Date | null
        contradiction: Contradiction | null
      }>(
        'select height::text, trusted_until, contradiction from network_scans where network = $1',
        [network.code],
      )
      return {
        scanned: row?.height ? Number(row.height) : null,
        trustedUntil: row?.trusted_until ?? null,
        contradiction: row?.contradiction ?? null,
      }
    },
    endpoints: endpoints.map((endpoint, at) => {
      const [name, pace] = [names[at] as string, paces[at] as HeadPolling]
      if (pace.perDay !== null)
        watched?.metrics.rpcRequestsAllowed.labels(network.code, name).set(pace.perDay)
      return {
        name,
        endpoint,
        fetch: watched ? counted(fetch, watched.metrics, [network.code, name], pace) : fetch,
      }
    }),
  })
  const chain = connect(context, network, group)
  const { agreement, voters } = group
  if (agreement)
    for (const name of names)
      watched?.metrics.endpointDisagreements.labels(network.code, name).inc(0)
  return Object.defineProperties(chain, {
    belief: { value: group.belief, enumerable: true },
    balanceRequests: { value: balanceRequests, enumerable: true },
    ...(watched ? { pace: { get: () => paces[group.inUse], enumerable: true } } : {}),
    ...(voters ? { voters: { value: voters, enumerable: true } } : {}),
    ...(agreement ? { agreement: { value: agreement, enumerable: true } } : {}),
  })
}

/**
 * Returns the names of endpoints in logs, in metrics and in the output of the doctor command: their
 * hosts, because a URL may contain a provider's key.
 */
export function endpointNames(endpoints: readonly { url: string }[]): string[] {
  const hosts = endpoints.map(({ url }) => new URL(url).host)
  return hosts.map((host, at) => {
    const before = hosts.slice(0, at).filter((each) => each === host).length
    return before === 0 ? host : `${host} (${before + 1})`
  })
}

function watchOf({ code }: Network, watched: Watched | undefined): EndpointWatch {
  if (!watched) return { changed: () => undefined, warn: () => undefined }
  const { metrics, log } = watched
  return {
    changed(name, { isUp, isInUse, height }) {
      metrics.endpointUp.labels(code, name).set(Number(isUp))
      metrics.endpointInUse.labels(code, name).set(Number(isInUse))
      if (height !== null) metrics.endpointHead.labels(code, name).set(height)
    },
    warn: (details, message) => log.warn(details, message),
  }
}

/**
 * Counts requests. A request without a response, or with a failure of the endpoint itself, is
 * `failed`; a refusal counts as a response.
 */
function counted(
  fetch: Fetch,
  metrics: Metrics,
  [network, endpoint]: [string, string],
  pace: HeadPolling,
): Fetch {
  return async (url, init) => {
    pace.recordRequest()
    const ended = metrics.rpcSeconds.labels(network).startTimer()
    try {
      const answer = await inSpan('chain', { network }, () => fetch(url, init))
      metrics.rpcRequests
        .labels(
          network,
          endpoint,
          answer.status >= 500 || answer.status === 429 ? 'failed' : 'answered',
        )
        .inc()
      return answer
    } catch (error) {
      metrics.rpcRequests.labels(network, endpoint, 'failed').inc()
      throw error
    } finally {
      ended()
    }
  }
}
