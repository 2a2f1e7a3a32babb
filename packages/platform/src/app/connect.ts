import type { FamilyName, Fetch, Network, RpcEndpoint } from '@custody/chains'
import { inSpan } from '@custody/tracing'
import type { Chain, ChainContext, Connect } from '../engine/chain.ts'
import { Pace } from '../engine/pace.ts'
import type { Metrics } from '../metrics.ts'
import * as list from './families.ts'

const families: Partial<Record<FamilyName, Connect>> = list

/** The chains of all networks that have an endpoint. @param metrics counts what they are asked, and how long it takes */
export function connectAll(
  context: ChainContext, endpoints: Readonly<Record<string, RpcEndpoint>>, fetch: Fetch, metrics?: Metrics,
): Chain[] {
  return context.registry.networks.flatMap((network) => {
    const endpoint = endpoints[network.code]
    const connect = families[network.family]
    if (!endpoint || !connect) return []
    // A counter that begins above zero shows no increase.
    for (const kind of ['transaction', 'field']) metrics?.unreadable.labels(network.code, kind).inc(0)
    if (!metrics) return [connect(context, network, endpoint, fetch)]
    const pace = new Pace({ blockMs: network.block_ms, perDay: endpoint.requests_per_day, environment: context.environment })
    if (pace.perDay !== null) metrics.rpcRequestsAllowed.labels(network.code).set(pace.perDay)
    return [Object.assign(connect(context, network, endpoint, watched(fetch, metrics, network, pace)), { pace })]
  })
}

/** A question that is not answered, or by the endpoint's own failure, is `failed`; what it refuses is an answer. */
function watched(fetch: Fetch, metrics: Metrics, { code }: Network, pace: Pace): Fetch {
  return async (url, init) => {
    pace.asked()
    const ended = metrics.rpcSeconds.labels(code).startTimer()
    try {
      const answer = await inSpan('chain', { network: code }, () => fetch(url, init))
      metrics.rpcRequests.labels(code, answer.status >= 500 || answer.status === 429 ? 'failed' : 'answered').inc()
      return answer
    } catch (error) {
      metrics.rpcRequests.labels(code, 'failed').inc()
      throw error
    } finally {
      ended()
    }
  }
}
