import type { RpcFace } from '../http-server.ts'
import { postExample, socketUrl } from '../examples.ts'
import { LocalLedgers } from '../ledger-local.ts'
import type { Endpoint, FundOrder, LocalChain } from '../local-chain.ts'
import type { Place } from '../on-demand.ts'
import type { Timing } from '../timing.ts'
import type { XrpChain } from './chain.ts'

/** The XRP Ledger, behind rippled's protocol. */
export function localXrpChains(place: Place): LocalChain[] {
  return [new LocalXrpChain(place)]
}

class LocalXrpChain extends LocalLedgers<XrpChain> implements LocalChain {
  readonly code = 'XRP'

  /** Loaded only where it is used, as its protocol is. */
  protected async open(home: string, timing: Timing): Promise<XrpChain> {
    const { XrpChain } = await import('./chain.ts')
    return XrpChain.open(home, timing)
  }

  async face(below: string): Promise<RpcFace | undefined> {
    if (below !== '') return undefined
    const { faults } = this
    const chain = await this.chain()
    const { xrpRpc, xrpSocket } = await import('./rpc.ts')
    return {
      faults, contentType: 'application/json', handle: async (body) => xrpRpc(chain, faults, body), socket: () => xrpSocket(chain, faults),
    }
  }

  endpoints(url: string): Endpoint[] {
    const example = postExample(url, { method: 'server_info', params: [{}] })
    return [{ protocol: 'rippled', url, websocket: socketUrl(url), example }]
  }

  async fund({ address, amount, tag, delivered }: FundOrder): Promise<string> {
    return (await this.chain()).fund(address, amount, tag, delivered)
  }
}
