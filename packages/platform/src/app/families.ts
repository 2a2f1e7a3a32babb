import type { FamilyName, Fetch, Registry, RpcEndpoint } from '@custody/chains'
import type { Chain, ChainContext, Connect } from '../engine/chain.ts'
import { connectCardano } from '../families/cardano/index.ts'
import { connectEvm } from '../families/evm/index.ts'
import { connectSolana } from '../families/solana/index.ts'
import { connectStellar, connectXrp } from '../families/tagged/index.ts'
import { connectTron } from '../families/tron/index.ts'
import { connectUtxo } from '../families/utxo/index.ts'

/** Every family of chains. A new one is a folder in `families` and a line here. */
const FAMILIES: Partial<Record<FamilyName, Connect>> = {
  utxo: connectUtxo, evm: connectEvm, tron: connectTron, xrp: connectXrp, stellar: connectStellar, solana: connectSolana, cardano: connectCardano,
}

/** The chains of all networks that have an endpoint. */
export function connectAll(
  context: ChainContext, endpoints: Readonly<Record<string, RpcEndpoint>>, fetch: Fetch, registry: Registry = context.registry,
): Chain[] {
  return registry.networks.flatMap((network) => {
    const endpoint = endpoints[network.code]
    const connect = FAMILIES[network.family]
    return endpoint && connect ? [connect(context, network, endpoint, fetch)] : []
  })
}
