import type { RpcFace } from '../http-server.ts'
import { postExample, socketUrl } from '../examples.ts'
import { SECONDS_MAX } from '../ledger-chain.ts'
import type { Endpoint, FundExtra, FundOrder, Head, LocalChain } from '../local-chain.ts'
import { OnDemand, type Place } from '../on-demand.ts'
import type { Timing } from '../timing.ts'
import { wholeNumber } from '../whole-number.ts'
import type { XrpChain } from './chain.ts'

/** The XRP Ledger, behind rippled's protocol. */
export function localXrpChains(place: Place): LocalChain[] {
  return [new LocalXrpChain(place)]
}

class LocalXrpChain extends OnDemand<XrpChain> implements LocalChain {
  readonly code = 'XRP'
  readonly engine = 'own ledger'
  override readonly fundExtras: readonly FundExtra[] = ['tag']

  /** Loaded only where it is used, as its protocol is. */
  protected async open(home: string, timing: Timing): Promise<XrpChain> {
    const { XrpChain } = await import('./chain.ts')
    return XrpChain.open(home, timing)
  }

  protected headOf({ head }: XrpChain): Head {
    return head
  }

  protected waitingIn({ ledgers }: XrpChain): number {
    return ledgers.waiting.length
  }

  protected override get finality(): string {
    return 'its validated ledgers are final'
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

  async mine(blocks: number, { seconds }: { seconds: unknown }): Promise<Head> {
    return (await this.chain()).mine(blocks, seconds === undefined ? 0 : wholeNumber(seconds, 'seconds', SECONDS_MAX))
  }
}
