import type { FamilyName, Fetch, Registry, RpcEndpoint } from '@custody/chains'
import type { Chain, ChainContext, Connect } from '../engine/chain.ts'
import * as list from './families.ts'

const families: Partial<Record<FamilyName, Connect>> = list

/** The chains of all networks that have an endpoint. */
export function connectAll(
  context: ChainContext, endpoints: Readonly<Record<string, RpcEndpoint>>, fetch: Fetch, registry: Registry = context.registry,
): Chain[] {
  return registry.networks.flatMap((network) => {
    const endpoint = endpoints[network.code]
    const connect = families[network.family]
    return endpoint && connect ? [connect(context, network, endpoint, fetch)] : []
  })
}
